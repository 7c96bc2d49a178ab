"""Sentences of ``htagraph launches`` and ``htagraph counters``: the cost of launching, and whether queues were full."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import pandas as pd

from htagraph.core.statistics import MOST
from htagraph.findings.limits import MAX_LISTED, MIN_PERCENT, MIN_SHARE, SHORT_LIST
from htagraph.findings.phrases import Suggestion, and_list, command_line, plural, share_text, spoken, time_text
from htagraph.findings.steady_gain import SteadyGain
from htagraph.queries.device_record import DeviceRecord
from htagraph.queries.launch_queues import QueueUse

__all__ = ["SHORTER_LAUNCHES", "LaunchCosts", "counters_sentences", "launches_sentences"]

SHORTER_LAUNCHES: Final = "--no-launch-overhead"
"""The option of a prediction that makes launch calls take no time."""
_TO_SEE_LAUNCHES: Final = {
    DeviceRecord.RECORDED: "record the launch calls of the host to see any",
    DeviceRecord.COUNTED: f"{DeviceRecord.COUNTED.value}; record without counters to see any",
    DeviceRecord.UNRECORDED: "record with CUDA activities to see any",
}
"""How to see launches, where the files have none, by the way in which devices were recorded."""


class LaunchCosts(NamedTuple):
    """The cost of launching beside the time of its calls; NaN, None or empty where the cost is not known."""

    path_percent: float = math.nan
    """The share of launch calls and launch latencies in the critical path."""
    saved: SteadyGain | None = None
    """How much shorter the steady job is if launch calls take no time; None where that is not known."""
    allocator: pd.Series[float] = pd.Series(dtype="float64")
    """The time of the calls that free device memory or ask for it by name, the most first, µs."""
    allocator_calls: int = 0
    """How many calls of the allocator there are."""
    at_full_queue: Collection[int] = ()
    """The calls that waited for room in a queue."""


_UNKNOWN: Final = LaunchCosts()
"""The costs where none is known."""


def launches_sentences(
    stats: pd.DataFrame,
    graphs: pd.DataFrame,
    waits: pd.Series,
    inputs: Sequence[str],
    *,
    record: DeviceRecord = DeviceRecord.UNRECORDED,
    costs: LaunchCosts = _UNKNOWN,
) -> list[str]:
    """Return the cost of launching, which calls wait, and the gain of shorter launch calls.

    Args:
        stats: the result of `htagraph.launch_stats`; the sentence counts the calls of the table.
        graphs: the result of `htagraph.graph_launches`.
        waits: whether the call of each row returned only when work was over, which is no cost of launching.
        inputs: the words of the command line that choose the job.
        record: the result of `device_record`.
        costs: the cost of launching beside the time of its calls.
    """
    if not len(stats):
        return [f"No launch with its device work is in the traces: {_TO_SEE_LAUNCHES.get(record, record.value)}."]
    blocked = stats[waits].drop_duplicates("launch")
    is_full = blocked["launch"].isin(list(costs.at_full_queue))
    is_own = blocked["delay_us"] <= 0
    return spoken(
        _calls(stats, waits, costs.path_percent),
        _blocked(blocked[is_own & ~is_full], "returned only when the work was over"),
        _blocked(blocked[~is_own & ~is_full], "waited for earlier work of the device"),
        _blocked(blocked[is_full], "waited for room in a full queue"),
        *_graphs(graphs),
        _allocator(costs, float(stats.drop_duplicates("launch")["launch_us"].sum()), inputs),
        _shorter(costs, inputs),
    )


def _calls(stats: pd.DataFrame, waits: pd.Series, path_percent: float) -> str:
    """Return how many calls launched how much work in which time; empty where all calls waited."""
    every = stats[["launch", "launch_us"]]  # without texts, which take long to copy
    calls = every[~waits].drop_duplicates("launch")
    if not len(calls):
        return ""
    all_calls = every["launch"].nunique()
    launched = "kernel or copy" if len(every) == 1 else "kernels and copies"
    blocked = all_calls - len(calls)
    waited = f", not counting {plural(blocked, 'call')} that waited" if blocked else ""
    longest = calls["launch_us"].max()
    total = calls["launch_us"].sum()
    in_one = f", {time_text(longest)} of it in one call" if len(calls) > 1 and longest > MOST * total else ""
    share = "" if math.isnan(path_percent) else f"; launching is {share_text(path_percent)} of the critical path"
    count = f"{plural(all_calls, 'call')} launched {len(every):,} {launched}"
    return f"{count} in {time_text(total)} of host time{in_one}{waited}{share}."


def _graphs(graphs: pd.DataFrame) -> list[str]:
    """Return how long devices are idle inside CUDA graphs, and in how many graphs that is not known."""
    whole = graphs["gap_us"].isna()
    inside = graphs[~whole]
    span = inside["span_us"].sum()
    said = []
    if span > 0:
        share = 100 * inside["gap_us"].sum() / span
        said.append(f"Inside CUDA graphs ({len(inside):,} launched), the device is idle {share:.1f} % of the time.")
    if whole.any():
        count = plural(int(whole.sum()), "CUDA graph")
        said.append(f"What runs inside {count} is unknown: they were recorded as a whole.")
    return said


def _blocked(calls: pd.DataFrame, how: str) -> str:
    """Return how many calls waited for the device, and how long; empty for none."""
    if not len(calls):
        return ""
    names = " and ".join(calls["launch_name"].unique()[:SHORT_LIST])
    time = time_text(calls["launch_us"].sum())
    return f"{plural(len(calls), 'call')} of {names} {how}, which is no cost of launching: {time}."


def _allocator(costs: LaunchCosts, launching_us: float, inputs: Sequence[str]) -> str:
    """Return how long calls of the allocator took where that matters beside launching; empty where it does not."""
    total = float(costs.allocator.sum())
    if total <= MIN_SHARE * launching_us or not costs.allocator_calls:
        return ""
    names = and_list([str(name) for name in costs.allocator.index[:SHORT_LIST]])
    said = f"Beside launching, {plural(costs.allocator_calls, 'call')} of {names} took {time_text(total)}"
    return Suggestion(f"{said}. To see what waits for them", command_line("idle", inputs))


def _shorter(costs: LaunchCosts, inputs: Sequence[str]) -> str:
    """Return the gain of launch calls without time, with the changes that come near; empty where it is not known."""
    saved = costs.saved
    if saved is None:
        return ""
    if saved.percent < MIN_PERCENT:
        said = "Shorter launch calls would hardly make the job shorter. To see what bounds it"
        return Suggestion(said, command_line("critical-path", inputs))
    apart = " apart from start-up" if saved.is_without_start_up else ""
    shorter = f"the job{apart} would be at most {share_text(saved.percent)} shorter"
    said = f"With launch calls of no time, {shorter}; CUDA graphs and torch.compile take operators off the host, too"
    return Suggestion(said, command_line("what-if", inputs, SHORTER_LAUNCHES))


def counters_sentences(
    use: QueueUse,
    full: int,
    host_percent: float,
    inputs: Sequence[str],
    samples: pd.DataFrame | None = None,
) -> list[str]:
    """Return whether queues were full, whether devices wait for hosts, and which counters were sampled.

    Args:
        use: how long queues were.
        full: the number of launches that counts as full.
        host_percent: how long devices wait for their hosts, percent of their time; NaN where that is not known.
        inputs: the words of the command line that choose the job.
        samples: the counters that the profiler sampled.
    """
    sampled = [_sampled_sentence(samples)] if samples is not None and len(samples) else []
    if not use.most:
        return ["No launch with its device work is in the traces, so there are no queues to count.", *sampled]
    return [*spoken(_queue(use, full), _meaning(host_percent, inputs)), *sampled]


def _queue(use: QueueUse, full: int) -> str:
    """Return how long the longest queue was, and whether a launch waited for room in one."""
    place = f"rank {use.rank}, stream {use.stream}"
    held = f"{use.most:,} {'launch' if use.most == 1 else 'launches'}"
    if use.blocked:
        waited = plural(use.blocked, "launch call")
        return (
            f"{waited} waited for room in a full queue, {time_text(use.blocked_us)} in all; the longest queue, "
            f"{place}, held {held}."
        )
    if use.full_us > 0:
        return (
            f"The longest queue, {place}, held {held}, and {full:,} or more for {time_text(use.full_us)}, but launch "
            "calls stayed short: no limit was reached."
        )
    return f"Queues never filled (at most {use.most:,} of {full:,} launches, {place}), so no launch waited for room."


def _meaning(host_percent: float, inputs: Sequence[str]) -> str:
    """Return whether devices wait for their hosts, as a queue that runs empty shows, and the command to run next."""
    if math.isnan(host_percent):
        return Suggestion("To see when devices are idle", command_line("idle", inputs))
    if host_percent >= MIN_PERCENT:
        said = f"Queues ran empty: devices wait {share_text(host_percent)} of their time for their hosts"
        return Suggestion(said, command_line("idle", inputs))
    said = "Hosts launch early enough: devices hardly wait for them. To see what bounds the job"
    return Suggestion(said, command_line("critical-path", inputs))


def _sampled_sentence(samples: pd.DataFrame) -> str:
    """Return which counters the profiler sampled, and how often."""
    counters = samples["counter"].unique().tolist()
    shown = counters[:MAX_LISTED]
    if len(counters) > len(shown):
        shown.append(plural(len(counters) - len(shown), "further counter"))
    taken = plural(int(samples["count"].sum()), "sample")
    return f"The profiler took {taken} of {and_list(shown)}."
