"""Contention: a kernel that runs beside a collective shares the device with it, and takes longer.

The engine times device work as soon as its predecessors are known, so it does not know yet what will run beside it.
The job is run several times instead: the overlaps of each run give the durations of the next.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from htagraph.simulate.codes import Device
from htagraph.simulate.draws import Float
from htagraph.simulate.layout import Ints
from htagraph.simulate.state import Executed
from htagraph.simulate.template import Instruction

ROUNDS: Final = 4
"""Runs of a job with contention. Chosen: durations hardly change after the third; doubling it doubles the time a
simulation takes."""

Slower = Mapping[tuple[int, int], Float]


def slowdowns(contention: float, executed: Mapping[int, Iterable[Executed]]) -> Slower:
    """Return, by (rank, step), a factor for each instruction's device work.

    Args:
        contention: By how much longer a kernel takes that runs beside collectives all the time, 0.3 for 30 %.
        executed: A run's steps, by rank.
    """
    factors: dict[tuple[int, int], Float] = {}
    for rank, steps in executed.items():
        runs = list(steps)
        busy = [(run.start[i.work], run.end[i.work]) for run in runs for i in _works(run, Device.COLLECTIVE)]
        edges, covered = _coverage(np.array(sorted(busy), np.int64).reshape(-1, 2))
        for run in runs:
            factor = np.ones(len(run.template.instructions))
            rows = [n for n, i in enumerate(run.template.instructions) if i.device is Device.COMPUTE]
            works = [run.template.instructions[row].work for row in rows]
            start = np.array([run.start[work] for work in works], np.float64)
            end = np.array([run.end[work] for work in works], np.float64)
            if len(edges):
                beside = np.interp(end, edges, covered) - np.interp(start, edges, covered)
                factor[rows] = 1 + contention * beside / np.maximum(1, end - start)
            factors[rank, run.step] = factor
    return factors


def _works(run: Executed, device: Device) -> list[Instruction]:
    return [i for i in run.template.instructions if i.device is device]


def _coverage(busy: Ints) -> tuple[Float, Float]:
    """Return (moments, ns that the intervals cover before each moment); the intervals are sorted by start."""
    moments: list[float] = []
    covered: list[float] = []
    total, reach = 0.0, float("-inf")
    for start, end in busy.tolist():
        begin = max(start, reach)
        if end > begin:
            moments += [begin, end]
            covered += [total, total + end - begin]
            total += end - begin
            reach = end
    return np.array(moments), np.array(covered)
