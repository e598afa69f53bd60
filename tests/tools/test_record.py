#!/usr/bin/env python3
"""A record that was sent goes into data/gpus: measured figures replace, ranges widen, what people wrote stays, and files keep their form."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BINARY = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_data  # noqa: E402
import take_record  # noqa: E402


def sent():
    """What the stand-in of an L40S prints; its record."""
    done = subprocess.run([BINARY, "dryrun", "--gpu", "l40s", "--cuda", "13", "--output", os.devnull, "--", BINARY, "doctor", "--measure"],
                          capture_output=True, text=True, timeout=60)
    return take_record.record_of(done.stderr)


class Record(unittest.TestCase):
    def test_every_file_is_written_back_as_it_stands(self):
        self.assertEqual(take_record.check(take_record.GPUS), 0)

    @unittest.skipIf(os.environ.get("SANITIZED", "none") != "none", "a sanitized library cannot be preloaded")
    def test_a_record_of_a_stand_in_is_known_as_one(self):
        self.assertEqual(take_record.take(sent()), 1)

    @unittest.skipIf(os.environ.get("SANITIZED", "none") != "none", "a sanitized library cannot be preloaded")
    def test_measured_figures_replace_and_words_stay(self):
        with open(os.path.join(take_record.GPUS, "l40s.json"), encoding="utf-8") as file:
            old = json.load(file)
        new = dict(sent(), total_bytes=old["total_high"] + 10, total_low=old["total_high"] + 10, total_high=old["total_high"] + 10)
        gpu = take_record.joined(old, new)
        check = check_data.Check(ROOT)
        self.assertTrue(check_data.check_gpu(check, "l40s.json", gpu))
        self.assertEqual(check.problems, [])
        self.assertEqual((gpu["total_low"], gpu["total_high"]), (old["total_low"], old["total_high"] + 10))
        self.assertEqual([gpu[key] for key in ("aliases", "class", "notes")], [old[key] for key in ("aliases", "class", "notes")])
        self.assertEqual(gpu["driver_costs"]["graph_bytes"], 65536)

    def test_a_log_that_prints_the_constants_is_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write("INFO 11-16 02:00:00 [cuda.py:1] Using NVIDIA H100 80GB HBM3\n"  # a total of 79.19 GiB alone is that of several cards
                      "INFO 11-16 02:00:00 [gpu_worker.py:280] Free memory on device (78.66/79.19 GiB) on startup. Desired GPU memory utilization is "
                      "(0.9, 71.27 GiB). Actual usage is 14.99 GiB for weight, 1.42 GiB for peak activation, 0.09 GiB for non-torch memory, and "
                      "0.38 GiB for CUDAGraph memory.\n")
            log.flush()
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "take_record.py"), "--logs", BINARY, log.name], capture_output=True, text=True)
        self.assertIn("NVIDIA H100 80GB HBM3: total less free 543 MiB, data/gpus 527", done.stdout)
        self.assertIn("graphs, printed 389 MiB", done.stdout)


unittest.main()
