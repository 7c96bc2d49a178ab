"""Figures → words: what bounds this job, on which rank, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from htagraph.core.naming import short_name
from htagraph.output.phrases import CATEGORY_WORDS

if TYPE_CHECKING:
    from htagraph.analyses.stragglers import Stragglers

__all__ = ["verdict"]

_WHAT = {
    "kernel": "kernel ", "call": "the calls of ", "operator": "operator ", "rank": "the work of ",
    "group": "transfers of ", "phase": "",
}  # fmt: skip
_CAUSES = {
    "kernels": "its kernels take longer", "host": "its host code takes longer",
    "data_loading": "its data loader takes longer", "launch": "its launch calls take longer",
    "sync": "its blocking calls take longer", "network": "its transfers take longer",
    "collective": "it is late from an earlier collective", "none": "its own work looks like theirs",
}  # fmt: skip
_MAX_GAINS = 3
"""Opportunities that are named; chosen: the best of three kinds fit on two lines. Doubled, the best of up to six."""
_MAX_LETTERS = 60
"""Letters of a name; chosen: half a line. Doubled, a kernel's name may fill one."""
_MIN_US_IN_WHOLE_MS = 100_000.0
"""µs from which times are rounded to whole ms, which leaves three digits. Doubled, 100 to 200 ms keep three digits."""
_MIN_SHARE = 0.05
"""Share of the window; chosen: less is not worth a sentence. Doubled, 5 to 10 % of waiting is not named."""
_MIN_PERCENT = 2.0
"""Percent of the path or of the makespan; chosen: less is not worth naming. Doubled, 2 to 4 % are not named."""
_MAX_COVERED_SHARE = 0.8
"""Share of the recorded time; below it, a sentence says that the shares leave out the rest. Chosen. Doubled, always."""
_MIN_LAUNCHES = 100
"""Launch calls; chosen: the share of fewer is chance. Doubled, jobs of 100 to 200 calls get no sentence on launches."""


def verdict(tables: Mapping[str, pd.DataFrame], inputs: pd.DataFrame, slow: Stragglers) -> list[str]:
    """Return a few sentences, the most important first.

    Args:
        tables: results by name: ``temporal_breakdown``, ``rank_idle``, ``launches``, ``critical_path`` (a path's
            summary), ``opportunities`` and ``gaps`` (a replay's).
        inputs: what was read, as in the summary; of it ``rank``, ``span_us`` and ``world_size``.
        slow: result of `stragglers`.
    """
    temporal = tables["temporal_breakdown"]
    busy = temporal[temporal["window_us"] > 0]
    if not len(busy):
        return ["No work was recorded on any rank. Was the profiler active during a step?"]
    return [
        *_bound(tables["critical_path"]),
        *_gains(tables["opportunities"]),
        *_waiting(slow, busy),
        *_idle(busy, tables["rank_idle"]),
        *_launching(busy, tables["rank_idle"], tables["launches"]),
        *_unexplained(tables["gaps"]),
        *_outside(busy, inputs),
        *_alone(inputs),
    ]


def _bound(path: pd.DataFrame) -> list[str]:
    """Name what most of the critical path is, and the rank on which most of it lies."""
    if not len(path):
        return []
    shares = _shares(path, "category")
    part = max(shares, key=lambda category: shares[category])
    others = ", ".join(
        f"{CATEGORY_WORDS[category]} {share:.0f} %"
        for category, share in shares.items()
        if category != part and share >= _MIN_PERCENT
    )
    text = f"The job is bound by {CATEGORY_WORDS[part]}: {shares[part]:.0f} % of the critical path"
    ranks = _shares(path, "rank")
    rank = max(ranks, key=lambda name: ranks[name])
    if len(ranks) > 1 or ranks[rank] < 100 - _MIN_PERCENT:
        text += f"; {ranks[rank]:.0f} % of the path is on rank {rank}"
    elif rank != "0":
        text += f"; the path is on rank {rank}"
    return [f"{text}. Also on it: {others}." if others else f"{text}."]


def _shares(path: pd.DataFrame, group: str) -> dict[str, float]:
    """Return the shares of a group of a path's summary, percent, largest first."""
    rows = path[path["group"] == group].sort_values("share_percent", ascending=False)
    return dict(zip(rows["key"].astype(str), rows["share_percent"].astype(float), strict=True))


def _gains(gains: pd.DataFrame) -> list[str]:
    """Name what to improve first, the best of each kind, as they contain one another; and what it gains at most."""
    worth = gains[gains["gain_percent"] >= _MIN_PERCENT].drop_duplicates("what").head(_MAX_GAINS)
    if not len(worth):
        return []
    parts = [
        f"{_WHAT[what]}{_short(str(name))}, up to {_ms(us)} ms ({percent:.0f} %)"
        for what, name, us, percent in worth[["what", "name", "gain_us", "gain_percent"]].itertuples(index=False)
    ]
    return [f"Largest possible gains, if only this took no time: {'; '.join(parts)} (htagraph opportunities)."]


def _ms(us: float) -> str:
    return f"{us / 1000:,.0f}" if us >= _MIN_US_IN_WHOLE_MS else f"{us / 1000:.3g}"


def _short(name: str) -> str:
    short = short_name(name)
    return short if len(short) <= _MAX_LETTERS else short[: _MAX_LETTERS - 1] + "…"


def _waiting(slow: Stragglers, temporal: pd.DataFrame) -> list[str]:
    """Name the rank that the others wait for, and why; or say that no rank causes the waiting."""
    ranks, total = slow.to_frame(), slow.total_wait_us
    if len(ranks) < 2 or total < _MIN_SHARE * float(temporal["window_us"].sum()):
        return []
    if slow.straggler is None:
        return [
            f"Ranks wait {_ms(total)} ms for each other in collectives (summed over ranks), but no single rank is "
            "slower than its peers beyond chance."
        ]
    row = ranks[ranks["rank"] == slow.straggler].iloc[0]
    why = _CAUSES.get(str(row["cause"]), str(row["cause"]))
    name = f", mainly in {_short(str(row['cause_name']))}" if row["cause_name"] else ""
    return [
        f"Rank {slow.straggler} makes the others wait: it causes {row['share_percent']:.0f} % of the {_ms(total)} ms "
        f"spent waiting in collectives (summed over ranks); {why}{name} (htagraph stragglers)."
    ]


def _idle(temporal: pd.DataFrame, rank_idle: pd.DataFrame) -> list[str]:
    """Say why devices are idle, one sentence for each cause that weighs."""
    window = _device_window(temporal)
    if not window:
        return []
    idle = rank_idle.groupby("cause")["idle_us"].sum().sort_values(ascending=False)
    sentences = []
    for cause, us in idle.items():
        if us >= _MIN_SHARE * window:
            worst = rank_idle[rank_idle["cause"] == cause].sort_values("share_percent").iloc[-1]
            at = f" (rank {worst['rank']}: {worst['share_percent']:.0f} %)" if len(temporal) > 1 else ""
            sentences.append(_IDLE_MEANING[str(cause)].format(share=f"{100 * us / window:.0f} %", at=at))
    return sentences


_IDLE_MEANING = {
    "host_wait": (
        "Devices wait for the host {share} of the time{at}: kernels are launched too late. Check what the host does "
        "between launches (Python, data loading, synchronization); larger batches or CUDA graphs reduce the effect "
        "(htagraph idle)."
    ),
    "kernel_wait": (
        "Devices pause between queued kernels {share} of the time{at}: there are many small kernels. Fuse them "
        "(torch.compile) or replay them as a CUDA graph."
    ),
    "other": (
        "Devices are idle {share} of the time{at} although work was already launched: it waited for an event, another "
        "stream or another rank (htagraph idle)."
    ),
}


def _launching(temporal: pd.DataFrame, rank_idle: pd.DataFrame, launches: pd.DataFrame) -> list[str]:
    """Say where most launches take longer than their work, if devices wait for launches at all."""
    total, short = launches["launches"].sum(), launches["short"].sum()
    waits = rank_idle.loc[rank_idle["cause"] == "host_wait", "idle_us"].sum()
    if total < _MIN_LAUNCHES or short < total / 2 or waits < _MIN_SHARE * _device_window(temporal):
        return []
    return [
        f"{100 * short / total:.0f} % of {total:,} launches take longer than the work they start: the kernels are too "
        "small for the device (htagraph launches)."
    ]


def _unexplained(gaps: pd.DataFrame) -> list[str]:
    """Say where pauses that nothing in the traces explains weigh."""
    worst = gaps[~gaps["explained"]].sort_values("critical_percent").tail(1)
    if not len(worst) or float(worst["critical_percent"].iloc[0]) < 100 * _MIN_SHARE:
        return []
    kind, share = str(worst["gap"].iloc[0]).replace("_", " "), float(worst["critical_percent"].iloc[0])
    return [
        f"Unexplained pauses make up {share:.0f} % of the critical path (mostly {kind}): predictions are less certain "
        "by that much."
    ]


def _outside(temporal: pd.DataFrame, inputs: pd.DataFrame) -> list[str]:
    """Say where device work covers only part of what was recorded: the shares above say nothing of the rest."""
    window, span = _device_window(temporal), _device_span(temporal, inputs)
    if not window or window >= _MAX_COVERED_SHARE * span:
        return []
    return [
        f"These shares cover the time from the first to the last device work, {100 * window / span:.0f} % of the "
        "recorded time; in the rest only the host was active."
    ]


def _alone(inputs: pd.DataFrame) -> list[str]:
    """Warn where one rank of several was read."""
    size = int(inputs["world_size"].max()) if len(inputs) else 0
    if len(inputs) != 1 or size < 2:
        return []
    return [
        f"Only rank {inputs['rank'].iloc[0]} of {size} was read, so waiting for the others looks like communication. "
        "Read all ranks to tell them apart."
    ]


def _device_window(temporal: pd.DataFrame) -> float:
    return float(temporal.loc[temporal["executor"] == "device", "window_us"].sum())


def _device_span(temporal: pd.DataFrame, inputs: pd.DataFrame) -> float:
    ranks = temporal.loc[temporal["executor"] == "device", "rank"]
    return float(inputs.loc[inputs["rank"].isin(ranks), "span_us"].sum())
