#!/usr/bin/env python3
"""Does `plan` resolve SGLang's defaults as the engine does? sglang_arguments.py BINARY

The engine's own ServerArgs resolve every combination below in one process on the stand-in device, with the memory that `nvidia-smi` would
show put in its place; `plan` is asked the same. Compared are the static fraction, the chunk of prefill, the largest captured batch and how
many graphs there are of decode and prefill. Without an environment of SGLang: exit 77."""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "fixtures", "models")
DEVICES = (16384, 24564, 32607, 40960, 46068, 49140, 81559, 97887, 143771, 183359, 275040)
FLAGS = ([], ["--tp", "4"], ["--disable-cuda-graph"], ["--chunked-prefill-size", "2048"], ["--max-running-requests", "16"],
         ["--cuda-graph-max-bs-decode", "64"])
OTHERS = (["--chunked-prefill-size", "-1"], ["--pp-size", "2"], ["--disable-prefill-cuda-graph"], ["--disable-decode-cuda-graph"],
          ["--max-total-tokens", "1000"], ["--page-size", "64"], ["--cuda-graph-bs-decode", "1", "2", "4"], ["--disable-cuda-graph-padding"])


def cases():
    for mib in DEVICES:
        for flags in FLAGS:
            yield mib, "small-llama", flags
        yield mib, "small-latent", []
        yield mib, "small-moe", ["--tp", "8", "--ep-size", "8"]
        yield mib, "small-sliding", []
    for flags in OTHERS:
        yield 81559, "small-llama", flags


def graphs(phase):
    return 0 if "disabled" in str(phase.backend).lower() else len(phase.bs or [])


def resolve():
    """Inside the engine's environment: one line of JSON for each case, in a child each, because resolving leaves traces."""
    from sglang.srt.arg_groups import memory_hook
    from sglang.srt.arg_groups.overrides import resolving_view
    from sglang.srt.server_args import prepare_server_args

    for mib, model, flags in cases():
        sys.stdout.flush()
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        memory_hook.get_device_memory_capacity = lambda *_: float(mib)
        args = prepare_server_args(["--model-path", os.path.join(MODELS, model), *flags, "--load-format", "dummy", "--skip-tokenizer-init",
                                    "--attention-backend", "triton", "--sampling-backend", "pytorch"])
        args.resolve_once()
        resolved = resolving_view(args)
        decode, prefill = resolved.cuda_graph_config.decode, resolved.cuda_graph_config.prefill
        print("RESOLVED", json.dumps([resolved.mem_fraction_static, resolved.chunked_prefill_size, decode.max_bs, graphs(decode), graphs(prefill)]),
              flush=True)
        os._exit(0)


def planned(binary, mib, model, flags):
    done = subprocess.run([binary, "plan", "--json", "--offline", "--gpu-total", "%dMiB" % mib, "--gpu-cc", "8.9", "--", "sglang", "serve",
                           os.path.join(MODELS, model), *flags], stdout=subprocess.PIPE, check=False)
    own = json.loads(done.stdout)["setup"]["own"]
    return [own[key] for key in ("mem_fraction_static", "chunked_prefill_size", "cuda_graph_max_bs_decode", "cuda_graphs_decode", "cuda_graphs_prefill")]


def main():
    if sys.argv[1] == "--resolve":
        return resolve()
    binary = os.path.abspath(sys.argv[1])
    venvs = sorted(glob.glob(os.path.expanduser("~/.cache/oomsight/venvs/sglang-0.5.23")))
    if not venvs:
        print("no environment of SGLang 0.5.23")
        return 77
    done = subprocess.run([binary, "dryrun", "--gpu", "L40S", "--timeout", "900", "--", os.path.join(venvs[0], "bin", "python"), os.path.abspath(__file__),
                           "--resolve"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    answers = [json.loads(line[9:]) for line in done.stdout.split("\n") if line.startswith("RESOLVED ")]
    every, equal = list(cases()), 0
    if len(answers) != len(every):
        print(done.stdout[-2000:])
        print("%d of %d were resolved" % (len(answers), len(every)))
        return 1
    for case, answer in zip(every, answers):
        mine = planned(binary, *case)
        equal += mine == answer
        if mine != answer:
            print(*case, "engine", answer, "plan", mine)
    print("%d of %d resolved as the engine does" % (equal, len(every)))
    return 0 if equal == len(every) else 1


if __name__ == "__main__":
    sys.exit(main())
