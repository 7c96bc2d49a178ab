"""Figures of runs: medians with their spread, ratios between sides of one round, exponents of growth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.rounds import Runs
from benchmarks.speed.traces import BenchTrace

__all__ = ["Figure", "by_kind", "figure", "growth", "ratios", "ratios_of", "values_of"]


@dataclass(frozen=True)
class Figure:
    """A median over runs, and its spread."""

    median: float
    low: float
    """The smallest."""
    high: float
    """The largest."""
    runs: int

    def __str__(self) -> str:
        if self.runs == 1:
            return _short(self.median)
        return f"{_short(self.median)} [{_short(self.low)}–{_short(self.high)}]"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def figure(values: Sequence[float]) -> Figure:
    """Return the figure of some values.

    Example:
        >>> str(figure([3.0, 1.0, 2.0]))
        '2 [1–3]'
    """
    return Figure(statistics.median(values), min(values), max(values), len(values))


def ratios(above: Sequence[float], below: Sequence[float]) -> Figure:
    """Return the figure of the ratios of two sides, round by round: what slows down both cancels out.

    Example:
        >>> ratios([10, 30], [1, 2]).median
        12.5
    """
    return figure([a / max(b, 1e-9) for a, b in zip(above, below, strict=False)])  # one side may have failed last


def growth(few: tuple[float, float], many: tuple[float, float]) -> float:
    """Return the exponent of growth between two (size, time): 1 where time grows as size does.

    Example:
        >>> growth((10, 1.0), (1000, 10000.0))
        2.0
    """
    return math.log(many[1] / few[1]) / math.log(many[0] / few[0])


def values_of(runs: Mapping[str, Sequence[Mapping[str, Any]]], side: str, *keys: str) -> list[float]:
    """Return one number of each run of a side; none where it has no such number."""
    found: list[Any] = list(runs.get(side, ()))
    for key in keys:
        found = [each[key] for each in found if each.get(key) is not None]
    return [float(each) for each in found]


def ratios_of(runs: Runs) -> dict[str, Figure]:
    """Return the ratios of all comparisons, by words for them; they hardly depend on the machine.

    CPU time of both sides: above 1, htagraph takes less. A question that only htagraph answers is compared with its own
    load.
    """
    found = {}
    for trace, of_trace in runs.items():
        for what, (above, below) in _compared(of_trace).items():
            if above and below:
                found[f"{trace.label}: {what}"] = ratios(above, below)
    return found


def _compared(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, tuple[list[float], list[float]]]:
    load, hta = values_of(runs, "load", "cpu_seconds"), values_of(runs, "hta", "cpu_seconds")
    pairs = {f"{side} / load": (values_of(runs, side, "cpu_seconds"), load) for side in ("json", "orjson", "msgspec")}
    pairs["HTA's load / load"] = hta, load
    pairs["load / open"] = load, values_of(runs, "questions", "cpu_seconds")
    for question in _questions(runs):
        ours = values_of(runs, "questions", "questions", question, "cpu_seconds")
        theirs = values_of(runs, "hta", "questions", question, "cpu_seconds")
        pairs[f"{'HTA' if theirs else 'load'} / {question}"] = theirs or load, ours
    return pairs


def _questions(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    return list(runs["questions"][0]["questions"]) if runs.get("questions") else []


def by_kind(runs: Runs) -> dict[str, list[BenchTrace]]:
    """Return the traces of each kind, the smallest first."""
    kinds = sorted({trace.kind for trace in runs}, reverse=True)
    return {kind: sorted((t for t in runs if t.kind == kind), key=lambda t: t.size) for kind in kinds}
