"""What the host does longest, by the own time of events in raw JSON, and whether stated pauses exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from benchmarks.conclusions_truth.findings import Finding
from benchmarks.conclusions_truth.raw import RawRank, main_thread, self_time

__all__ = ["Pause", "pause_findings"]

EXPECTED = 0.25
"""Share of the recording that one name's own time on one thread must have to be expected. Chosen: the host's part of
the path then has to pass through it in a host-bound job; doubled, hardly any job has one."""
LEAD = 1.5
"""How many times the next name's own time it must be. Chosen; doubled, fewer are expected."""
TOLERANCE = 1.05
"""How many times its own time in the JSON a pause may be stated as. Chosen: rounding, and the moment between two
events; doubled, a pause twice as long as anything in the trace would pass."""


class Pause(NamedTuple):
    """One stated pause."""

    what: str
    """What ran; empty for code that no event covers."""
    inside: str
    rank: int
    total_us: float
    longest_us: float


def pause_findings(said: Sequence[Pause], ranks: Sequence[RawRank], *, host_bound: bool) -> list[Finding]:
    """Return whether each stated pause is in the JSON, and whether what takes longest in a host-bound job is named."""
    own = {rank.rank: _own(rank) for rank in ranks}
    findings = [_exists(each, own[each.rank]) for each in said if each.rank in own]
    if host_bound and len(ranks) == 1:
        findings += _longest(said, own[ranks[0].rank], ranks[0])
    return findings


def _own(rank: RawRank) -> pd.DataFrame:
    """Return each event's own time; also with what annotations inside it only name, which is the function's own."""
    annotated = rank.host["cat"] == "user_annotation"
    plain = replace(rank, events=rank.host[~annotated])
    tables = [
        self_time(each, tid).assign(named=named)
        for named, each in ((True, rank), (False, plain))
        for tid in each.host["tid"].unique()
    ]
    return pd.concat(tables) if tables else pd.DataFrame({"name": [], "own": [], "tid": [], "named": []})


def _exists(pause: Pause, own: pd.DataFrame) -> Finding:
    """Return whether the own time of what is named is at least as long as stated."""
    label = pause.what or f"untraced in {pause.inside or 'the thread'}"
    name = pause.what or pause.inside
    mine = own[own["name"] == name].groupby("named")["own"].agg(["sum", "max"]).max() / 1000
    total, longest = (float(mine["sum"]), float(mine["max"])) if len(mine.dropna()) else (0.0, 0.0)
    if not name:  # between events of the top level: no event says how long
        return Finding("host pause", "untraced", "", right=True, evidence="no event to compare with")
    right = pause.total_us <= TOLERANCE * total + 5 and pause.longest_us <= TOLERANCE * longest + 5
    text = f"own time in the JSON {total / 1000:.1f} ms, longest {longest:.0f} µs; stated {pause.longest_us:.0f} µs"
    return Finding("host pause", f"{label[:60]} {pause.total_us / 1000:.1f} ms", "", right, text)


def _longest(said: Sequence[Pause], own: pd.DataFrame, rank: RawRank) -> list[Finding]:
    """Return whether what clearly takes longest is named, where one thread alone does most of the work."""
    events = rank.events
    window = int(events["end"].max() - events["start"].min())
    others = own[own["named"] & (own["tid"] != main_thread(rank))]["own"].sum()
    if others > EXPECTED * window:
        return []
    work = own[own["named"] & (own["tid"] == main_thread(rank)) & (own["cat"] != "user_annotation")]
    sums = work.groupby("name")["own"].sum().sort_values(ascending=False)
    sums = sums[~sums.index.str.contains("Synchronize|gloo:|c10d::|DataLoader")]
    if len(sums) < 2 or sums.iloc[0] < EXPECTED * window or sums.iloc[0] < LEAD * sums.iloc[1]:
        return []
    name = str(sums.index[0])
    text = f"own time {sums.iloc[0] / 1e6:.1f} of {window / 1e6:.1f} ms"
    listed = any(name in (each.what, each.inside) for each in said)
    return [Finding("host pause", "", name[:60], listed, text)]
