"""Changes of a what-if as options of the command line, such as ``--scale 'name=*gemm*:0.5'``: read and written.

Criteria are read by `htagraph.whatif.criteria_options`; the number of a change follows the last colon.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from htagraph.whatif.criteria_options import amount, criteria, criteria_text, duration_ns, numbers

if TYPE_CHECKING:
    from htagraph.whatif.scenario import Scenario

__all__ = ["CHANGES", "Change", "ChangeForm", "bandwidth", "criteria", "criteria_text", "duration_ns", "numbers"]

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


def bandwidth(text: str) -> float:
    """Return a bandwidth such as ``100GB/s`` or ``400Gbit/s`` in GB/s (10^9 bytes/s).

    Raises:
        ValueError: the number or the unit of bandwidth is missing.

    Example:
        >>> bandwidth("400Gbit/s")
        50.0
    """
    return amount(text, _GB_PER_S, "a bandwidth such as 100GB/s or 400Gbit/s")


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
        "FACTOR|NETWORK",
        "Transfers take FACTOR times as long, or as long as on this NETWORK, such as latency=10us,bandwidth=100GB/s; "
        "waits are replayed.",
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
        "rank=R[,kind=KIND]:FACTOR",
        "One rank's kernels, host or loader (KIND) take FACTOR times as long.",
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
