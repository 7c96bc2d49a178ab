"""What bounds a job: by re-simulation with everything of one kind a little faster, or by a walk back through raw JSON.

The share of a critical path that one kind of work has is by how much the job ends earlier when all of it takes a little
less time. So it can be told without any critical path: simulate the job once more with that work 2 % faster.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from benchmarks.conclusions_truth.findings import Finding
from benchmarks.conclusions_truth.raw import CALLS, RawRank
from htagraph.simulate import Job, ScaleHost, ScaleKernels, ScaleLaunches, ScaleLoader, ScaleNetwork, simulate

__all__ = ["bound_findings", "makespan_ns", "raw_shares", "simulated_shares"]

STEP = 0.02
"""How much faster one kind of work becomes, as a share. Chosen: ranks draw their durations with some percent of
spread, so that the path stays where it is. Doubled, shares of balanced jobs become too small."""
LEAD = 15.0
"""Points by which the largest share leads where the answer is clear. Chosen: twice what definitions of latencies and
pauses differ by. Doubled, fewer jobs have a clear answer."""
MAX_OFF = 8.0
"""Points by which a stated share may differ from the re-simulated one. Chosen: half of `LEAD`; doubled, a stated share
may be that of another kind of work."""
_CHANGES = {
    "computation": ScaleKernels(what="compute", factor=1 - STEP),
    "memory": (ScaleKernels(what="memcpy", factor=1 - STEP), ScaleKernels(what="memset", factor=1 - STEP)),
    "communication": ScaleNetwork(factor=1 - STEP, latency_factor=1 - STEP),
    "host": ScaleHost(factor=1 - STEP),
    "launch": ScaleLaunches(factor=1 - STEP, latency_factor=1 - STEP),
    "data_loading": ScaleLoader(factor=1 - STEP),
}
_BLOCKING = "Synchronize|cudaMemcpy$|hipMemcpyWithStream|cudaMemcpyAsync|cudaFree|cudaMalloc|hipFree"
_LAUNCH_NS = 15_000
"""ns from a launch call to its kernel up to which the launch held it up, or three times the latency that a tenth of a
recording's launches stay below, if that is more. Chosen: three usual latencies; doubled, the host is charged some short
queues."""
_RETURN_SHARE = 0.1
"""Share of a blocking call that may follow the end of the work that it waited for. Source: cudaFree calls of a second
in a real trace that go on for ms. Doubled, own time of a call may count as part of a wait."""
_RETURN_NS = 60_000
"""ns from the end of device work to the return of the call that waited for it. Chosen; doubled, calls that end near
some work by chance count as waiting."""


def makespan_ns(job: Job) -> int:
    """Return from the first start to the last end of anything in a job, ns."""
    executed = [each for steps in simulate(job).executed.values() for each in steps]
    return max(max(each.end) for each in executed) - min(min(each.start) for each in executed)


def simulated_shares(job: Job) -> dict[str, float]:
    """Return how much of the critical path each kind of work is, percent, the largest first."""
    whole, shares = makespan_ns(job), {}
    for kind, change in _CHANGES.items():
        changes = change if isinstance(change, tuple) else (change,)
        faster = makespan_ns(job.model_copy(update={"changes": (*job.changes, *changes)}))
        shares[kind] = 100 * (whole - faster) / (STEP * whole)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def bound_findings(said: str, figure: float, shares: Mapping[str, float], *, names_share: bool = True) -> list[Finding]:
    """Return whether the right bound is said, with the right share.

    Args:
        said: the cause that is said to bound the job.
        figure: its share, percent.
        shares: the true shares by category; host code and launches are one cause.
        names_share: whether these are exact, so that the figure is judged too.
    """
    shares = _by_cause(shares)
    ordered = [*shares.items(), ("nothing", 0.0)]
    (best, most), (_, second) = ordered[0], ordered[1]
    clear = most - second >= LEAD
    text = ", ".join(f"{kind} {share:.0f} %" for kind, share in shares.items() if share >= 1)
    if not clear and not names_share:
        return []
    right = said == best if clear else shares.get(said, 0.0) >= most - LEAD
    findings = [Finding("bound", said, best if clear else "", right, text)]
    if names_share and said in shares:
        off = abs(figure - shares[said])
        findings.append(Finding("bound's share", f"{said} {figure:.0f} %", "", off <= MAX_OFF, text))
    return findings


def _by_cause(shares: Mapping[str, float]) -> dict[str, float]:
    """Return shares with host code and launches as one, the largest first."""
    causes = {kind: share for kind, share in shares.items() if kind != "launch"}
    causes["host"] = causes.get("host", 0.0) + shares.get("launch", 0.0)
    return dict(sorted(causes.items(), key=lambda item: -item[1]))


def raw_shares(rank: RawRank) -> dict[str, float]:
    """Return how much of a walk back from the last event of a single rank each kind of work is, percent.

    From device work to what it waited for: its launch if that was just before, else what ended last before it. From
    the host to the device work that its last blocking call waited for. Calls that launch are told from other host work.
    """
    work, host = rank.work, rank.host
    work = work[work["end"] > work["start"]]
    spent = dict.fromkeys(("computation", "memory", "communication", "host", "launch", "data_loading", "gap"), 0)
    start, end = work["start"].to_numpy(np.int64), work["end"].to_numpy(np.int64)
    kind = np.where(work["cat"] != "kernel", "memory", "computation")
    kind = np.where(work["name"].str.contains("nccl", case=False), "communication", kind)
    called = _calls(work, host)
    known = (start - called)[(called >= 0) & (called < start)]
    latency = max(_LAUNCH_NS, 3 * int(np.quantile(known, 0.1)) if len(known) else 0)
    by_end = np.argsort(end, kind="stable")
    blocking = host[host["name"].str.contains(_BLOCKING)].sort_values("end")
    syncs = _waiting(blocking, np.sort(end))
    begin = int(min(host["start"].min() if len(host) else start.min(), start.min() if len(start) else 2**62))
    now = int(max(host["end"].max() if len(host) else 0, end.max() if len(end) else 0))
    timeline = _Timeline(host)
    at = int(by_end[-1]) if len(end) and end.max() >= now - _RETURN_NS else -1
    while now > begin:
        if at >= 0:
            spent[str(kind[at])] += max(0, min(now, int(end[at])) - int(start[at]))
            now, before = int(start[at]), int(np.searchsorted(end[by_end], start[at], "right")) - 1
            free = int(end[by_end[before]]) if before >= 0 else begin
            if free <= called[at] < now and now - called[at] <= latency:
                spent["launch"] += now - int(called[at])
                now, at = int(called[at]), -1
            else:
                spent["gap"] += now - free
                now, at = free, int(by_end[before]) if before >= 0 else -1
                if at < 0:
                    break
            continue
        last = int(np.searchsorted(syncs[:, 0], now, "right")) - 1
        until = int(syncs[last, 0]) if last >= 0 else begin
        timeline.charge(spent, until, now)
        if last < 0:
            break
        now = min(until, int(syncs[last, 1]))
        at = int(by_end[np.searchsorted(end[by_end], now, "right") - 1])
    whole = max(1, sum(spent.values()))
    return dict(sorted(((name, 100 * ns / whole) for name, ns in spent.items()), key=lambda item: -item[1]))


def _calls(work: pd.DataFrame, host: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the start of the call that enqueued each piece of work, ns; -1 for unknown."""
    calls = host[(host["correlation"] >= 0) & host["cat"].isin(CALLS)]
    first = calls.drop_duplicates("correlation").set_index("correlation")["start"]
    return work["correlation"].map(first).fillna(-1).to_numpy(np.int64)


def _waiting(
    calls: pd.DataFrame, ends: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return (end of the call, end of the work it waited for), ns, of calls that returned just after some work."""
    stop, begin = calls["end"].to_numpy(np.int64), calls["start"].to_numpy(np.int64)
    if not len(ends) or not len(stop):
        return np.zeros((0, 2), np.int64)
    last = ends[np.maximum(np.searchsorted(ends, stop, "right") - 1, 0)]
    waited = (last > begin) & (last <= stop) & (stop - last <= np.maximum(_RETURN_NS, _RETURN_SHARE * (stop - begin)))
    return np.stack([stop[waited], last[waited]], 1)


class _Timeline:
    """When the host is in launch calls and in the data loader."""

    def __init__(self, host: pd.DataFrame) -> None:
        launches = host["name"].str.contains("Launch|MemcpyAsync|MemsetAsync|EventRecord|StreamWaitEvent")
        calls = host[launches & host["cat"].isin(CALLS)]
        loads = host[host["name"].str.startswith("enumerate(DataLoader)")]
        self.parts = {"launch": calls[["start", "end"]].to_numpy(), "data_loading": loads[["start", "end"]].to_numpy()}

    def charge(self, spent: dict[str, int], start: int, end: int) -> None:
        """Add the host's time between two moments."""
        rest = end - start
        for name, each in self.parts.items():
            inside = (
                int(np.maximum(0, np.minimum(each[:, 1], end) - np.maximum(each[:, 0], start)).sum())
                if len(each)
                else 0
            )
            spent[name] += min(inside, rest)
            rest -= min(inside, rest)
        spent["host"] += rest
