"""What the scorers of plans share: calling the command line, comparing figures, printing tables. Standard library only."""

import atexit
import json
import os
import subprocess
import sys
import tempfile

GIB = 1 << 30


def fail(text):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(2)


def read_lines(path):
    try:
        with open(path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")


def models_beside(data_path, given):
    """Where the config directories are: --models (several with a colon between them), else those of models.json beside the data, else
    NAME-models beside NAME.jsonl, then golden/models next to or above the data."""
    if given:
        return given
    here = os.path.dirname(os.path.abspath(data_path))
    if os.path.exists(os.path.join(here, "models.json")):
        return unpacked(os.path.join(here, "models.json"))
    own = os.path.splitext(os.path.basename(data_path))[0] + "-models"
    folders = (os.path.join(here, own), os.path.join(here, "models"), os.path.join(here, "..", "golden", "models"))
    found = [os.path.normpath(folder) for folder in folders if os.path.isdir(folder)]
    if not found:
        fail("no model configs beside the data; use --models DIR")
    return os.pathsep.join(found)


UNPACKED = {}


def unpacked(path):
    """A folder, for as long as this program runs, with a directory of each config of a file in the form of data/catalogue.json."""
    if path not in UNPACKED:
        UNPACKED[path] = tempfile.TemporaryDirectory()
        atexit.register(UNPACKED[path].cleanup)
        with open(path, encoding="utf-8") as file:
            models = json.load(file)
        for name, entry in models.items():
            os.mkdir(os.path.join(UNPACKED[path].name, name))
            for part, file_name in (("config", "config.json"), ("quant", "hf_quant_config.json")):
                if part in entry:
                    with open(os.path.join(UNPACKED[path].name, name, file_name), "w", encoding="utf-8") as file:
                        json.dump(entry[part], file)
    return UNPACKED[path].name


def config_path(models, name):
    """The first of the folders that has a config of this name."""
    folders = models.split(os.pathsep)
    return next((os.path.join(folder, name) for folder in folders if os.path.isdir(os.path.join(folder, name))),
                os.path.join(folders[-1], name))


class Planner:
    """Plans through the command line, one process a plan; answers are kept, as several fields ask for the same."""

    def __init__(self, binary):
        self.binary = binary
        self.kept = {}

    def plan(self, options, command):
        """-> (plan or None, why not)"""
        key = (tuple(options), tuple(command))
        if key not in self.kept:
            self.kept[key] = self._run(options, command)
        return self.kept[key]

    def _run(self, options, command):
        words = [self.binary, "plan", "--json", *options, "--", *command]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
        if done.returncode not in (0, 1):
            return None, f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1:] or ''}"
        try:
            return json.loads(done.stdout), None
        except ValueError as error:
            return None, f"not JSON: {error}"

    def gpus(self):
        done = subprocess.run([self.binary, "gpus", "--json"], capture_output=True, text=True, timeout=60, check=False)
        try:
            listed = json.loads(done.stdout)
        except ValueError:
            return []
        return listed if isinstance(listed, list) else listed.get("gpus", [])


def rows(plan, phase, owners):
    """The rows of one phase that belong to any of `owners`."""
    return [row for one in plan.get("phases", []) if one["phase"] == phase for row in one.get("holds", [])
            if row["owner"] in owners]


def hold(plan, phase, owner):
    """Bytes of one row of one phase of a plan, None when it is not there."""
    for one in plan.get("phases", []):
        if one["phase"] != phase:
            continue
        for row in one.get("holds", []):
            if row["owner"] == owner:
                return row["bytes"]
    return None


class Field:
    """One figure over all records: how far the plans are from what was measured."""

    def __init__(self, name, goal=None):
        self.name, self.goal = name, goal
        self.errors = []  # (relative error, record id, text)

    def add(self, error, who, text):
        self.errors.append((error, who, text))

    def within(self, limit):
        return sum(1 for error, _, _ in self.errors if error <= limit)

    def share(self, limit):
        return self.within(limit) / len(self.errors) if self.errors else 1.0

    def misses(self, limit):
        return sorted((e for e in self.errors if e[0] > limit), key=lambda e: -e[0])


def relative(value, measured, rounding):
    """Relative error, forgiving half of the last digit that was printed."""
    return max(0.0, abs(value - measured) - rounding) / max(abs(measured), 1e-9)


def table(fields, limits):
    head = f"{'field':<24}{'records':>8}" + "".join(f"{'<= %g %%' % (100 * limit):>10}" for limit in limits)
    rows = [head]
    for field in fields:
        count = len(field.errors)
        row = f"{field.name:<24}{count:>8}"
        for limit in limits:
            row += f"{'%d' % field.within(limit):>10}" if count else f"{'-':>10}"
        rows.append(row)
    return "\n".join(rows)


# ---- how much a stated certainty is worth ----

SURE = 0.9
BANDS = (0.0, 0.5, 0.7, SURE)


def stated(pairs):
    """Of (certainty, whether it was right): answers that were sure, right and wrong; the mean squared error (Brier); and by how much the answers of a band
    claim more than they hold, on average over all (0: nowhere overstated)."""
    pairs = [(certainty, bool(right)) for certainty, right in pairs]
    sure = [right for certainty, right in pairs if certainty >= SURE]
    claimed = 0.0
    for low, high in zip(BANDS, (*BANDS[1:], 2.0)):
        band = [(certainty, right) for certainty, right in pairs if low <= certainty < high]
        claimed += max(0.0, sum(certainty - right for certainty, right in band))
    return {"answers": len(pairs), "sure_right": sum(sure), "sure_wrong": len(sure) - sum(sure),
            "brier": round(sum((certainty - right) ** 2 for certainty, right in pairs) / max(1, len(pairs)), 4), "overstated": round(claimed / max(1, len(pairs)), 4)}
