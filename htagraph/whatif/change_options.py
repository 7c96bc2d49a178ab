"""Changes of a what-if as options of the command line, such as ``--scale 'name=*gemm*:0.5'``: read and written.

Criteria are ``key=value`` pairs separated by commas; the keys are those of `DependencyGraph.select`. A value may
contain colons, because the number of a change follows the last colon, and commas, because a new criterion begins only
where a key and ``=`` follow. A value that contains even that goes into double quotes, with ``""`` for a quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from htagraph.core.spelling import nearest_words

if TYPE_CHECKING:
    from htagraph.whatif.scenario import Scenario

__all__ = ["CHANGES", "Change", "ChangeForm", "bandwidth", "criteria", "criteria_text", "duration_ns", "numbers"]

_KEYS = ("kind", "name", "op", "backward_of", "rank", "stream", "step", "after", "before")
_NUMBERED = ("rank", "stream", "step")
_KEY = re.compile(r"(\w+)=")
_NEXT = re.compile(r",(\w+)=")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(?=,|$)', re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
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


@dataclass(frozen=True)
class Change:
    """One change of a scenario, as asked for."""

    method: str
    """Name of the method of `Scenario`."""
    options: dict[str, Any]
    """Keywords of the method."""

    def apply(self, scenario: Scenario) -> Scenario:
        """Return the scenario with this change added."""
        changed: Scenario = getattr(scenario, self.method)(**self.options)
        return changed


@dataclass(frozen=True)
class ChangeForm:
    """The command-line option of a change."""

    value: Literal["required", "optional", "none"]
    """Whether the option takes a value; an optional one is given after ``=`` only."""
    metavar: str
    """The value, as the help shows it."""
    help: str
    """What the change does, as the help says it."""
    read: Callable[[str], Change]
    """The function from the option's value to the change; raises ValueError for a value that it cannot read."""


def criteria(text: str) -> dict[str, Any]:
    """Return ``name=*gemm*,rank=0,2-3`` as keywords of `DependencyGraph.select`.

    Raises:
        ValueError: a key is unknown or given twice, or a value is empty or no number.

    Example:
        >>> criteria("name=void gemm<float, 4>(int, int),rank=0,2-3")
        {'name': 'void gemm<float, 4>(int, int)', 'rank': [0, 2, 3]}
    """
    given: dict[str, Any] = {}
    at = 0
    while at < len(text) or not given:
        key = _KEY.match(text, at)
        if key is None or key[1] not in _KEYS or key[1] in given:
            raise ValueError(_unreadable(text, key[1] if key else text[at:], given))
        value, at = _value(text, key.end())
        if not value and not text.startswith('"', key.end()):  # in quotes it is a name: that of events without one
            msg = f"{text!r}: nothing after {key[0]}"
            raise ValueError(msg)
        given[key[1]] = _typed(key[1], value)
    return given


def _unreadable(text: str, part: str, given: dict[str, Any]) -> str:
    if part in given:
        return f"{text!r}: {part}= is given twice"
    keys = ", ".join(f"{key}=" for key in _KEYS)
    nearest = nearest_words(part, _KEYS)
    return f"{text!r}: {part!r} is no criterion; choose from {keys}, and quote values that hold a comma and ={nearest}"


def _value(text: str, at: int) -> tuple[str, int]:
    """Return (the value that begins at a position, the position of the next criterion)."""
    quoted = _QUOTED.match(text, at)
    if quoted:
        return quoted[1].replace('""', '"'), quoted.end() + 1
    following = _NEXT.search(text, at)
    end = following.start() if following else len(text)
    return text[at:end], end + 1


def _typed(key: str, value: str) -> Any:  # noqa: ANN401 - what select takes for that key
    if key in _NUMBERED:
        several = numbers(value)
        return several[0] if len(several) == 1 else several
    if key == "kind" and "," in value:
        return value.split(",")
    return value


def criteria_text(given: dict[str, Any]) -> str:
    """Return keywords of `DependencyGraph.select` as text that `criteria` reads; None is left out.

    Example:
        >>> criteria_text({"op": "aten::mm", "rank": [0, 2]})
        'op=aten::mm,rank=0,2'
    """
    parts = []
    for key, value in given.items():
        if value is None:
            continue
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        if key not in _NUMBERED and (not text or _NEXT.search(text) or text.startswith('"')):
            text = '"' + text.replace('"', '""') + '"'
        parts.append(f"{key}={text}")
    return ",".join(parts)


def numbers(text: str) -> list[int]:
    """Return ``0,3-7`` as a list of numbers.

    Raises:
        ValueError: the text is no list of numbers, or a range is longer than a million.

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
            msg = f"{text!r} is not a list of numbers such as 0,3-7"
            raise ValueError(msg)
        chosen += range(first, last + 1)
    return chosen


def duration_ns(text: str) -> float:
    """Return a duration such as ``12us`` or ``1.5ms`` in ns.

    Raises:
        ValueError: the number or the unit of time is missing.

    Example:
        >>> duration_ns("1.5ms")
        1500000.0
    """
    return _amount(text, _NS, "a duration such as 300ns, 12us, 1.5ms or 2s")


def bandwidth(text: str) -> float:
    """Return a bandwidth such as ``100GB/s`` or ``400Gbit/s`` in GB/s (10^9 bytes/s).

    Raises:
        ValueError: the number or the unit of bandwidth is missing.

    Example:
        >>> bandwidth("400Gbit/s")
        50.0
    """
    return _amount(text, _GB_PER_S, "a bandwidth such as 100GB/s or 400Gbit/s")


def _amount(text: str, units: dict[str, float], what: str) -> float:
    amount = _AMOUNT.fullmatch(text.strip())
    if amount is None or amount[2] not in units:
        msg = f"{text!r} is not {what}"
        raise ValueError(msg)
    return float(amount[1]) * units[amount[2]]


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"{text!r} is not {what}"
        raise ValueError(msg) from None


def _whole(text: str, what: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text.strip()):
        msg = f"{text!r} is not {what}"
        raise ValueError(msg)
    return int(text)


def _split(text: str, what: str) -> tuple[str, str]:
    """Return the text before and after the last colon."""
    before, colon, after = text.rpartition(":")
    if not colon:
        msg = f"{text!r} lacks :{what} at its end"
        raise ValueError(msg)
    return before, after


def _selecting(method: str) -> Callable[[str], Change]:
    return lambda text: Change(method, criteria(text) if text else {})


def _plain(method: str) -> Callable[[str], Change]:
    return lambda _: Change(method, {})


def _grouped(method: str) -> Callable[[str], Change]:
    return lambda text: Change(method, {"group": text or None})


def _scale(text: str) -> Change:
    which, factor = _split(text, "FACTOR")
    return Change("scale", {"factor": _number(factor, "a factor such as 0.5"), **criteria(which)})


def _set(text: str) -> Change:
    which, duration = _split(text, "DURATION")
    return Change("set_duration", {"ns": duration_ns(duration), **criteria(which)})


def _network(text: str) -> Change:
    if "=" not in text:
        return Change(
            "scale_network", {"factor": _number(text, "a factor such as 0.5 or latency=10us,bandwidth=100GB/s")}
        )
    options: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        if key not in ("latency", "bandwidth"):
            msg = f"{text!r}: {key!r} is neither latency nor bandwidth"
            raise ValueError(msg)
        if key == "latency":
            options["latency_us"] = duration_ns(value) / 1000
        else:
            options["bandwidth_gb_s"] = bandwidth(value)
    return Change("network", options)


def _fix_straggler(text: str) -> Change:
    rank = text if text == "auto" else _whole(text, "auto or the number of a rank")
    return Change("fix_straggler", {"rank": rank})


def _cuda_graph(text: str) -> Change:
    given = criteria(text)
    if "step" not in given or not given.keys() <= {"step", "rank"}:
        msg = f"{text!r}: give step=N or step=N-M, and rank= unless all ranks are meant"
        raise ValueError(msg)
    return Change("cuda_graph", given)


def _inject(text: str) -> Change:
    which, factor = _split(text, "FACTOR")
    given = criteria(which)
    if not isinstance(given.get("rank"), int):
        msg = f"{text!r}: give the one rank that is to be slower, such as rank=2:1.3"
        raise ValueError(msg)
    return Change("inject", {"factor": _number(factor, "a factor such as 1.3"), **given})


def _jitter(text: str) -> Change:
    sigma, _, runs = text.partition(":")
    options: dict[str, Any] = {"sigma": _number(sigma, "a relative deviation such as 0.05")}
    if runs:
        options["runs"] = _whole(runs, "a number of runs")
    return Change("jitter", options)


def _move_to_stream(text: str) -> Change:
    which, stream = _split(text, "STREAM")
    given = criteria(which)
    if "stream" in given:
        msg = f"{text!r}: stream= cannot be a criterion here; select the work by other criteria"
        raise ValueError(msg)
    return Change("move_to_stream", {**given, "stream": _whole(stream, "the number of a stream")})


def _shared_link(text: str) -> Change:
    if text not in ("on", "off"):
        msg = f"{text!r} is neither on nor off"
        raise ValueError(msg)
    return Change("shared_link", {"on": text == "on"})


def _scale_ranks(text: str) -> Change:
    return Change("scale_ranks", {"n": _whole(text, "a number of ranks")})


CHANGES: dict[str, ChangeForm] = {
    "scale": ChangeForm("required", "CRITERIA:FACTOR", "Selected work takes FACTOR times as long.", _scale),
    "set": ChangeForm("required", "CRITERIA:DURATION", "Each selected activity takes DURATION, such as 12us.", _set),
    "remove": ChangeForm("required", "CRITERIA", "Selected work and its launches are left out.", _selecting("remove")),
    "network": ChangeForm(
        "required",
        "FACTOR|latency=10us,bandwidth=100GB/s",
        "Transfers take FACTOR times as long, or as long as on this network; waits are replayed.",
        _network,
    ),
    "fix-straggler": ChangeForm(
        "required", "auto|RANK", "The rank's own work is as fast as the same work on other ranks.", _fix_straggler
    ),
    "no-launch-overhead": ChangeForm(
        "optional", "CRITERIA", "Launch calls and launch latency take no time.", _selecting("no_launch_overhead")
    ),
    "infinite-host": ChangeForm("none", "", "Host work takes no time.", _plain("infinite_host")),
    "infinite-gpu": ChangeForm(
        "none", "", "Kernels and copies take no time; transfers between ranks still do.", _plain("infinite_gpu")
    ),
    "cuda-graph": ChangeForm(
        "required", "step=N[,rank=R]", "Each step's kernels are launched at once, as one CUDA graph.", _cuda_graph
    ),
    "inject": ChangeForm(
        "required",
        "rank=R[,kind=kernels|host|loader]:FACTOR",
        "One rank's kernels, host or data loader take FACTOR times as long.",
        _inject,
    ),
    "jitter": ChangeForm(
        "required",
        "SIGMA[:RUNS]",
        "Durations vary at random (relative deviation SIGMA, RUNS times); shows p50 and p99.",
        _jitter,
    ),
    "free-dataloader": ChangeForm(
        "optional", "CRITERIA", "The data loader always has the next batch ready.", _selecting("free_dataloader")
    ),
    "remove-sync": ChangeForm(
        "required", "CRITERIA", "Blocking calls do not wait for the device.", _selecting("remove_sync")
    ),
    "perfect-overlap": ChangeForm(
        "optional",
        "GROUP",
        "No other work waits for collectives (of this process group): an upper bound.",
        _grouped("perfect_overlap"),
    ),
    "no-overlap": ChangeForm(
        "optional",
        "GROUP",
        "Collectives (of this process group) do not overlap with computation.",
        _grouped("no_overlap"),
    ),
    "shared-link": ChangeForm(
        "required",
        "on|off",
        "Transfers that overlap slow each other down, or do not; by default as recorded.",
        _shared_link,
    ),
    "fuse": ChangeForm(
        "required", "CRITERIA", "Selected kernels that follow each other on a stream become one.", _selecting("fuse")
    ),
    "move-to-stream": ChangeForm(
        "required", "CRITERIA:STREAM", "Selected kernels and copies run on this stream.", _move_to_stream
    ),
    "scale-ranks": ChangeForm(
        "required", "N", "The job has N ranks that work like the recorded ones: an extrapolation.", _scale_ranks
    ),
}
"""The options of ``htagraph what-if`` by name; they apply in their order on the command line."""
