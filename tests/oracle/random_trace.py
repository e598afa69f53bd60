"""Random traces of allocator calls in the text form of docs/reference/formats/trace.md: random devices, settings, streams, pools,
captures. Every choice comes from one seed. Only sequences that a program can make: pools are created before they are
entered, left in order, and never entered after they were given up."""
import math
import random

MIB, GIB = 1 << 20, 1 << 30
GRID = [512, 1024, 4096, 65536, MIB, 2 * MIB, 3 * MIB, 5 * MIB, 8 * MIB, 12 * MIB, 20 * MIB, 24 * MIB, 32 * MIB, 48 * MIB]


def log_uniform(r, low, high):
    return int(math.exp(r.uniform(math.log(low), math.log(high))))


def random_settings(r, version, at_start):
    """A settings string the version accepts (almost always). A split limit only comes at the start: a limit lowered over
    blocks that were already split makes torch free pieces of segments, which the driver refuses."""
    parts = []
    segment = 20
    if version >= (2, 11) and r.random() < 0.15:
        segment = r.choice([12, 16, 32, 64])
        parts.append("large_segment_size_mb:%d" % segment)
    if at_start and r.random() < 0.4:
        least = segment if version >= (2, 11) else 20 if version >= (2, 10) else 21
        parts.append("max_split_size_mb:%d" % r.choice([least, least + 1, 64 + segment, 128, 200, 512]))
        if version >= (2, 6) and r.random() < 0.3:
            parts.append("max_non_split_rounding_mb:%d" % r.choice([segment + (version < (2, 10)), 64 + segment, 200]))
    if r.random() < 0.25:
        parts.append("garbage_collection_threshold:%s" % r.choice(["0.3", "0.6", "0.85"]))
    if r.random() < 0.25:
        parts.append("roundup_power2_divisions:%s" % r.choice(["1", "2", "4", "8", "16", "[256:1,512:2,1024:4,>:8]",
                                                               "[1:16,4:8,16:4,>:2]", "[64:8,>:1]"]))
    limited = any(part.startswith("max_split") for part in parts)
    if r.random() < 0.35 and not (limited and version < (2, 5)):  # together, in a private pool, torch before 2.5 frees
        parts.append("expandable_segments:True")                  # segments that have live blocks
    if version >= (2, 10) and r.random() < 0.15:
        parts.append("per_process_memory_fraction:%s" % r.choice(["0.4", "0.75", "1.0"]))
    if version >= (2, 12) and r.random() < 0.08:
        parts.append("throw_on_cudamalloc_oom:True")
    r.shuffle(parts)
    return ",".join(parts)


class Trace:
    def __init__(self, seed, version, count):
        self.r = r = random.Random(seed)
        self.version, self.count = version, count
        self.total = r.choice([600 * MIB, 1200 * MIB, 2 * GIB, 3 * GIB, 6 * GIB, 16 * GIB])
        self.base = r.choice([0, 100 * MIB, 300 * MIB])
        self.placement = r.choice(["bump", "firstfit"])
        self.settings = random_settings(r, version, True)
        self.nvml = True
        self.streams = r.sample([0, 4096, 8192, 12288], r.choice([1, 1, 2, 4]))
        self.sizes = r.choice(["grid", "mixed", "small", "large"])
        self.fill = r.uniform(0.5, 1.1) * (self.total - self.base)
        self.rates = {"record": r.choice([0, 0, 0.05, 0.15]), "complete": r.choice([0.01, 0.05]),
                      "empty": r.choice([0, 0.001, 0.01]), "pool": r.choice([0, 0.004, 0.02]),
                      "capture": r.choice([0, 0, 0.004, 0.01]), "settings": r.choice([0, 0, 0.002]),
                      "fraction": r.choice([0, 0, 0.001]), "option": r.choice([0, 0.003]), "snapshot": 0.002}
        if version < (2, 6):  # MemPools cannot be made from C++ yet
            self.rates["pool"] = 0
        self.ops, self.live, self.live_bytes, self.next_id = [], {}, 0, 1
        self.current = None
        self.open = []   # routes: (id, is_capture)
        self.idle = []   # MemPools that can be entered
        self.graphs = [] # graph pools whose references are still held
        self.captured = set()
        self.lenders = set()  # never deleted: torch asks them without looking whether they still live
        self.pools = 0
        self.make()

    def size(self):
        r = self.r
        if self.sizes == "grid":
            return r.choice(GRID)
        if self.sizes == "small":
            return log_uniform(r, 1, 2 * MIB)
        if self.sizes == "large":
            return log_uniform(r, MIB, self.total // 4)
        low, high = r.choice([(1, 65536), (65536, MIB), (MIB + 1, 10 * MIB), (10 * MIB, 64 * MIB)])
        return log_uniform(r, low, high)

    def put(self, *words):
        self.ops.append(" ".join(str(w) for w in words))

    def malloc(self):
        captured = bool(self.open) and self.open[-1][1]
        if not captured or self.current is None:
            self.current = self.r.choice(self.streams)
        size = self.size()
        self.put("malloc", self.next_id, size, self.current)
        self.live[self.next_id] = size
        self.live_bytes += size
        self.next_id += 1

    def capturing(self):
        """Whether torch takes this for a capture: before 2.13 any pool that is entered, since then a capture proper."""
        return bool(self.open) and (self.version < (2, 13) or self.open[-1][1])

    def free(self):
        """A block whose stream was recorded during a capture is only freed during one: torch remembers such streams by
        the address of its own block object, and what a later object at that address inherits is an accident."""
        ids = [i for i in self.live if i not in self.captured or self.capturing()]
        if not ids:
            return
        recent = self.r.random() < 0.5
        at = len(ids) - 1 - min(len(ids) - 1, int(self.r.expovariate(1 / 12))) if recent else self.r.randrange(len(ids))
        self.put("free", ids[at])
        self.live_bytes -= self.live.pop(ids[at])

    def record(self):
        block = self.r.choice(list(self.live))
        if self.capturing():
            self.captured.add(block)
        self.put("record_stream", block, self.r.choice(self.streams))

    def enter_or_leave(self):
        r = self.r
        if self.open and r.random() < 0.6:
            if self.open[-1][1]:
                return
            pool, _ = self.open.pop()
            self.put("pool_end", pool)
            self.put("pool_release", pool)
            self.idle.append(pool)
        elif any(capture for _, capture in self.open):
            return
        elif self.idle and r.random() < 0.6:
            pool = self.idle.pop(r.randrange(len(self.idle)))
            may_delete = pool not in self.lenders and (not self.open or self.version >= (2, 13))
            if may_delete and r.random() < 0.3:  # the MemPool is deleted; before 2.13 that
                self.put("pool_release", pool)  # inside another pool's scope is an internal error of torch
                self.put("empty_cache", pool)
            else:
                self.put("pool_begin", pool)
                self.open.append((pool, False))
        elif len(self.open) < 2:
            self.pools += 1
            pool = "0.%d" % self.pools
            self.put("pool_create", pool)
            self.put("pool_begin", pool)
            self.open.append((pool, False))

    def capture(self):
        r = self.r
        if self.open and self.open[-1][1]:
            pool, _ = self.open.pop()
            self.put("capture_end", pool)
            self.graphs.append(pool)
        elif self.graphs and r.random() < 0.3:
            self.put("pool_release", self.graphs.pop(r.randrange(len(self.graphs))))
        elif not self.open and self.current is not None:
            shared = self.graphs and r.random() < 0.4
            self.pools += 0 if shared else 1
            pool = r.choice(self.graphs) if shared else "%d.0" % self.pools
            self.put("capture_begin", pool)
            self.open.append((pool, True))

    def empty_cache(self):
        if not self.open or self.version >= (2, 8):  # before, torch asserted that nothing is being captured
            self.put("empty_cache", "0.0")

    def option(self):
        known = self.idle + [p for p, capture in self.open if not capture]
        if not known:
            return
        pool = self.r.choice(known)
        if self.version >= (2, 10) and self.r.random() < 0.3:
            self.put("no_split", pool)
        elif self.version >= (2, 8):
            self.put("use_on_oom", pool)
            self.lenders.add(pool)

    def step(self):
        r, rates = self.r, self.rates
        x = r.random()
        for name, act in (("record", self.record if self.live else None), ("pool", self.enter_or_leave),
                          ("complete", lambda: self.put("complete", r.choice(self.streams))),
                          ("empty", self.empty_cache), ("capture", self.capture),
                          ("settings", lambda: self.put("set_settings", random_settings(r, self.version, False) or
                                                        "expandable_segments:False")),
                          ("fraction", lambda: self.put("set_memory_fraction", r.choice([0.3, 0.6, 0.9, 1]))),
                          ("option", self.option), ("snapshot", lambda: self.put(r.choice(["snapshot", "stats"])))):
            if x < rates[name]:
                return act() if act else None
            x -= rates[name]
        wanted = 0.95 if self.live_bytes < self.fill / 4 else 0.58 if self.live_bytes < self.fill else 0.3
        if not self.live or r.random() < wanted:
            self.malloc()
        else:
            self.free()
        return None

    def make(self):
        while len(self.ops) < self.count:
            self.step()

    def meta(self, torch):
        return {"op": "meta", "torch": torch, "settings": self.settings, "device_total": self.total,
                "device_base_used": self.base, "va_policy": self.placement, "nvml": self.nvml, "ops": len(self.ops),
                "hash_order": any(op.startswith("record_stream") for op in self.ops),
                "events_recorded": self.version >= (2, 2)}  # before, nothing can listen
