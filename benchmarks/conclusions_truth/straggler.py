"""Who must be called the straggler: the planted slow rank, the truth of a pair, or who arrives last in raw traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.conclusions_truth.findings import Finding
from benchmarks.conclusions_truth.raw import RawRank
from htagraph.simulate import Job, simulate

__all__ = ["cause_findings", "recorded_straggler", "simulated_straggler", "straggler_findings"]

MIN_EFFECT = 0.02
"""Share of the mean step by which a planted slow rank must lengthen it to be expected. Source: what the issue asks of
five steps. Doubled, slow ranks that cost 2 to 4 % may be missed."""
NO_EFFECT = 0.003
"""Share below which a slow rank delays nobody, so that naming it is not asked for but right all the same. Chosen;
doubled, nothing changes but the words of the evidence."""
MIN_LAST_SHARE = 0.6
"""Share of all waiting in a recording for which one rank is the last to arrive, for it to be the straggler for sure.
Chosen: more than all others together. Doubled, no recording would have one."""
EVEN = 1.5
"""Times the even share of waiting, 1 / ranks, up to which surely no rank is the straggler. Chosen; doubled, a rank of
four that causes 75 % of the waiting would have to go unnamed."""
CAUSES = {"kernels": ("kernels",), "host": ("host", "launch", "sync"), "loader": ("data_loading",)}


def simulated_straggler(job: Job) -> tuple[int | None, float, str]:
    """Return (the planted rank or None, by which share the mean step is longer for it, what is slow)."""
    if not job.slow_ranks:
        return None, 0.0, ""
    even = job.model_copy(update={"slow_ranks": ()})
    effect = simulate(job).mean_step_ns / simulate(even).mean_step_ns - 1
    return job.slow_ranks[0].rank, effect, job.slow_ranks[0].what


def recorded_straggler(ranks: Sequence[RawRank]) -> tuple[int | None, bool, str]:
    """Return (who is last, whether that is clear, evidence) from collectives matched by order, on clocks that agree.

    Unclear wherever calls do not pair up, do not overlap on all ranks, or no rank stands out or all are even.
    """
    talks = [_communications(rank) for rank in ranks]
    names = sorted({name for each in talks for name in each})
    charged, total, overlapping, count = np.zeros(len(ranks)), 0.0, 0, 0
    for name in names:
        calls = [each.get(name, np.zeros((0, 2), np.int64)) for each in talks]
        if len({len(each) for each in calls}) != 1 or "send" in name.lower() or "recv" in name.lower():
            return None, False, f"{name} is not on all ranks equally often"
        start, end = (np.stack([each[:, column] for each in calls]) for column in (0, 1))
        overlapping, count = overlapping + int((start.max(0) <= end.min(0)).sum()), count + start.shape[1]
        waits = (start.max(0) - start).sum(0)
        np.add.at(charged, start.argmax(0), waits)
        total += float(waits.sum())
    if not count or not total or overlapping < 0.98 * count:
        return None, False, f"{overlapping} of {count} calls overlap on all ranks"
    share, who = charged.max() / total, int(charged.argmax())
    evidence = f"rank {ranks[who].rank} is last for {share:.0%} of {total / 1e6:.1f} ms of waiting in {count} calls"
    if share >= MIN_LAST_SHARE:
        return ranks[who].rank, True, evidence
    return None, bool(share <= EVEN / len(ranks)), evidence


def _communications(rank: RawRank) -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Return start and end, ns, of collectives by name, in order."""
    table = rank.events
    chosen = table["name"].str.startswith("gloo:") | (
        (table["cat"] == "kernel") & table["name"].str.contains("nccl", case=False)
    )
    calls = table[chosen].sort_values("start", kind="stable")
    return {str(name): rows[["start", "end"]].to_numpy(np.int64) for name, rows in calls.groupby("name")}


def straggler_findings(said: int | None, expected: int | None, *, effect: float, evidence: str = "") -> list[Finding]:
    """Return whether the right rank is called the straggler, or nobody.

    Args:
        said: the rank that is called so.
        expected: the slow rank; None for none.
        effect: by which share the mean step is longer for it; 1 where that is known to be much.
        evidence: where the expectation comes from.
    """
    name = "" if said is None else f"rank {said}"
    text = evidence or f"its effect on the mean step is {effect:.1%}"
    if expected is None:
        nobody = Finding("no straggler", "" if name else "nobody", "nobody", said is None, text)
        return [nobody, Finding("straggler", name, "", right=False, evidence=text)] if name else [nobody]
    if effect >= MIN_EFFECT:
        return [Finding("straggler", name, f"rank {expected}", said == expected, text)]
    return [Finding("straggler", name, "", said == expected, text)] if name else []


def cause_findings(cause: str, what: str) -> list[Finding]:
    """Return whether the named cause is what was planted; only asked where the right rank is named."""
    return [Finding("straggler cause", cause, what, cause in CAUSES[what], f"planted: slower {what}")]
