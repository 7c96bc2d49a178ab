"""Changes of a what-if as words of a command line, such as ``--scale 'name=*gemm*:0.5'``: read, and written.

Criteria are ``key=value`` pairs separated by commas; the keys are those of `DependencyGraph.select`. A value may hold
colons, for a number behind it follows the last one, and commas, for a new criterion begins only where a key and ``=``
follow. Where a value is to hold even that, it is put into double quotes, in which ``""`` stands for a quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from htagraph.core.nearest import nearest_words

if TYPE_CHECKING:
    from htagraph.whatif.scenario import Scenario

__all__ = ["CHANGES", "Change", "ChangeForm", "bandwidth", "criteria", "criteria_text", "duration_ns", "numbers"]

_KEYS = ("kind", "name", "op", "rank", "stream", "step")
_NUMBERED = ("rank", "stream", "step")
_KEY = re.compile(r"(\w+)=")
_NEXT = re.compile(r",(\w+)=")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(?=,|$)', re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_MOST_NUMBERS = 1_000_000
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\s*([^\d\s].*)")
_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_GB_PER_S = {
    f"{prefix}{unit}/s": scale / share
    for prefix, scale in (("K", 1e-6), ("k", 1e-6), ("M", 1e-3), ("G", 1.0), ("T", 1e3))
    for unit, share in (("B", 1), ("b", 8), ("bit", 8))
}


@dataclass(frozen=True)
class Change:
    """One change of a scenario as it was asked for."""

    method: str
    """Of `Scenario`."""
    options: dict[str, Any]

    def apply(self, scenario: Scenario) -> Scenario:
        """Return the scenario with this change added."""
        changed: Scenario = getattr(scenario, self.method)(**self.options)
        return changed


@dataclass(frozen=True)
class ChangeForm:
    """How a change is asked for on the command line."""

    value: Literal["required", "optional", "none"]
    """Whether the option takes a value; an optional one is given behind ``=`` only."""
    metavar: str
    help: str
    read: Callable[[str], Change]
    """The option's value → the change; a ValueError says what is wrong with it."""


def criteria(text: str) -> dict[str, Any]:
    """Return ``name=*gemm*,rank=0,2-3`` as keywords of `DependencyGraph.select`.

    Raises:
        ValueError: a key is unknown or given twice, or a value is empty or no number.

    Example:
        >>> criteria("name=void gemm<float, 4>(int, int),rank=0,2-3")
        {'name': 'void gemm<float, 4>(int, int)', 'rank': [0, 2, 3]}
    """
    found: dict[str, Any] = {}
    at = 0
    while at < len(text) or not found:
        key = _KEY.match(text, at)
        if key is None or key[1] not in _KEYS or key[1] in found:
            raise ValueError(_unreadable(text, key[1] if key else text[at:], found))
        value, at = _value(text, key.end())
        if not value:
            msg = f"{text!r}: nothing behind {key[0]}"
            raise ValueError(msg)
        found[key[1]] = _typed(key[1], value)
    return found


def _unreadable(text: str, part: str, found: dict[str, Any]) -> str:
    if part in found:
        return f"{text!r}: {part}= is given twice"
    keys = ", ".join(f"{key}=" for key in _KEYS)
    nearest = nearest_words(part, _KEYS)
    return f"{text!r}: {part!r} is no criterion; choose from {keys}, and quote values that hold a comma and ={nearest}"


def _value(text: str, at: int) -> tuple[str, int]:
    """Return (the value that begins at a place, where the next criterion begins)."""
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
        if key not in _NUMBERED and (_NEXT.search(text) or text.startswith('"')):
            text = '"' + text.replace('"', '""') + '"'
        parts.append(f"{key}={text}")
    return ",".join(parts)


def numbers(text: str) -> list[int]:
    """Return ``0,3-7`` as a list of numbers.

    Raises:
        ValueError: the text is nothing of the kind.

    Example:
        >>> numbers("0,3-5")
        [0, 3, 4, 5]
    """
    found: list[int] = []
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        first = int(ends[1]) if ends else 0
        last = int(ends[2] or ends[1]) if ends else -1
        if not first <= last <= first + _MOST_NUMBERS:
            msg = f"{text!r} is not a list of numbers such as 0,3-7"
            raise ValueError(msg)
        found += range(first, last + 1)
    return found


def duration_ns(text: str) -> float:
    """Return ``12us``, ``1.5ms`` and the like in ns.

    Raises:
        ValueError: no number, or no unit of time.

    Example:
        >>> duration_ns("1.5ms")
        1500000.0
    """
    return _amount(text, _NS, "a duration such as 300ns, 12us, 1.5ms or 2s")


def bandwidth(text: str) -> float:
    """Return ``100GB/s``, ``400Gbit/s`` and the like in 10^9 bytes/s.

    Raises:
        ValueError: no number, or no unit of bandwidth.

    Example:
        >>> bandwidth("400Gbit/s")
        50.0
    """
    return _amount(text, _GB_PER_S, "a bandwidth such as 100GB/s or 400Gbit/s")


def _amount(text: str, units: dict[str, float], what: str) -> float:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units:
        msg = f"{text!r} is not {what}"
        raise ValueError(msg)
    return float(found[1]) * units[found[2]]


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
    """Return what stands before and behind the last colon."""
    before, colon, behind = text.rpartition(":")
    if not colon:
        msg = f"{text!r} lacks :{what} at its end"
        raise ValueError(msg)
    return before, behind


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
        return Change("scale_network", {"factor": _number(text, "a factor such as 0.5, nor latency=…,bandwidth=…")})
    options: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        if key not in ("latency", "bandwidth"):
            msg = f"{text!r}: {key!r} is neither latency nor bandwidth"
            raise ValueError(msg)
        if key == "latency":
            options["latency_us"] = duration_ns(value) / 1000
        else:
            options["bandwidth_gbps"] = bandwidth(value)
    return Change("network", options)


def _fix_straggler(text: str) -> Change:
    rank = text if text == "auto" else _whole(text, "auto nor the number of a rank")
    return Change("fix_straggler", {"rank": rank})


def _cuda_graph(text: str) -> Change:
    given = criteria(text)
    if "step" not in given or not given.keys() <= {"step", "rank"}:
        msg = f"{text!r}: give step=N or step=N-M, and rank= if not all"
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
        msg = f"{text!r}: stream= cannot be a criterion here; choose the work by the others"
        raise ValueError(msg)
    return Change("move_to_stream", {**given, "stream": _whole(stream, "the number of a stream")})


def _scale_ranks(text: str) -> Change:
    return Change("scale_ranks", {"n": _whole(text, "a number of ranks")})


CHANGES: dict[str, ChangeForm] = {
    "scale": ChangeForm("required", "CRITERIA:FACTOR", "Selected work takes FACTOR times as long.", _scale),
    "set": ChangeForm("required", "CRITERIA:DURATION", "Selected work takes DURATION each, such as 12us.", _set),
    "remove": ChangeForm("required", "CRITERIA", "Selected work is not there.", _selecting("remove")),
    "network": ChangeForm(
        "required", "FACTOR|latency=10us,bandwidth=100GB/s",
        "Transfers take FACTOR times as long, or what this network gives; waits follow by themselves.", _network,
    ),
    "fix-straggler": ChangeForm("required", "auto|RANK", "A rank's own work is as fast as its peers'.", _fix_straggler),
    "no-launch-overhead": ChangeForm(
        "optional", "CRITERIA", "Launch calls and launch latency cost nothing.", _selecting("no_launch_overhead")
    ),
    "infinite-host": ChangeForm("none", "", "Host work takes no time.", _plain("infinite_host")),
    "infinite-gpu": ChangeForm("none", "", "Kernels and copies take no time; transfers do.", _plain("infinite_gpu")),
    "cuda-graph": ChangeForm("required", "step=N[,rank=R]", "Steps are replayed as one CUDA graph.", _cuda_graph),
    "inject": ChangeForm(
        "required", "rank=R[,kind=kernels|host|loader]:FACTOR", "One rank is slower by FACTOR.", _inject
    ),
    "jitter": ChangeForm("required", "SIGMA[:RUNS]", "Durations vary at random; shows p50 and p99.", _jitter),
    "free-dataloader": ChangeForm(
        "optional", "CRITERIA", "The next batch is always there.", _selecting("free_dataloader")
    ),
    "remove-sync": ChangeForm("required", "CRITERIA", "Blocking calls do not wait.", _selecting("remove_sync")),
    "perfect-overlap": ChangeForm(
        "optional", "GROUP", "Collectives of process groups hold up nothing.", _grouped("perfect_overlap")
    ),
    "no-overlap": ChangeForm(
        "optional", "GROUP", "Collectives run in line with the computation.", _grouped("no_overlap")
    ),
    "fuse": ChangeForm("required", "CRITERIA", "Kernels that follow each other become one.", _selecting("fuse")),
    "move-to-stream": ChangeForm(
        "required", "CRITERIA:STREAM", "Device work runs on another stream.", _move_to_stream
    ),
    "scale-ranks": ChangeForm("required", "N", "The job has N ranks like these: an extrapolation.", _scale_ranks),
}  # fmt: skip
"""The options of ``htagraph what-if`` by name; the order on the command line is the order in which they apply."""
