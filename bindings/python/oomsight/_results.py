"""Results with types. The figures are those of the JSON reports (docs/reference/formats), read when they are first asked for; the raw
object is in `data`. Bytes are integers, an unknown quantity is None, never 0."""
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ._abi import VERDICTS, CCheckResult, CIncident, Handle, UsageError


def parse(text: str) -> Any:
    import json  # not needed by those who only want the verdict

    return json.loads(text)


class Hold(NamedTuple):
    """One row of a ledger: who holds how many bytes, and how that is known."""
    owner: str
    bytes: int
    source: str  # measured, read, derived or estimated
    low: int
    high: int
    how: Optional[str] = None


class Phase(NamedTuple):
    """The device at the worst moment of one phase."""
    phase: str
    peak_bytes: int
    limit_bytes: int
    ok: bool
    holds: Tuple[Hold, ...]


class Fix(NamedTuple):
    """Words to add to the command, the whole command to paste, what is kept and what is given up."""
    change: Tuple[str, ...]
    verdict: Optional[str]
    kv_tokens: Optional[int]
    keeps: Optional[str]
    gives_up: Optional[str]
    why: Optional[str] = None
    command: Optional[str] = None
    without: Optional[str] = None
    name: Optional[str] = None


class Inert(NamedTuple):
    """A flag that people would try and that changes nothing here."""
    flag: str
    why: str


class Gpu(NamedTuple):
    name: Optional[str]
    devices: Optional[int]
    total_bytes: Optional[int]


class Choice(NamedTuple):
    """A GPU on which a command likely starts, with the fewest cards that are enough."""
    gpu: str
    count: int  # type: ignore[assignment]
    memory_bytes: int
    flags: Tuple[str, ...]
    verdict: str
    probability: Optional[float]
    kv_tokens: int


class GpuModel(NamedTuple):
    """A GPU or a slice of one that is known by name."""
    name: str
    slice: Optional[str]
    total_bytes: int
    compute_capability: float
    aliases: Tuple[str, ...]


class Checked(NamedTuple):
    """A command in a deployment file, planned; `problem` says why it could not be."""
    file: str
    line: int
    name: Optional[str]
    command: Tuple[str, ...]
    gpu: Optional[str]
    engine_version: Optional[str]
    answer: Optional[str]
    phase: Optional[str]
    why: Optional[str]
    best_flags: Optional[str]
    best_command: Optional[str]
    problem: Optional[str]


class Point(NamedTuple):
    """One combination of a matrix; `problem` says why it has no answer."""
    model: str
    gpu: str
    flags: str
    version: str
    answer: Optional[str]
    phase: Optional[str]
    kv_tokens: Optional[int]
    why: Optional[str]
    problem: Optional[str]

    @property
    def fits(self) -> bool:
        return self.answer == "starts"


class Evidence(NamedTuple):
    """A line of a log."""
    line: int
    text: str
    decides: bool


class WhatIf(NamedTuple):
    """The replay under other settings."""
    label: str
    outcome: str
    peak_reserved_bytes: Optional[int]


def _hold(row: Dict[str, Any]) -> Hold:
    return Hold(row["owner"], row["bytes"], row["source"], row.get("low", row["bytes"]), row.get("high", row["bytes"]), row.get("how"))


def _phase(row: Dict[str, Any]) -> Phase:
    return Phase(row["phase"], row["peak_bytes"], row["limit_bytes"], row["ok"], tuple(_hold(h) for h in row["holds"]))


def _fix(row: Dict[str, Any]) -> Fix:
    return Fix(tuple(row["change"]), row.get("verdict"), row.get("kv_tokens"), row.get("keeps"), row.get("gives_up"), row.get("why"),
               row.get("command"), row.get("without"), row.get("name"))


def framed(page: str, height: int) -> str:
    """A whole page inside another one: a notebook shows it in a frame of its own, so neither disturbs the other."""
    source = page.replace("&", "&amp;").replace('"', "&quot;")
    return '<iframe srcdoc="%s" title="oomsight report" sandbox="allow-scripts" style="width:100%%;height:%dpx;border:0"></iframe>' % (source, height)


def page_text(page: str) -> str:
    """The report for a terminal, which a page carries for browsers without scripts."""
    plain = page.split("<noscript><pre>", 1)[1].split("</pre>", 1)[0]
    return plain.replace("&lt;", "<").replace("&amp;", "&")


class _Report:
    """What every result can do."""
    _handle: Handle
    _data: Optional[Dict[str, Any]] = None

    @property
    def data(self) -> Dict[str, Any]:
        """The JSON report as Python objects."""
        if self._data is None:
            self._data = parse(self._handle.render("json"))
        return self._data

    def text(self, explain: bool = False, width: int = 100, language: Optional[str] = None) -> str:
        """The report for a terminal; with `explain`, how each number came to be. `language`: "en", "zh", or as the environment says."""
        return self._handle.render("text", explain, width, language)

    def markdown(self, language: Optional[str] = None) -> str:
        return self._handle.render("md", language=language)

    def html(self, language: Optional[str] = None) -> str:
        """One page that needs no network."""
        return self._handle.render("html", language=language)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return framed(self.html(), 900)


class Plan(_Report):
    """Will it start, and how much is left."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def verdict(self) -> str:
        """fits, tight (inside the error bar), fails, refused (the engine itself says no) or unknown."""
        return VERDICTS[self._handle.call("verdict")]

    @property
    def answer(self) -> str:
        """What people read: starts, likely starts, likely fails, fails or can't tell."""
        return str(self._handle.call("answer").decode())

    @property
    def probability(self) -> Optional[float]:
        """Of starting: 0 to 1, as measured starts of that estimate turned out; None when nobody can tell."""
        found = float(self._handle.call("probability"))
        return None if found < 0 else found

    @property
    def doubts(self) -> Tuple[str, ...]:
        """Why a start that fits is not certain."""
        return tuple(self.data.get("doubts", ()))

    @property
    def choices(self) -> Tuple[Choice, ...]:
        """Of a plan for gpu="all": every GPU on which it will probably start, the least memory first."""
        return tuple(Choice(row["gpu"], row["count"], row["memory_bytes"], tuple(row["flags"]), row["verdict"], row["probability"], row["kv_tokens"])
                     for row in self.data.get("choices", ()))

    @property
    def fits(self) -> bool:
        """It will start or will probably start."""
        return self.answer in ("will start", "will probably start")

    def __bool__(self) -> bool:
        return self.fits

    @property
    def phase(self) -> Optional[str]:
        """The first phase that fails."""
        phase: Optional[bytes] = self._handle.call("phase")
        return None if phase is None else phase.decode()

    @property
    def weights_bytes(self) -> int:
        """On the rank that holds most: what the engine prints as "Model loading took"."""
        return int(self._handle.call("weights_bytes"))

    @property
    def kv_tokens(self) -> int:
        return int(self._handle.call("kv_tokens"))

    @property
    def best_flags(self) -> Optional[str]:
        """The flags of the best fix, ready to paste; "" when it fits as it is, None when no fix was found."""
        flags: Optional[bytes] = self._handle.call("best_flags")
        return None if flags is None else flags.decode()

    @property
    def best_command(self) -> Optional[str]:
        """The whole command of the best fix, ready to paste; None when there is none."""
        command: Optional[bytes] = self._handle.call("best_command")
        return None if command is None else command.decode()

    @property
    def cause(self) -> Optional[str]:
        return self.data.get("cause")

    @property
    def why(self) -> Optional[str]:
        return self.data["why"]  # type: ignore[no-any-return]

    @property
    def tried_bytes(self) -> Optional[int]:
        """The allocation the engine would print as "Tried to allocate"."""
        return self.data.get("tried_bytes")

    @property
    def gpu(self) -> Optional[Gpu]:
        """None of a plan for gpu="all": see `choices`."""
        gpu = self.data.get("gpu")
        return gpu and Gpu(gpu["name"], gpu["count"], gpu["total_bytes"])

    @property
    def phases(self) -> Tuple[Phase, ...]:
        return tuple(_phase(row) for row in self.data.get("phases", ()))

    @property
    def fixes(self) -> Tuple[Fix, ...]:
        return tuple(_fix(row) for row in self.data.get("fixes", ()))

    @property
    def inert(self) -> Tuple[Inert, ...]:
        return tuple(Inert(row["flag"], row["why"]) for row in self.data.get("inert", ()))

    @property
    def notes(self) -> Tuple[str, ...]:
        return tuple(self.data.get("notes", ()))

    def __repr__(self) -> str:
        return "<oomsight.Plan %s%s>" % (self.answer, " in " + self.phase if self.phase else "")


class Incident:
    """One failure in a log, or what was learnt of a healthy start."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self.data = data
        self.is_oom: bool = data["is_oom"]
        self.phase: str = data["phase"]
        self.cause: Optional[str] = data["cause"]
        self.confidence: float = data["confidence"]
        self.basis: Optional[str] = data["basis"]
        self.phases: Tuple[str, ...] = tuple(data["phases"])
        self.question: Optional[str] = data["question"]
        self.signature: Optional[str] = data["signature"]
        self.numbers: Dict[str, Any] = data["numbers"]
        self.fingerprint: str = data["fingerprint"]
        self.first_line: int = data["first_line"]
        self.last_line: int = data["last_line"]

    @property
    def ledger(self) -> Tuple[Hold, ...]:
        return tuple(_hold(row) for row in self.data["ledger"])

    @property
    def evidence(self) -> Tuple[Evidence, ...]:
        return tuple(Evidence(row["line"], row["text"], row["decides"]) for row in self.data["evidence"])

    @property
    def fixes(self) -> Tuple[Fix, ...]:
        return tuple(_fix(row) for row in self.data["fixes"])

    @property
    def dead_ends(self) -> Tuple[Fix, ...]:
        return tuple(_fix(row) for row in self.data["dead_ends"])

    def __repr__(self) -> str:
        return "<oomsight.Incident %s in %s>" % (self.cause, self.phase) if self.is_oom else "<oomsight.Incident none>"


class Explanation(_Report):
    """Why did it run out, what to change. A sequence of incidents; at least one, also when nothing was found."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._incidents: Optional[List[Incident]] = None

    @property
    def incidents(self) -> List[Incident]:
        if self._incidents is None:
            self._incidents = [Incident(parse(line)) for line in self._handle.render("json").splitlines() if line]
        return self._incidents

    @property
    def data(self) -> Dict[str, Any]:
        """The first incident; see `incidents` for the others."""
        return self.incidents[0].data

    @property
    def is_oom(self) -> bool:
        return any(self._handle.result("incident", CIncident, i).is_oom for i in range(len(self)))

    def __len__(self) -> int:
        return int(self._handle.call("count"))

    def __getitem__(self, index: int) -> Incident:
        return self.incidents[index]

    def __iter__(self) -> Iterator[Incident]:
        return iter(self.incidents)

    def __repr__(self) -> str:
        return "<oomsight.Explanation %s>" % ", ".join(repr(incident) for incident in self.incidents)


class Replay(_Report):
    """What would other allocator settings have done."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def ran_out(self) -> bool:
        return bool(self._handle.call("oom"))

    @property
    def peak_allocated_bytes(self) -> int:
        return int(self._handle.call("peak_allocated_bytes"))

    @property
    def peak_reserved_bytes(self) -> int:
        return int(self._handle.call("peak_reserved_bytes"))

    @property
    def oom_message(self) -> Optional[str]:
        return self.data["oom_message"]  # type: ignore[no-any-return]

    @property
    def what_if(self) -> Tuple[WhatIf, ...]:
        return tuple(WhatIf(row["label"], row["outcome"], row.get("peak_reserved_bytes")) for row in self.data["what_if"])

    def __repr__(self) -> str:
        return "<oomsight.Replay %s, peak %d bytes reserved>" % ("out of memory" if self.ran_out else "ok", self.peak_reserved_bytes)


class Check(_Report):
    """The engine commands in deployment files, each planned. True when every one of them starts."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def commands(self) -> Tuple[Checked, ...]:
        return tuple(Checked(row["file"], row["line"], row["name"], tuple(row["command"]), row["gpu"], row["engine_version"], row["likely"],
                             row["phase"], row["why"], row["best_flags"], row["best_command"], row["problem"]) for row in self.data["commands"])

    @property
    def failing(self) -> int:
        """How many do not start."""
        return int(self._handle.result("result_get", CCheckResult).failing)

    @property
    def unplanned(self) -> int:
        """How many could not be planned, for instance because no GPU is named."""
        return int(self._handle.result("result_get", CCheckResult).unplanned)

    def sarif(self) -> str:
        """For code scanning and editors."""
        return self._handle.render("sarif")

    def patch(self) -> str:
        """Unified diffs of the files with the suggested flags, for `patch -p0`."""
        return self._handle.render("patch")

    def __bool__(self) -> bool:
        return self.failing == 0 and self.unplanned == 0

    def __len__(self) -> int:
        return int(self._handle.result("result_get", CCheckResult).item_count)

    def __iter__(self) -> Iterator[Checked]:
        return iter(self.commands)

    def __repr__(self) -> str:
        return "<oomsight.Check %d commands, %d do not start>" % (len(self), self.failing)


class Matrix:
    """Models x GPUs x flags x versions. A sequence of points; true when every one of them starts."""

    def __init__(self, lines: str) -> None:
        self.data: List[Dict[str, Any]] = [parse(line) for line in lines.splitlines() if line]
        self.points: Tuple[Point, ...] = tuple(
            Point(row["model"], row["gpu"], row["flags"], row["version"], row["likely"], row["phase"],
                  (row["kv"] or {}).get("tokens"), row["why"], row["problem"]) for row in self.data)

    def __bool__(self) -> bool:
        return all(point.fits for point in self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> Point:
        return self.points[index]

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __repr__(self) -> str:
        return "<oomsight.Matrix %d points, %d start>" % (len(self), sum(point.fits for point in self.points))


class DryRun:
    """The real engine on a GPU that is not there: what was measured."""

    def __init__(self, report: str, shown: str, exit_code: int) -> None:
        self._shown, self.exit_code = shown, exit_code
        self.data: Dict[str, Any] = parse(report)
        self.verdict: str = self.data["verdict"]
        self.phase: Optional[str] = self.data["phase"]
        self.tried_bytes: Optional[int] = self.data["tried_bytes"]
        self.weights_bytes: Optional[int] = self.data["weights_bytes"]

    @property
    def fits(self) -> bool:
        return self.verdict in ("fits", "tight")

    @property
    def phases(self) -> Tuple[Phase, ...]:
        return tuple(_phase(row) for row in self.data["phases"])

    @property
    def _is_page(self) -> bool:
        return self._shown.lstrip().startswith("<!doctype html>")

    def text(self) -> str:
        return page_text(self._shown) if self._is_page else self._shown

    def html(self) -> str:
        if not self._is_page:
            raise UsageError(7, "the HTML page needs dryrun(html=True)")
        return self._shown

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return framed(self._shown, 900) if self._is_page else "<pre>%s</pre>" % self._shown.replace("&", "&amp;").replace("<", "&lt;")

    def __repr__(self) -> str:
        return "<oomsight.DryRun %s%s>" % (self.verdict, " in " + self.phase if self.phase else "")
