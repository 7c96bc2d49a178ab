"""Launch calls take longer than the work they start."""

from __future__ import annotations

from htagraph.core.naming import short_name
from htagraph.findings.device_idle import DEVICE_IDLE
from htagraph.findings.finding import BarPart, Chart, Claim, Evidence, Finding, Place, Rows, in_whole, worded
from htagraph.findings.limits import MOST_ROWS
from htagraph.findings.phrases import plural
from htagraph.findings.results import Results

__all__ = ["SHORT_LAUNCHES"]

_MIN_LAUNCHES = 100
"""Launch calls; chosen: the share of fewer is chance. Doubled, jobs of 100 to 200 calls get no sentence on launches."""


def _when(results: Results) -> list[Claim]:
    """Claim it where devices wait for launches and these are many."""
    idle = results.claims(DEVICE_IDLE.when)
    if results.bound.cause != "host" or all(claim.facts["host"] != "launches" for claim in idle):
        return []
    total, short = int(results.launches["launches"].sum()), int(results.launches["short"].sum())
    if total < _MIN_LAUNCHES or short < total / 2:
        return []
    return [Claim("short_launches", "", 100 * short / total, "percent", facts={"total": total})]


def _evidence(results: Results, _claim: Claim) -> Evidence:
    from htagraph.analyses.launch_stats import launch_stats

    words = ("longer than their work", "launch"), ("not longer", "idle")
    stacks = [
        (f"rank {row['rank']}", [
            BarPart(*word, float(count))
            for word, count in zip(words, (row["short"], row["launches"] - row["short"]), strict=True)
        ])
        for row in results.launches.to_dict("records")
    ]  # fmt: skip
    title = "Launch calls, by whether they take longer than the work they start"
    short = launch_stats(results.graph)
    short = short[short["short"]]
    by_name = short.assign(work=short["work_name"].map(short_name)).groupby("work", as_index=False).agg(
        calls=("launch", "nunique"), mean_launch_us=("launch_us", "mean"), mean_work_us=("work_us", "mean"),
        longest=("launch", lambda rows: rows.loc[short.loc[rows.index, "launch_us"].idxmax()]),
    ).nlargest(MOST_ROWS, "calls")  # fmt: skip
    places = [Place(int(row)) for row in by_name.pop("longest")]
    return Evidence(
        Chart(title, stacks=stacks, text=lambda count: plural(round(count), "call")),
        Rows(by_name, "What most of these calls start", places), place=places[0] if places else None,
        look="the longest such call", command=("launches",), meaning=launch_stats,
    )  # fmt: skip


_SHORT = worded(
    "{figure:.0f} % of {total:,} launches take longer than the work they start: the kernels are too small for the "
    "device."
)
_LONG = in_whole(_SHORT, "(htagraph launches)")
SHORT_LAUNCHES = Finding("short_launches", when=_when, long=_LONG, short=_SHORT, evidence=_evidence)
