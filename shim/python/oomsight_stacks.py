"""Where an engine allocates: the Python stack of every device allocation of a dry run, each different one once.

Off unless OOMSIGHT_STACKS names a folder. PyTorch's own allocator history keeps the stacks; they are written after each
step of the engine's worker, one line of JSON a stack, to a file per process. Every one of them is a traceback that the
engine would have printed, had the device been full at that moment. tools/record_frames.py makes data of them."""
import json
import os
import time

ENTRIES = 400000
# Of the worker, in every release since the V1 engine; what is not there is passed over.
STEPS = ("init_device", "load_model", "determine_available_memory", "initialize_from_config", "compile_or_warm_up_model",
         "execute_model", "sample_tokens", "sleep", "wake_up")
_seen = set()
_served = [0]


def short(path):
    """From the package on: where it is installed is nobody's business."""
    for mark in ("site-packages/", "dist-packages/", "lib/python3"):
        at = path.rfind(mark)
        if at >= 0:
            rest = path[at + len(mark):]
            return rest if mark != "lib/python3" else rest.partition("/")[2]
    return os.path.basename(path)


def flush(torch, during):
    traces = torch.cuda.memory._snapshot()["device_traces"]
    with open(os.path.join(os.environ["OOMSIGHT_STACKS"], "stacks-%d.jsonl" % os.getpid()), "a", encoding="utf-8") as out:
        held = 0
        for entry in (e for trace in traces for e in trace):
            if entry["action"] == "alloc":
                held += entry["size"]
            elif entry["action"] == "free_completed":
                held -= entry["size"]
            if entry["action"] != "alloc" or not entry.get("frames"):
                continue
            stack = tuple((short(f["filename"]), f["line"], f["name"]) for f in entry["frames"])
            if stack in _seen:
                continue
            _seen.add(stack)
            row = {"during": during, "time_us": entry.get("time_us", int(time.time() * 1e6)), "size": entry["size"], "stack": stack}
            out.write(json.dumps(row) + "\n")
    start(torch)


def start(torch):
    torch.cuda.memory._record_memory_history(enabled=None)
    torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="python", max_entries=ENTRIES)


def worth(step):
    """Served steps are alike: the first few, then ever fewer."""
    if step not in ("execute_model", "sample_tokens"):
        return True
    _served[0] += 1
    return _served[0] <= 12 or _served[0] & (_served[0] - 1) == 0


def hook(module):
    import torch

    def wrap(name, inner):
        def step(self, *args, **kwargs):
            if name == "init_device":
                start(torch)
            try:
                return inner(self, *args, **kwargs)
            finally:
                if worth(name):
                    flush(torch, name)
        step.__name__ = name
        return step

    for name in STEPS:
        inner = getattr(module.Worker, name, None)
        if inner:
            setattr(module.Worker, name, wrap(name, inner))


HOOKS = {}  # the modules of engines add theirs
