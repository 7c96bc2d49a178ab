"""Sentences of ``htagraph phases``: the phase with the most time, when it took longest, and where to look next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import pandas as pd

from htagraph.core.naming import ANY_STEP
from htagraph.core.statistics import MOST
from htagraph.findings.limits import LARGE_SHARE
from htagraph.findings.phrases import Suggestion, command_line, plural, share_text, spoken, time_text
from htagraph.trace.readers import Recorder

__all__ = ["LongRegion", "RecordedPhases", "longest_phase", "phases_sentences"]

_PYTORCH: Final = Recorder()
"""The recorder of most jobs: PyTorch's profiler."""


class LongRegion(NamedTuple):
    """A region of a phase that took far longer than the usual region of its rank."""

    rank: int
    step: int
    """The step that it is in; -1 outside steps."""
    wall_us: float
    usual_us: float
    """The median of the rank's further regions."""
    call: str
    """The call that took most of the extra time of this region; empty for none."""
    call_us: float
    """How long these calls took inside the region."""


class RecordedPhases(NamedTuple):
    """How a job was recorded."""

    window_us: float = 0.0
    """The time of the recording."""
    recorder: Recorder = _PYTORCH
    """The profiler that wrote the traces."""
    are_launches_known: bool = True
    """Whether nearly all device work has its launch in the files: else a phase has more work than is known."""


_ALL: Final = RecordedPhases()
"""A recording that lacks nothing, of unknown length."""


def phases_sentences(
    table: pd.DataFrame,
    inputs: Sequence[str],
    annotation: str | None,
    job: RecordedPhases = _ALL,
    long_region: LongRegion | None = None,
) -> list[str]:
    """Return which phase takes the most time, when it took longest, and how fast tokens are made.

    Args:
        table: the result of `htagraph.phases`.
        inputs: the words of the command line that choose the job.
        annotation: the glob that the user gave; None for the outermost annotations.
        job: how the job was recorded.
        long_region: a region of `longest_phase` that took far longer than usual; None for none.
    """
    recorder = job.recorder
    if not len(table):
        reason = "no annotation was recorded" if annotation is None else f"nothing is called {annotation!r}"
        return [
            f"There are no phases: {reason}. Put {recorder.setting('regions')} around parts of the code, "
            f"{recorder.setting('step')}, and record with {recorder.setting('host')}."
        ]
    more_phases = f"Put {recorder.setting('regions')} around parts of the code."
    sums = _sums(table)
    if annotation is None and set(sums.index) == {ANY_STEP}:
        return [f"There are no phases but the steps. {more_phases}"]
    queued = _is_queued(sums)
    name = longest_phase(table)
    most = sums.iloc[sums.index.tolist().index(name)]
    percent = 100 * most["wall_us"] / most["ranks"] / job.window_us if job.window_us else 0.0
    is_small = annotation is None and 0 < percent < 100 * LARGE_SHARE
    if queued.all() or (is_small and queued.any()):
        return _on_host(table, sums, inputs, is_work_known=job.are_launches_known)
    of_window = f" ({share_text(percent)} of the recording)" if percent else ""
    if is_small:
        return [f"No phase takes much of the time: the longest is {name}{of_window}. {more_phases}"]
    own_time = " of its own" if queued.any() else ""
    share = 100 * most["busy_us"] / most["wall_us"] if most["wall_us"] else 0.0
    runs = f"; its kernels run {share_text(share)} of that" if most["kernels"] and job.are_launches_known else ""
    regions = plural(int(most["count"]), "region")
    time = time_text(most["wall_us"])
    return spoken(
        f"{name} takes the most wall time{own_time}: {time} {_over(table, name)}in {regions}{of_window}{runs}.",
        _long(long_region),
        _rates(table),
        _look(most, share, name, inputs),
    )


def longest_phase(table: pd.DataFrame) -> str:
    """Return the phase with the most wall time; a phase whose device work mostly waits in a queue comes last.

    Args:
        table: the result of `htagraph.phases`, with at least one row.
    """
    sums = _sums(table)
    queued = _is_queued(sums)
    unqueued = sums if queued.all() else sums[~queued]
    return str(unqueued.index[int(unqueued["wall_us"].argmax())])


def _sums(table: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each phase over all ranks."""
    phases = table.groupby("phase", sort=False)
    return phases[["wall_us", "host_us", "busy_us", "count", "kernels"]].sum().assign(ranks=phases["rank"].nunique())


def _is_queued(sums: pd.DataFrame) -> pd.Series[bool]:
    """Return of each phase whether its wall time is mostly that of launched work that waits."""
    return (sums["kernels"] > 0) & (sums["host_us"] + sums["busy_us"] < MOST * sums["wall_us"])


def _over(table: pd.DataFrame, name: str) -> str:
    """Return on which ranks a phase runs; empty where all of one rank is meant."""
    ranks = table.loc[table["phase"] == name, "rank"]
    if ranks.nunique() > 1:
        return f"over {plural(ranks.nunique(), 'rank')} "
    return f"on rank {ranks.iloc[0]} alone " if table["rank"].nunique() > 1 else ""


def _on_host(table: pd.DataFrame, sums: pd.DataFrame, inputs: Sequence[str], *, is_work_known: bool) -> list[str]:
    """Return the phase that takes longest on the host, where the work of phases waits in queues."""
    most = sums.iloc[int(sums["host_us"].argmax())]
    name = str(most.name)
    mean_time = time_text(most["host_us"] / most["count"])
    regions = plural(int(most["count"]), "region")
    waits = ""
    if is_work_known and bool(_is_queued(sums).loc[name]):
        share = share_text(100 * most["busy_us"] / most["wall_us"])
        waits = f"; its kernels run {share} of its wall time, and mostly wait behind other work"
    time = f"{time_text(most['host_us'])} {_over(table, name)}in {regions}, {mean_time} each"
    return [
        f"{name} takes the longest on the host: {time}{waits}.",
        Suggestion("To see what the devices do meanwhile", command_line("kernels", inputs)),
    ]


def _long(region: LongRegion | None) -> str:
    """Return which region took far longer than usual, and the call that took the time there."""
    if region is None:
        return ""
    place = f"in step {region.step} of rank {region.rank}" if region.step >= 0 else f"on rank {region.rank}"
    inside = f", {time_text(region.call_us)} of it in {region.call}" if region.call else ""
    usual = time_text(region.usual_us)
    return f"It took longest {place}: {time_text(region.wall_us)} instead of {usual}{inside}."


def _rates(table: pd.DataFrame) -> str:
    """Return how many tokens each phase makes per second; empty where no phase says."""
    with_tokens = table[table["tokens"] > 0]
    tokens = with_tokens.groupby("phase")[["tokens", "wall_us"]].sum()
    rates = [f"{phase} {1e6 * row.tokens / row.wall_us:,.0f}" for phase, row in tokens.iterrows() if row.wall_us]
    return f"Tokens per second of a rank's wall time, as recorded: {', '.join(rates)}." if rates else ""


def _look(most: pd.Series, share: float, name: str, inputs: Sequence[str]) -> str:
    """Return where to look next: at kernels where these run most of the time of a phase, else at the host."""
    if not most["kernels"]:
        return Suggestion("To see what the host does meanwhile", command_line("critical-path", inputs))
    if share >= 100 * MOST:
        said = f"To see which kernels of {name} take the time"
        return Suggestion(said, command_line("kernels", inputs, "--by", "operator"))
    return Suggestion("To see what devices wait for meanwhile", command_line("idle", inputs))
