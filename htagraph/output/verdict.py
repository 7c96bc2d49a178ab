"""Figures → words: what bounds this job, on which rank, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from htagraph.core.naming import short_name
from htagraph.queries.paths import CATEGORY_WORDS

if TYPE_CHECKING:
    from htagraph.analyses.stragglers import Stragglers

__all__ = ["verdict"]

_WHAT = {
    "kernel": "kernel ", "call": "the calls of ", "operator": "operator ", "rank": "the work of ",
    "group": "transfers of ", "phase": "",
}  # fmt: skip
_CAUSES = {
    "kernels": "its kernels take longer", "host": "its host code takes longer",
    "data_loading": "its data loader takes longer", "launch": "its launches take longer",
    "sync": "its blocking calls take longer", "network": "its transfers take longer",
    "collective": "it comes late from an earlier collective", "none": "its own work looks like theirs",
}  # fmt: skip
_NAMED, _WIDTH = 3, 60
_LONG_US = 100_000.0
_UNEVEN = 0.05  # of the window: smaller shares and differences are not worth a sentence
_FEW = 2.0  # percent
_MOST = 0.8  # of the recorded time
_ENOUGH_LAUNCHES = 100


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
        return ["No work was recorded on any rank: nothing to judge. Was the profiler active during a step?"]
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
    part = max(shares, key=lambda each: shares[each])
    rest = ", ".join(
        f"{CATEGORY_WORDS[each]} {share:.0f} %" for each, share in shares.items() if each != part and share >= _FEW
    )
    text = f"Bound by {CATEGORY_WORDS[part]}: {shares[part]:.0f} % of the critical path"
    ranks = _shares(path, "rank")
    rank = max(ranks, key=lambda each: ranks[each])
    if len(ranks) > 1 or ranks[rank] < 100 - _FEW:
        text += f", which lies on rank {rank} for {ranks[rank]:.0f} %"
    elif rank != "0":
        text += f", which lies on rank {rank}"
    return [f"{text}; {rest}." if rest else f"{text}."]


def _shares(path: pd.DataFrame, group: str) -> dict[str, float]:
    """Return the shares of a group of a path's summary, percent, largest first."""
    mine = path[path["group"] == group].sort_values("share_percent", ascending=False)
    return dict(zip(mine["key"].astype(str), mine["share_percent"].astype(float), strict=True))


def _gains(gains: pd.DataFrame) -> list[str]:
    """Name what to improve first, the best of each kind, as they contain one another; and what it gains at most."""
    worth = gains[gains["gain_percent"] >= _FEW].drop_duplicates("what").head(_NAMED)
    if not len(worth):
        return []
    said = [
        f"{_WHAT[what]}{_short(str(name))}: at most {_ms(us)} ms ({percent:.0f} %)"
        for what, name, us, percent in worth[["what", "name", "gain_us", "gain_percent"]].itertuples(index=False)
    ]
    return [f"Most to gain, if it took no time at all: {'; '.join(said)}."]


def _ms(us: float) -> str:
    return f"{us / 1000:,.0f}" if us >= _LONG_US else f"{us / 1000:.3g}"


def _short(name: str) -> str:
    short = short_name(name)
    return short if len(short) <= _WIDTH else short[: _WIDTH - 1] + "…"


def _waiting(slow: Stragglers, temporal: pd.DataFrame) -> list[str]:
    """Name the rank that the others wait for, and why; or say that waiting is nobody's doing."""
    ranks, total = slow.to_frame(), slow.total_wait_us
    if len(ranks) < 2 or total < _UNEVEN * float(temporal["window_us"].sum()):
        return []
    if slow.straggler is None:
        return [
            f"Ranks wait {_ms(total)} ms for each other in collectives, summed over ranks; no single rank is "
            "slower than its peers beyond chance."
        ]
    row = ranks[ranks["rank"] == slow.straggler].iloc[0]
    why = _CAUSES.get(str(row["cause"]), str(row["cause"]))
    name = f", above all in {_short(str(row['cause_name']))}" if row["cause_name"] else ""
    return [
        f"The others wait for rank {slow.straggler}: {row['share_percent']:.0f} % of {_ms(total)} ms of waiting "
        f"in collectives, summed over ranks, is its doing; {why}{name}."
    ]


def _idle(temporal: pd.DataFrame, rank_idle: pd.DataFrame) -> list[str]:
    """Say why devices are idle, one sentence for each cause that weighs."""
    window = _device_window(temporal)
    if not window:
        return []
    idle = rank_idle.groupby("cause")["idle_us"].sum().sort_values(ascending=False)
    sentences = []
    for cause, us in idle.items():
        if us >= _UNEVEN * window:
            worst = rank_idle[rank_idle["cause"] == cause].sort_values("share_percent").iloc[-1]
            at = f" (rank {worst['rank']}: {worst['share_percent']:.0f} %)" if len(temporal) > 1 else ""
            sentences.append(_IDLE_MEANING[str(cause)].format(share=f"{100 * us / window:.0f} %", at=at))
    return sentences


_IDLE_MEANING = {
    "host_wait": (
        "Devices wait for the host for {share} of the time{at}: launches come too late. Look at what the host does "
        "between them: Python, data loading, synchronization; larger batches or CUDA graphs make it matter less."
    ),
    "kernel_wait": (
        "Devices pause between queued kernels for {share} of the time{at}: many small kernels. Fuse them "
        "(torch.compile) or replay them as a CUDA graph."
    ),
    "other": (
        "Devices are idle for {share} of the time{at} though work was already launched: it waited for events, another "
        "stream or another rank."
    ),
}


def _launching(temporal: pd.DataFrame, rank_idle: pd.DataFrame, launches: pd.DataFrame) -> list[str]:
    """Say where most launches take longer than their work, if devices wait for launches at all."""
    total, short = launches["launches"].sum(), launches["short"].sum()
    waits = rank_idle.loc[rank_idle["cause"] == "host_wait", "idle_us"].sum()
    if total < _ENOUGH_LAUNCHES or short < total / 2 or waits < _UNEVEN * _device_window(temporal):
        return []
    return [
        f"{100 * short / total:.0f} % of {total} launches take longer than the work they start: "
        "the kernels are too small for the device."
    ]


def _unexplained(gaps: pd.DataFrame) -> list[str]:
    """Say where pauses that nothing in the traces explains weigh."""
    worst = gaps[~gaps["explained"]].sort_values("critical_percent").tail(1)
    if not len(worst) or float(worst["critical_percent"].iloc[0]) < 100 * _UNEVEN:
        return []
    kind, share = str(worst["gap"].iloc[0]).replace("_", " "), float(worst["critical_percent"].iloc[0])
    return [
        f"Pauses that nothing in the traces explains make up {share:.0f} % of the critical path (mostly {kind}): "
        "predictions are that much less sure."
    ]


def _outside(temporal: pd.DataFrame, inputs: pd.DataFrame) -> list[str]:
    """Say where device work covers only part of what was recorded: the shares above say nothing of the rest."""
    window, span = _device_window(temporal), _device_span(temporal, inputs)
    if not window or window >= _MOST * span:
        return []
    return [
        f"These shares are of the time from the first to the last device work, {100 * window / span:.0f} % of what was "
        "recorded; in the rest only the host was at work."
    ]


def _alone(inputs: pd.DataFrame) -> list[str]:
    """Warn where one rank of several was read."""
    size = int(inputs["world_size"].max()) if len(inputs) else 0
    if len(inputs) != 1 or size < 2:
        return []
    return [
        f"Only rank {inputs['rank'].iloc[0]} of {size} was read: waiting for the others looks like communication here."
    ]


def _device_window(temporal: pd.DataFrame) -> float:
    return float(temporal.loc[temporal["executor"] == "device", "window_us"].sum())


def _device_span(temporal: pd.DataFrame, inputs: pd.DataFrame) -> float:
    ranks = temporal.loc[temporal["executor"] == "device", "rank"]
    return float(inputs.loc[inputs["rank"].isin(ranks), "span_us"].sum())
