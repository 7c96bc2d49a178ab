"""Figures → words: what bounds this job, on which rank, and the figures behind it."""

from __future__ import annotations

from statistics import median

import pandas as pd

__all__ = ["verdict"]

_PARTS = {
    "computation": "computation",
    "exposed_communication": "communication that nothing hides",
    "exposed_memory": "memory copies that nothing hides",
    "other": "device events that are no work of their own",
    "idle": "idle time",
}
_UNEVEN = 0.05  # of the window: smaller shares and differences are not worth a sentence
_FEW = 2.0  # percent
_MOST = 0.8  # of the recorded time
_ENOUGH_LAUNCHES = 100
_LATE = 0.25  # ranks this near to the one that waits least, of the way to the others' median, are late too


def verdict(
    temporal: pd.DataFrame,
    overlap: pd.DataFrame,
    rank_idle: pd.DataFrame,
    launches: pd.DataFrame,
    inputs: pd.DataFrame,
) -> list[str]:
    """Return a few sentences, the most important first.

    Args:
        temporal: result of `temporal_breakdown`.
        overlap: result of `overlap`.
        rank_idle: result of `rank_idle`.
        launches: launch statistics by rank, as in the summary.
        inputs: what was read, as in the summary; of it ``rank``, ``span_us`` and ``world_size``.
    """
    busy = temporal[temporal["window_us"] > 0]
    if not len(busy):
        return ["No work was recorded on any rank: nothing to judge. Was the profiler active during a step?"]
    return [
        _bound(busy),
        *_idle(busy, rank_idle),
        *_waiting(busy, overlap),
        *_launching(busy, rank_idle, launches),
        *_outside(busy, inputs),
        *_alone(inputs),
    ]


def _bound(temporal: pd.DataFrame) -> str:
    """Name the largest part of the window, over all ranks, and the rank where it is largest."""
    shares = {part: 100 * temporal[f"{part}_us"].sum() / temporal["window_us"].sum() for part in _PARTS}
    part = max(shares, key=lambda each: shares[each])
    on_device = bool((temporal["executor"] == "device").any())
    subject = "the device time" if on_device else "the threads' time (no device work was recorded)"
    rest = ", ".join(f"{_PARTS[each]} {shares[each]:.0f} %" for each in _PARTS if each != part and shares[each] >= _FEW)
    text = f"Bound by {_PARTS[part]}: {shares[part]:.0f} % of {subject}{_most(temporal, part)}"
    return f"{text}; {rest}." if rest else f"{text}."


def _most(temporal: pd.DataFrame, part: str) -> str:
    """Return on which rank a part is largest, where ranks differ."""
    shares = _by_rank(temporal, f"{part}_percent")
    rank = max(shares, key=lambda each: shares[each])
    if shares[rank] - min(shares.values()) < 100 * _UNEVEN:
        return ""
    return f", most on rank {rank} ({shares[rank]:.0f} %)"


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


def _waiting(temporal: pd.DataFrame, overlap: pd.DataFrame) -> list[str]:
    """Name the ranks for which the others seem to wait: they spend least time in collectives, the others much more."""
    spent = {rank: us for rank, us in _by_rank(overlap, "communication_us").items() if rank in set(temporal["rank"])}
    if len(spent) < 2 or not any(spent.values()):
        return []
    least, middle = min(spent.values()), median(spent.values())
    late = [rank for rank, us in spent.items() if us <= least + _LATE * (middle - least)]
    others = [rank for rank in spent if rank not in late]
    waited = median(spent[rank] for rank in others) - least if others else 0.0
    if waited < _UNEVEN * float(temporal["window_us"].median()):
        return []
    names = f"rank {late[0]}" if len(late) == 1 else f"ranks {', '.join(map(str, late))}"
    theirs, mine = median(spent[rank] for rank in others), median(spent[rank] for rank in late)
    return [
        f"The others seem to wait for {names}: {mine / 1000:.1f} ms in collectives there, a median of "
        f"{theirs / 1000:.1f} ms elsewhere; {_reason(temporal, late, others, waited)}."
    ]


def _reason(temporal: pd.DataFrame, late: list[int], others: list[int], waited: float) -> str:
    on_device = bool((temporal["executor"] == "device").all())
    for part, words in (
        ("computation", "its kernels take longer" if on_device else "its operators take longer"),
        ("idle", "it is idle for longer"),
    ):
        us = _by_rank(temporal, f"{part}_us")
        mine, theirs = median(us[rank] for rank in late), median(us[rank] for rank in others)
        if mine - theirs > waited / 2:
            return f"{words}, {mine / 1000:.1f} ms against {theirs / 1000:.1f} ms"
    return "its own work looks like theirs"


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


def _by_rank(table: pd.DataFrame, column: str) -> dict[int, float]:
    return dict(zip(table["rank"].tolist(), table[column].tolist(), strict=True))
