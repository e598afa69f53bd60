"""Real PyTorch wheels, one for CUDA 12 and one for CUDA 13, on a device that is not there. Exit 77 without any.

    tests/oracle/test_torch.py BINARY"""
import os
import sys

import engines

here = os.path.dirname(os.path.abspath(__file__))


def main():
    binary = os.path.abspath(sys.argv[1])
    found = engines.venvs()
    by_major = {}
    for version, folder in found.items():
        by_major[13 if engines.version_key(version) >= [0, 20] else 12] = folder
    if not by_major:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    failed = 0
    for major, folder in sorted(by_major.items()):
        python = os.path.join(folder, "bin", "python")
        device = ["--gpu", "A30x2", "--gpu-total", "8GiB", "--outside", "300MiB"]
        runs = [("checks", [], {}), ("expandable segments", ["allocator"], {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
                ("cudaMallocAsync", ["allocator"], {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})]
        runs.append(("a scan on 8.9", ["scan"], {}))
        for name, words, env in runs:
            outcome = engines.dryrun(binary, folder, ["--gpu", "L4"] if words == ["scan"] else device, [python, os.path.join(here, "torch_checks.py")] + words, env, 300)
            child = outcome.report["child"]["exit"] if outcome.report else None
            print("CUDA %d, %s: child %s, %.0f s" % (major, name, child, outcome.seconds))
            if child != 0:
                failed += 1
            if child != 0 or name == "checks":
                print("\n".join("  " + l for l in outcome.log.splitlines() if l.startswith(("ok", "FAIL")) or child)[-4000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
