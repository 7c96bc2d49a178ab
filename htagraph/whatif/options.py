"""Changes, each a method and an option such as ``--scale 'name=*gemm*:0.5'``; criteria and sweeps, read and written.

Criteria are ``key=value`` pairs separated by commas; the number of a change follows the last colon. A value may contain
colons, and commas, because a new criterion begins only where a key and ``=`` follow. A value that contains even that
goes into double quotes, with ``""`` for a quote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, getdoc, signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, NamedTuple, ParamSpec, Protocol, overload

from htagraph.core.errors import nearest_words
from htagraph.whatif import changes

if TYPE_CHECKING:
    from htagraph.graph.selection import Selection
    from htagraph.queries.weights import State
    from htagraph.whatif.scenario import Scenario

__all__ = [
    "CHANGES", "MAX_POINTS", "Change", "Changes", "Sweep", "amount", "bandwidth", "criteria", "criteria_text",
    "duration_ns", "numbers", "read_sweep",
]  # fmt: skip

P = ParamSpec("P")


class Change(NamedTuple):
    """One change of a scenario, as asked for."""

    method: str
    """Name of the method of `Scenario`."""
    options: dict[str, Any]
    """Keywords of the method."""

    def apply(self, scenario: Scenario) -> Scenario:
        """Return the scenario with this change added."""
        changed: Scenario = getattr(scenario, self.method)(**self.options)
        return changed


class ChangeMethod(Protocol[P]):
    """A method of a scenario: keywords, a selection and a number, or the text of the option on the command line."""

    @overload
    def __call__(self, *given: P.args, **options: P.kwargs) -> Scenario: ...

    @overload
    def __call__(self, which: Selection | str | float, amount: float | str = ..., /, **options: object) -> Scenario: ...


class ChangeForm(Generic[P]):
    """A change: a method of `Scenario`, and its option on the command line.

    The file of the change is imported when the method is looked up.
    """

    def __init__(
        self, change: Callable[[], Callable[Concatenate[State, P], State]], metavar: str = "", help: str = "",
        reader: Callable[[str], dict[str, Any] | Change] | None = None, option: str = "",
    ) -> None:  # fmt: skip
        self.metavar = metavar
        """The option's value, as the help shows it; empty if it takes none, in brackets if it may be left out."""
        self.help = help
        """What the change does; empty for a method without an option of its own."""
        self.option = option
        """Without its dashes; the name of the method, with ``-`` for ``_``, where the row says no other."""
        self._change = change
        self._reader = reader or _nothing

    def __set_name__(self, owner: type[Changes], name: str) -> None:
        self.method = name
        self.option = self.option or (name.replace("_", "-") if self.help else "")

    @overload
    def __get__(self, scenario: None, owner: type[Changes]) -> Callable[Concatenate[Scenario, P], Scenario]: ...

    @overload
    def __get__(self, scenario: Changes, owner: type[Changes]) -> ChangeMethod[P]: ...

    def __get__(self, scenario: Changes | None, owner: type[Changes]) -> Any:
        """Return the method, which takes this one's place in the class of the scenario."""
        method: Any = _adding(self._change(), self.read)
        setattr(owner, self.method, method)
        return method.__get__(scenario, owner)

    @property
    def value(self) -> Literal["required", "optional", "none"]:
        """Whether the option takes a value; an optional one is given after ``=`` only."""
        return "none" if not self.metavar else "optional" if self.metavar.startswith("[") else "required"

    def read(self, text: str) -> Change:
        """Return the change that the option's value means; raise ValueError for what cannot be read."""
        given = self._reader(text)
        return given if isinstance(given, Change) else Change(self.method, given)


def _adding(change: Callable[..., State], read: Callable[[str], Change]) -> Callable[..., Scenario]:
    """Return the method that adds a change to a scenario. Its help is that of the change."""
    own = signature(change)

    @wraps(change)
    def method(scenario: Scenario, /, *given: object, **options: object) -> Scenario:
        from htagraph.whatif.positional import check_keywords, of_graph, positional_options  # help needs no numpy

        if given:
            spoken = positional_options(change.__name__, own, read, given)
            if isinstance(spoken, Change):
                return Change(spoken.method, spoken.options | options).apply(scenario)
            options = spoken | options
        check_keywords(change.__name__, own, options)
        options = of_graph(options, scenario.graph, scenario.state.graph)
        state = change(scenario.state, **options)
        asked = own.bind(scenario.state, **options)
        asked.apply_defaults()
        *named, last = list(asked.arguments.items())[1:] or [("", {})]
        criteria = last[1] if isinstance(last[1], dict) else dict([last])
        return scenario._after(change.__name__, state, dict(named) | criteria)

    scenario = Parameter("self", Parameter.POSITIONAL_ONLY)
    shown = own.replace(parameters=[scenario, *list(own.parameters.values())[1:]], return_annotation="Scenario")
    vars(method)["__signature__"] = shown
    text = (getdoc(change) or "").replace("Return the state", "Return the scenario", 1)
    method.__doc__ = re.sub(r"    state: .*\n", "", text)
    return method


def _nothing(text: str) -> dict[str, Any]:
    if text:
        raise _refused(text, " is given to a change that takes nothing")
    return {}


def _selection(text: str) -> dict[str, Any]:
    return criteria(text) if text else {}


_TIMES = re.compile(r"(\d+\.?\d*)\s*[x×]")
"""How many times as fast something is: 2x."""


def _scale(text: str) -> dict[str, Any]:
    which, factor = _split(text, "FACTOR")
    if which.endswith(":"):  # the colons are those of a name
        raise _refused(text, f" has no factor: write {text}:0.5 for half the time")
    return {"factor": _factor(factor, "a factor such as 0.5, or 2x for twice as fast"), **criteria(which)}


def _set(text: str) -> dict[str, Any]:
    which, duration = _split(text, "DURATION")
    return {"ns": duration_ns(duration), **criteria(which)}


def _factor(text: str, what: str) -> float:
    """Return how many times as long something takes: 2 is twice as long, 2x is twice as fast."""
    faster = _TIMES.fullmatch(text.strip())
    return 1 / float(faster[1]) if faster and float(faster[1]) else _number(text, what)


def _network_factor(text: str) -> dict[str, Any]:
    return {"factor": _factor(text, "a factor such as 0.5, 2x for twice as fast, or latency=10us,bandwidth=100GB/s")}


def _network(text: str) -> Change:
    if "=" not in text:
        return Change("scale_network", _network_factor(text))
    options: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        if key == "latency":
            options["latency_us"] = duration_ns(value) / 1000
        elif key == "bandwidth":
            options["bandwidth_gb_s"] = bandwidth(value)
        else:
            raise _refused(text, f": {key!r} is neither latency nor bandwidth")
    return Change("network", options)


def _steps(text: str) -> dict[str, Any]:
    given = criteria(text)
    if "step" not in given or not given.keys() <= {"step", "rank"}:
        raise _refused(text, ": give step=N or step=N-M, and rank= unless all ranks are meant")
    return given


def _slower_rank(text: str) -> dict[str, Any]:
    which, factor = _split(text, "FACTOR")
    given = criteria(which)
    if not isinstance(given.get("rank"), int):
        raise _refused(text, ": give the one rank that is to be slower, such as rank=2:1.3")
    return {"factor": _number(factor, "a factor such as 1.3"), **given}


def _noise(text: str) -> dict[str, Any]:
    sigma, _, runs = text.partition(":")
    given: dict[str, Any] = {"sigma": _number(sigma, "a relative deviation such as 0.05")}
    return given | ({"runs": _whole(runs, "a number of runs")} if runs else {})


def _stream(text: str) -> dict[str, Any]:
    which, stream = _split(text, "STREAM")
    given = criteria(which)
    if "stream" in given:
        raise _refused(text, ": stream= cannot be a criterion here; select the work by other criteria")
    return {**given, "stream": _whole(stream, "the number of a stream")}


_RANK_KEYS = ("data", "tensor", "pipeline", "microbatches", "gradients_mb", "activations_mb", "bandwidth_gb_s")


def _ranks(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals and not options and key != "strong":
            options["n"] = _whole(key, "a number of ranks")
        elif key in _RANK_KEYS:
            options[key] = (_whole if key in _RANK_KEYS[:4] else _number)(value, f"{key}= and a number")
        elif key == "strong":
            options["strong"] = _on_or_off(value or "on")["on"]
        elif key == "groups" and equals:
            options[key] = value
        elif "groups" in options and not equals:  # a label with commas
            options["groups"] += f",{part}"
        else:
            raise _refused(text, f": {key!r} is none of {', '.join(_RANK_KEYS)}, strong and groups")
    return options


def _on_or_off(text: str) -> dict[str, Any]:
    if text not in ("on", "off"):
        raise _refused(text, " is neither on nor off")
    return {"on": text == "on"}


def _batch(text: str) -> dict[str, Any]:
    recorded, _, new = text.rpartition(":")
    size = _whole(new, "RECORDED:NEW, such as 32:128, or :128")
    return {"recorded": None if recorded in ("", "auto") else _whole(recorded, "a batch size"), "new": size}


def _device(text: str) -> dict[str, Any]:
    name, *more = (each.strip() for each in text.split(","))
    if not all(each.startswith("recorded=") for each in more) or len(more) > 1:
        raise _refused(text, " is no device: write NAME, or NAME,recorded=NAME if the recording does not name its own")
    return {"name": name, "recorded": more[0].removeprefix("recorded=") if more else ""}


def _group(text: str) -> dict[str, Any]:
    return {"group": text or None}


class Changes:
    """The changes that a scenario takes, in the order of their options in the help."""

    scale = ChangeForm(lambda: changes.scale.scale, "CRITERIA:FACTOR",
        "Selected work takes FACTOR times as long (2x: is twice as fast).", _scale)  # fmt: skip
    set_duration = ChangeForm(lambda: changes.set_duration.set_duration, "CRITERIA:DURATION",
        "Each selected activity takes DURATION, such as 12us.", _set, option="set")  # fmt: skip
    set = ChangeForm(lambda: changes.set_duration.set_duration, reader=_set)
    remove = ChangeForm(lambda: changes.remove.remove, "CRITERIA",
        "Selected work and its launches are left out.", _selection)  # fmt: skip
    network = ChangeForm(lambda: changes.network.network, "FACTOR|NETWORK",
        "Transfers take FACTOR times as long (2x: are twice as fast), or as long as on this NETWORK, such as "
        "latency=10us,bandwidth=100GB/s; waits are replayed.",
        _network)  # fmt: skip
    device = ChangeForm(lambda: changes.device.device, "NAME[,recorded=NAME]",
        "Kernels run on another device, such as 'H100 SXM'; the host and the network stay.", _device)  # fmt: skip
    host_factor = ChangeForm(lambda: changes.host_factor.host_factor, "FACTOR",
        "Host work takes FACTOR times as long, such as on another device's host.",
        lambda text: {"factor": _factor(text, "a factor such as 0.8, or 2x for twice as fast")})  # fmt: skip
    scale_network = ChangeForm(lambda: changes.scale_network.scale_network, reader=_network_factor)
    fix_straggler = ChangeForm(lambda: changes.fix_straggler.fix_straggler, "auto|RANK",
        "The rank's own work is as fast as the same work on other ranks.",
        lambda text: {"rank": text if text == "auto" else _whole(text, "auto or the number of a rank")})  # fmt: skip
    no_launch_overhead = ChangeForm(lambda: changes.no_launch_overhead.no_launch_overhead, "[=CRITERIA]",
        "Launch calls and launch latency take no time.", _selection)  # fmt: skip
    no_interruptions = ChangeForm(lambda: changes.no_interruptions.no_interruptions, "",
        "Host code that was interrupted takes as long as it usually does.")  # fmt: skip
    infinite_host = ChangeForm(lambda: changes.infinite_host.infinite_host, "", "Host work takes no time.")
    infinite_gpu = ChangeForm(lambda: changes.infinite_gpu.infinite_gpu, "",
        "Kernels and copies take no time; transfers between ranks still do.")  # fmt: skip
    cuda_graph = ChangeForm(lambda: changes.cuda_graph.cuda_graph, "step=N[,rank=R]",
        "Each step's kernels are launched at once, as one CUDA graph.", _steps)  # fmt: skip
    inject = ChangeForm(lambda: changes.inject.inject, "rank=R[,kind=KIND]:FACTOR",
        "One rank's kernels, host or loader (KIND) take FACTOR times as long.", _slower_rank)  # fmt: skip
    jitter = ChangeForm(lambda: changes.jitter.jitter, "SIGMA[:RUNS]",
        "Durations vary at random (relative deviation SIGMA, RUNS times); shows p50 and p99.", _noise)  # fmt: skip
    free_dataloader = ChangeForm(lambda: changes.free_dataloader.free_dataloader, "[=CRITERIA]",
        "The data loader always has the next batch ready.", _selection)  # fmt: skip
    free_outside = ChangeForm(
        lambda: changes.free_outside.free_outside,
        "[=CRITERIA]",
        "No thread waits for what was not recorded, such as another process.",
        _selection,
    )
    exclusive_device = ChangeForm(
        lambda: changes.exclusive_device.exclusive_device, "", "Devices run nothing but the recorded work."
    )
    remove_sync = ChangeForm(lambda: changes.remove_sync.remove_sync, "CRITERIA",
        "Blocking calls do not wait for the device.", _selection)  # fmt: skip
    pin_memory = ChangeForm(
        lambda: changes.pin_memory.pin_memory,
        "",
        "Copies use pinned memory; hosts do not wait for copies to the device.",
    )
    perfect_overlap = ChangeForm(lambda: changes.perfect_overlap.perfect_overlap, "[=GROUP]",
        "No other work waits for collectives (of this process group): an upper bound.", _group)  # fmt: skip
    no_overlap = ChangeForm(lambda: changes.no_overlap.no_overlap, "[=GROUP]",
        "Collectives (of this process group) do not overlap with computation.", _group)  # fmt: skip
    shared_link = ChangeForm(lambda: changes.shared_link.shared_link, "on|off",
        "Transfers that overlap slow each other down, or do not; by default as recorded.", _on_or_off)  # fmt: skip
    fuse = ChangeForm(lambda: changes.fuse.fuse, "CRITERIA",
        "Selected kernels that follow each other on a stream become one.", _selection)  # fmt: skip
    move_to_stream = ChangeForm(lambda: changes.move_to_stream.move_to_stream, "CRITERIA:STREAM",
        "Selected kernels and copies run on this stream.", _stream)  # fmt: skip
    batch = ChangeForm(lambda: changes.batch.batch, "RECORDED:NEW",
        "The batch is NEW, and not RECORDED (:NEW finds the recorded one by shapes).", _batch)  # fmt: skip
    scale_ranks = ChangeForm(lambda: changes.scale_ranks.scale_ranks, "N|SIZES",
        "The job has N ranks that work like the recorded ones, or SIZES such as data=8,pipeline=4; with strong=on "
        "they share the work that there is: an extrapolation.",
        _ranks)  # fmt: skip


CHANGES: dict[str, ChangeForm[...]] = {
    form.option: form for form in vars(Changes).values() if isinstance(form, ChangeForm) and form.option
}
"""The options of ``htagraph what-if`` by name; they apply in their order on the command line."""


def _refused(text: str, why: str) -> ValueError:
    return ValueError(f"{text!r}{why}")


def _split(text: str, what: str) -> tuple[str, str]:
    """Return the text before and after the last colon."""
    before, colon, after = text.rpartition(":")
    if not colon:
        raise _refused(text, f" lacks :{what} at its end")
    return before, after


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _refused(text, f" is not {what}") from None


def _whole(text: str, what: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text.strip()):
        raise _refused(text, f" is not {what}")
    return int(text)


KEYS = (
    "kind", "name", "op", "beside", "backward_of", "rank", "stream", "step", "step_index", "time", "min_us", "max_us",
    "category", "regex", "depth", "activity", "after", "before",
)  # fmt: skip
"""Every criterion of `DependencyGraph.select`, and the two that Python between operators has besides."""
_NUMBERED = ("rank", "stream", "step", "depth", "activity")
_DURATIONS = ("min_us", "max_us")
_TEXTS = frozenset(KEYS) - {*_NUMBERED, *_DURATIONS, "step_index", "time"}
_KEY = re.compile(r"(\w+)=")
_NEXT = re.compile(r",(\w+)=")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(?=,|$)', re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_PLAIN = re.compile(r"\d+(\.\d*)?|\.\d+")
_MAX_RANGE = 1_000_000
"""The longest range of numbers, such as 0-7, that an option may have.

Chosen: more ranks, streams and steps than any trace has, and short enough as a list. Doubled, no range of those
changes."""
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\s*([^\d\s].*)")
_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
"""ns per unit of time."""
_GB_PER_S = {
    f"{prefix}{unit}/s": scale / share
    for prefix, scale in (("K", 1e-6), ("k", 1e-6), ("M", 1e-3), ("G", 1.0), ("T", 1e3))
    for unit, share in (("B", 1), ("b", 8), ("bit", 8))
}
"""GB/s (10^9 bytes/s) per unit of bandwidth."""


def criteria(text: str) -> dict[str, Any]:
    """Return ``name=*gemm*,rank=0,2-3`` as keywords of `DependencyGraph.select`.

    Example:
        >>> criteria("name=void gemm<float, 4>(int, int),rank=0,2-3")
        {'name': 'void gemm<float, 4>(int, int)', 'rank': [0, 2, 3]}
    """
    given: dict[str, Any] = {}
    at = 0
    while at < len(text) or not given:
        key = _KEY.match(text, at)
        if key is None or key[1] not in KEYS or key[1] in given:
            raise _refused(text, _unreadable(key[1] if key else text[at:], given))
        value, at = _value(text, key.end())
        if not value and not text.startswith('"', key.end()):  # in quotes it is a name: that of events without one
            raise _refused(text, f": nothing after {key[0]}")
        given[key[1]] = _typed(key[1], value)
    return given


def _unreadable(part: str, given: dict[str, Any]) -> str:
    if part in given:
        return f": {part}= is given twice"
    keys = ", ".join(f"{key}=" for key in KEYS)
    name = f"; did you mean op={part}, an operator, or name={part}, a kernel?" if part and "=" not in part else ""
    meant = nearest_words(part, KEYS) or name or "."
    return f": {part!r} is no criterion{meant} Choose from {keys}, and quote values that hold a comma and ="


def _value(text: str, at: int) -> tuple[str, int]:
    """Return (the value that begins at a position, the position of the next criterion)."""
    quoted = _QUOTED.match(text, at)
    if quoted:
        return quoted[1].replace('""', '"'), quoted.end() + 1
    following = _NEXT.search(text, at)
    end = following.start() if following else len(text)
    return text[at:end], end + 1


def _typed(key: str, value: str) -> Any:  # noqa: ANN401 - what select takes for that key
    if key in _NUMBERED or key == "step_index":
        several = numbers(value) if key in _NUMBERED else _positions(value)
        return several[0] if len(several) == 1 else several
    if key in _DURATIONS:
        return _us(value)
    if key == "time":
        return _window(value)
    return value.split(",") if key == "kind" and "," in value else value


def criteria_text(given: dict[str, Any]) -> str:
    """Return keywords of `DependencyGraph.select` as text that `criteria` reads; None is left out.

    Example:
        >>> criteria_text({"op": "aten::mm", "rank": [0, 2]})
        'op=aten::mm,rank=0,2'
    """
    parts = []
    for key, value in ((key, value) for key, value in given.items() if value is not None):
        between = ".." if key == "time" else ","
        text = between.join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        if key in _TEXTS and (not text or _NEXT.search(text) or text.startswith('"')):
            text = '"' + text.replace('"', '""') + '"'
        parts.append(f"{key}={text}")
    return ",".join(parts)


def numbers(text: str) -> list[int]:
    """Return ``0,3-7`` as a list of numbers.

    Example:
        >>> numbers("0,3-5")
        [0, 3, 4, 5]
    """
    chosen: list[int] = []
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        first = int(ends[1]) if ends else 0
        last = int(ends[2] or ends[1]) if ends else -1
        if not first <= last <= first + _MAX_RANGE:
            raise _refused(text, " is not a list of numbers such as 0,3-7")
        chosen += range(first, last + 1)
    return chosen


def duration_ns(text: str) -> float:
    """Return a duration such as ``12us`` or ``1.5ms`` in ns.

    Example:
        >>> duration_ns("1.5ms")
        1500000.0
    """
    return amount(text, _NS, "a duration such as 300ns, 12us, 1.5ms or 2s")


def amount(text: str, units: dict[str, float], what: str) -> float:
    """Return a number with a unit, in the unit that counts as 1.

    Example:
        >>> amount("2ms", {"ms": 1e6}, "a duration")
        2000000.0
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units:
        raise _refused(text, f" is not {what}")
    return float(found[1]) * units[found[2]]


def bandwidth(text: str) -> float:
    """Return a bandwidth such as ``100GB/s`` or ``400Gbit/s`` in GB/s (10^9 bytes/s).

    Example:
        >>> bandwidth("400Gbit/s")
        50.0
    """
    return amount(text, _GB_PER_S, "a bandwidth such as 100GB/s or 400Gbit/s")


def _positions(text: str) -> list[int]:
    """Return ``0,-1`` or ``0-2`` as a list of positions; -1 is the last."""
    parts = [part.strip() for part in text.split(",")]
    return [int(part) for part in parts] if all(re.fullmatch(r"-?\d{1,9}", part) for part in parts) else numbers(text)


def _us(text: str) -> float:
    """Return a number of µs, or a duration with a unit, in µs."""
    return float(text) if _PLAIN.fullmatch(text.strip()) else duration_ns(text) / 1000


def _window(text: str) -> tuple[float, float]:
    """Return ``1ms..2ms`` as two moments in µs since the job's first activity."""
    first, dots, last = text.partition("..")
    if not dots:
        raise _refused(text, " is not a window FROM..TO such as 1.5ms..2ms")
    return _us(first), _us(last)


_FROM_TO = re.compile(r"(?P<first>[^:]+)\.\.(?P<last>[^:]+?)(:(?P<points>\d{1,4}))?")
_PER_OCTAVE = 2
"""Points between a factor and twice of it. Chosen: a curve of step times has no corner that is missed by much. Doubled,
it takes twice as long."""
_LINEAR_POINTS = 5
"""Points of a range that begins at 0, which has no octaves. Chosen: every quarter of it. Doubled, twice as long."""
MAX_POINTS = 100
"""Points that may be asked for. Chosen: more is a mistake, and each takes eleven replays. Doubled, 200."""


class Sweep(NamedTuple):
    """What takes a multiple of its time, and which multiples."""

    what: str
    """``network``, ``batch`` (the factors are its sizes), or criteria as `criteria` reads them."""
    factors: tuple[float, ...]

    @property
    def is_of_batches(self) -> bool:
        """Whether the factors are sizes of batches."""
        return self.what == "batch"

    def apply(self, scenario: Scenario, factor: float) -> Scenario:
        """Return the scenario in which it takes `factor` times as long."""
        if self.what == "network":
            return scenario.scale_network(factor=factor)
        if self.is_of_batches:
            return scenario.batch(new=round(factor))
        return scenario.scale(factor=factor, **criteria(self.what))


def read_sweep(text: str) -> Sweep:
    """Return the sweep that ``WHAT=FROM..TO``, ``WHAT=FROM..TO:POINTS`` or ``WHAT=F1,F2,F3`` asks for.

    WHAT is ``network``, ``batch`` (whole sizes) or criteria. A range has points at equal ratios (every half octave if
    not said), or at equal distances if it begins at 0.

    Example:
        >>> read_sweep("network=0.5..2").factors, read_sweep("kind=computation=0..1:3").factors
        ((0.5, 0.7071, 1.0, 1.414, 2.0), (0.0, 0.5, 1.0))
    """
    what, _, values = text.rpartition("=")
    found = _FROM_TO.fullmatch(values)
    try:
        if found:
            factors = _between(float(found["first"]), float(found["last"]), int(found["points"] or 0))
        else:
            factors = tuple(float(each) for each in values.split(","))
    except ValueError:
        factors = ()
    if not what or not factors or len(factors) > MAX_POINTS or not all(0 <= each < math.inf for each in factors):
        why = (
            " is no sweep: write network=FROM..TO, batch=SIZES or CRITERIA=FROM..TO, such as network=0.25..2, "
            f"batch=8,16,32, name=*gemm*=0.5..1:6 (6 points) or kind=computation=0.5,1,2; at most {MAX_POINTS} points"
        )
        raise _refused(text, why)
    if what == "batch":
        factors = tuple(dict.fromkeys(float(round(each)) for each in factors))
    elif what != "network":
        criteria(what)  # refuses what it cannot read
    return Sweep(what, factors)


def _between(first: float, last: float, points: int) -> tuple[float, ...]:
    """Return factors from the first to the last, rounded to four digits; 0 points are as many as suit them."""
    if not 0 <= first < last < math.inf or points == 1:
        return ()
    if first:
        count = points or 1 + max(1, round(_PER_OCTAVE * math.log2(last / first)))
        factors = [first * (last / first) ** (i / (count - 1)) for i in range(count)]
    else:
        count = points or _LINEAR_POINTS
        factors = [last * i / (count - 1) for i in range(count)]
    return tuple(float(f"{factor:.4g}") for factor in factors)
