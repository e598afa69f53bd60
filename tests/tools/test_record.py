#!/usr/bin/env python3
"""A record that was sent goes into data/gpus: measured figures replace, ranges widen, what people wrote stays, and files keep their form."""
import json
import os
import subprocess
import sys
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
        for name in sorted(os.listdir(take_record.GPUS)):
            with open(os.path.join(take_record.GPUS, name), encoding="utf-8") as file:
                text = file.read()
            self.assertEqual(take_record.written(json.loads(text)), text)

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


unittest.main()
