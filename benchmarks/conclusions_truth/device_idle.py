"""Why devices are idle, how many launches are too long, and other figures that raw JSON settles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.conclusions_truth.findings import Finding
from benchmarks.conclusions_truth.raw import CALLS, RawRank

__all__ = ["idle_findings", "idle_shares", "single_rank_findings"]

SHORT_NS = 30_000
"""ns; shorter pauses between queued kernels are the device's own. Source: the default of `idle_breakdown`."""
EXPECTED = 10.0
"""Percent of the window from which a cause of idleness must be named. Chosen: twice what a summary names at least;
doubled, causes of 10 to 20 % may be missing."""
MAX_OFF = 6.0
"""Points by which a stated share may differ. Chosen: raw JSON does not say which of several things held a kernel up.
Doubled, half of the shares that are said at all would be right whatever they are."""


def idle_shares(ranks: Sequence[RawRank]) -> dict[str, float]:
    """Return how much of the time from first to last device work devices are idle, percent, by cause, over all ranks.

    ``host_wait``: for most of the pause, the call that launched the next work had not begun (its usual latency
    included) or had not returned. ``kernel_wait``: else, shorter than 30 µs. ``other``: the rest.
    """
    sums, window = dict.fromkeys(("host_wait", "kernel_wait", "other"), 0), 0
    for rank in ranks:
        work = rank.work[lambda table: table["end"] > table["start"]]
        if not len(work):
            continue
        start, end = work["start"].to_numpy(np.int64), work["end"].to_numpy(np.int64)
        window += int(end.max() - start[0])
        reach = np.maximum.accumulate(end)[:-1]
        pause = start[1:] - reach
        begin, stop = _calls(rank, work["correlation"].to_numpy(np.int64)[1:])
        latency = np.where(begin >= 0, start[1:] - begin, 0)
        usual = int(np.quantile(latency[latency > 0], 0.05)) if (latency > 0).any() else 0
        allowed = np.maximum(begin + usual, np.minimum(stop, start[1:]))
        late = (begin >= 0) & (allowed - reach > pause / 2)
        cause = np.where(late, "host_wait", np.where(pause < SHORT_NS, "kernel_wait", "other"))
        for name in sums:
            sums[name] += int(pause[(pause > 0) & (cause == name)].sum())
    return {name: 100 * ns / max(window, 1) for name, ns in sums.items()}


def _calls(rank: RawRank, correlation: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end of the calls that enqueued some work, ns; -1 for unknown."""
    host = rank.host
    calls = host[(host["correlation"] >= 0) & host["cat"].isin(CALLS)]
    calls = calls.drop_duplicates("correlation").set_index("correlation").reindex(correlation)
    return calls["start"].fillna(-1).to_numpy(np.int64), calls["end"].fillna(-1).to_numpy(np.int64)


def idle_findings(said: Mapping[str, float], ranks: Sequence[RawRank]) -> list[Finding]:
    """Return whether the causes of idleness and their shares are right, and the large ones named."""
    shares = idle_shares(ranks)
    text = ", ".join(f"{cause} {share:.0f} %" for cause, share in shares.items())
    findings = [
        Finding("idle cause", f"{cause} {share:.0f} %", "", abs(share - shares[cause]) <= MAX_OFF, text)
        for cause, share in said.items()
    ]
    for cause, share in shares.items():
        if share >= EXPECTED:
            findings.append(Finding("idle cause", "", f"{cause} {share:.0f} %", cause in said, text))
    return findings


def single_rank_findings(ranks: Sequence[RawRank], *, said: bool) -> list[Finding]:
    """Return whether it is said that one rank of several was read, exactly where that is so."""
    alone = len(ranks) == 1 and ranks[0].world > 1
    text = f"{len(ranks)} file(s), world size {ranks[0].world if ranks else 0}"
    word = "one rank of several"
    finding = Finding("one rank", word if said else "", word if alone else "", said == alone, text)
    return [finding] if said or alone else []
