"""Capacity: how long a step takes with other batches and on other devices, and how large a batch memory allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.devices import device_named, known_device
from htagraph.core.errors import SelectionError, check_type
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import gain_steps
from htagraph.graph.measures.waits import ranks_not_read
from htagraph.queries.kernel_costs import device_name
from htagraph.queries.path_segments import bound_of
from htagraph.queries.recorded_events import memory_events
from htagraph.queries.start_up import start_up_by_rank, without_start_up
from htagraph.whatif.changes.batch import recorded_size
from htagraph.whatif.interval import VERY_WIDE
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.scenario import Scenario, what_if

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["BATCHES", "DEVICES", "Capacity", "capacity"]

BATCHES = Table(
    "Steps by batch",
    Col("batch", "int64", "samples per rank and step"),
    Col("step_us low_us high_us", doc="the usual step, or the job where no steps were recorded; its 90 % interval"),
    Col("samples_per_s", doc="samples per rank and second; NaN where no steps were recorded"),
    Col("bound", "str", "what most of the critical path is then spent on: a category of the path"),
    Col("memory_low_bytes memory_high_bytes", doc="most memory of a device in use, between two bounds; NaN if unknown"),
)
DEVICES = Table(
    "Steps by device",
    Col("device", "str"),
    Col("step_us low_us high_us", doc="the usual step, or the job where no steps were recorded; its 90 % interval"),
    Col("speedup low high", doc="the recorded time over ``step_us``, and its 90 % interval"),
    Col("bound", "str", "what most of the critical path is then spent on: a category of the path"),
)
_FACTORS = (0.5, 1, 2, 4, 8)
_DEVICES = ("L4", "L40S", "A100 80GB SXM", "H100 SXM", "H200", "B200", "MI300X")


class Room(NamedTuple):
    """How large a batch a device's memory allows."""

    surely: int
    """The largest batch that fits even where all memory above that between steps grows with it."""
    perhaps: int
    """The largest batch that may fit."""
    bytes: int
    """Memory of the smallest device."""


@dataclass(frozen=True, eq=False)
class Capacity:
    """What another batch or device would do; the result of `capacity`."""

    graph: DependencyGraph
    batch: int
    """The recorded batch; 0 if the recording does not show it."""
    step_us: float
    """The recorded usual step; where no steps follow each other, the makespan without start-up, µs."""
    device: str
    """The product that the job ran on, as `htagraph` knows it; empty if unknown."""
    batches: pd.DataFrame
    """One row per batch; see `capacity`."""
    devices: pd.DataFrame
    """One row per device; see `capacity`."""
    room: Room | None
    """How large a batch memory allows; None if the recording does not show it."""
    refused: tuple[str, ...]
    """What the recording does not show, and how to record or give it."""
    notes: tuple[str, ...]
    """What to know about the predictions, such as why an interval is wide."""

    @property
    def unit(self) -> str:
        """What a row's time is of: ``step``, or ``job`` where no steps follow each other."""
        return "step" if gain_steps(self.graph) > 1 else "job"

    def plot(self) -> Figure:
        """Return the figure of both curves; see `htagraph.plot.capacity`."""
        from htagraph.output.plot.what_if import capacity

        return capacity(self)


@described(BATCHES, DEVICES)
def capacity(
    graph: DependencyGraph, *, batches: Iterable[int] | None = None, devices: Iterable[str] | None = None,
    before: int | None = None, also: Sequence[DependencyGraph] = (), recorded: str = "",
) -> Capacity:  # fmt: skip
    """Return how long a step takes with other batches and on other devices, each replayed, with intervals.

    Start-up, the first calls of a process, is left out. A larger batch makes no step shorter. Memory in use with
    another batch lies between two bounds: all memory above the least that was in use grows with the batch; or as much
    of it as the least in use, such as gradients, does not.

    Args:
        graph: the job.
        batches: batch sizes of each rank; by default half, once, twice, 4 and 8 times the recorded one.
        devices: products, such as ``"H100 SXM"``; by default some that are often asked for.
        before: the recorded batch; by default the shapes say it.
        also: other recordings of the job with other batches.
        recorded: the product that the job ran on, where the recording does not name it.

    Returns:
        A `Capacity`. Its ``batches`` have one row per batch: {columns}. Its ``devices`` have one row per device:
        {columns}.

    Raises:
        SelectionError: the recording does not show what sizes or products that were asked for would do. By default,
            ``refused`` says so.

    Example:
        >>> import htagraph as hg
        >>> result = hg.capacity(hg.load("data/gpu_demo/train"), batches=[8, 32], devices=["A100 80GB SXM"])
        >>> result.batch, result.batches["batch"].tolist(), result.devices["device"].tolist()
        (16, [8, 32], ['A100 80GB SXM'])

    Source: `Scenario.batch` and `Scenario.device`.
    """
    check_type(graph, DependencyGraph, "htagraph.capacity takes a graph (of a job on workers: job.load([0, 1]))")
    refused, notes = [], dict[str, list[str]]()
    job = _steady_job(graph, also, notes)
    step_us = _step_us(job.run())[0]
    own, missing = device_named(recorded)[0] if recorded else _own_device(graph), ranks_not_read(graph)
    if missing:
        read = len(graph.ranks)
        was = "was" if read == 1 else "were"
        what = f"{read} of {read + len(missing)} ranks {was} read, so waiting for the others counts as transfers"
        notes[f"{what}, which neither batch nor device shortens"] = []
    size, by_batch, by_device = 0, BATCHES.frame(), DEVICES.frame()
    try:
        size = recorded_size(graph) if before is None else before
        sizes = batches if batches is not None else sorted({max(1, round(size * factor)) for factor in _FACTORS})
        by_batch = _by_batch(job, size, list(dict.fromkeys(sizes)), notes)
    except SelectionError as error:
        if batches is not None:
            raise
        refused.append(str(error))
    try:
        names = devices if devices is not None else [each for each in _DEVICES if each != own]
        by_device = _by_device(job, list(dict.fromkeys(names)), recorded, notes)
    except SelectionError as error:
        if devices is not None:
            raise
        refused.append(str(error))
    room = _room(graph, size) if size else None
    told = tuple(f"{', '.join(rows)}: {note}" if rows else note for note, rows in notes.items())
    return Capacity(graph, size, step_us, own, by_batch, by_device, room, tuple(refused), told)


def _steady_job(graph: DependencyGraph, also: Sequence[DependencyGraph], notes: dict[str, list[str]]) -> Scenario:
    """Return the job without start-up; usual steps have none."""
    job = what_if(graph, also=also)
    longest = {} if gain_steps(graph) > 1 else start_up_by_rank(graph)
    if not longest:
        return job
    rank, start_up_ns = next(iter(longest.items()))
    of_rank = f" of rank {rank}" if len(graph.ranks) > 1 else ""
    notes[f"start-up, {start_up_ns / 1e6:.4g} ms{of_rank}, is left out"] = []
    return replace(job, state=replace(without_start_up(graph, graph.start_up.activity), also=job.state.also))


def _own_device(graph: DependencyGraph) -> str:
    """Return the product that all ranks ran on; empty if it is unknown, or if there are several."""
    names = {known_device(device_name(graph, rank)) for rank in graph.ranks}
    return names.pop() if len(names) == 1 else ""


def _by_batch(job: Scenario, size: int, sizes: list[int], notes: dict[str, list[str]]) -> pd.DataFrame:
    memory, was, rows = _memory(job.graph), _step_us(job.run())[0], []
    for each in sizes:
        outcome = job.run() if each == size else job.batch(size, each).run()
        step, low, high = _step_us(outcome)
        low, high = (max(low, was), high) if each > size else (low, min(high, was)) if each < size else (low, high)
        step = min(max(step, low), high)
        per_second = each / step * 1e6 if step and gain_steps(job.graph) > 1 else float("nan")
        used = (float("nan"),) * 2 if memory is None else memory.used(each / size)
        rows.append((each, step, low, high, per_second, bound_of(outcome.critical_path()).cause, *used))
        _told(outcome, f"batch of {each}", notes)
    return BATCHES.frame(rows)


def _by_device(job: Scenario, names: list[str], recorded: str, notes: dict[str, list[str]]) -> pd.DataFrame:
    was, rows = _step_us(job.run())[0], {}
    for name in names:
        product, outcome = device_named(name)[0], job.device(name, recorded=recorded).run()
        times = _step_us(outcome)
        speedup, high, low = (was / each if each else 1.0 for each in times)
        rows[product] = (product, *times, speedup, low, high, bound_of(outcome.critical_path()).cause)
        _told(outcome, product, notes)
    return DEVICES.frame(list(rows.values()))


def _told(outcome: Outcome, about: str, notes: dict[str, list[str]]) -> None:
    """Add the notes on a prediction that its row does not say, and why its interval is wide; each with its rows."""
    of_row = outcome.state.modelled.values()
    for note in outcome.state.notes:
        if note not in of_row:
            notes.setdefault(note, []).append(about)
    if outcome.high / outcome.low - 1 > VERY_WIDE:
        notes.setdefault(f"the interval is wide, as {outcome.interval_cause}", []).append(about)


def _step_us(outcome: Outcome) -> tuple[float, float, float]:
    """Return the usual step, or the makespan, and its interval, µs: as far off as the makespan may be."""
    step = (outcome.step_ns if gain_steps(outcome.baseline) > 1 else outcome.makespan_ns) / 1000
    low, high = (step * outcome.speedup / end if end else step for end in (outcome.high, outcome.low))
    return step, low, high


class _Memory(NamedTuple):
    """Memory of the device that has most in use, as a line over the growth of the batch."""

    lines: tuple[tuple[float, float], tuple[float, float]]
    """(what stays, what grows with the batch), bytes: where all above the least in use grows, and where part stays."""
    held: float
    """The allocator's memory over that in use, at their most."""

    def used(self, growth: float) -> tuple[float, float]:
        """Return the bounds of the most memory in use with a batch of so many times the size, bytes."""
        ends = sorted(stays + grows * growth for stays, grows in self.lines)
        return ends[0], ends[1]


def _memory(graph: DependencyGraph) -> _Memory | None:
    events = memory_events(graph)
    each = events[events["device"] != "cpu"].groupby(["rank", "device"]).agg(
        least=("allocated_bytes", "min"), most=("allocated_bytes", "max"), held=("reserved_bytes", "max")
    )  # fmt: skip
    if not len(each) or each["most"].max() <= 0:
        return None
    fullest = int(each["most"].to_numpy().argmax())
    least, most, held = each.to_numpy(np.float64)[fullest].tolist()
    part = min(least, most - least)
    return _Memory(((least, most - least), (least + part, most - least - part)), max(held / most, 1.0))


def _room(graph: DependencyGraph, size: int) -> Room | None:
    """Return how large a batch memory allows, if the allocator holds as much more than is used as recorded, or none."""
    sizes = [each.memory for trace in graph.traces.values() for each in trace.facts.devices if each.memory]
    memory = _memory(graph)
    if not sizes or memory is None:
        return None
    whole = min(sizes)
    batches = [
        int(size * (whole / held - stays) / grows)
        for (stays, grows), held in zip(memory.lines, (memory.held, 1.0), strict=True)
        if grows > 0
    ]
    return Room(max(batches[0], 0), max(batches[-1], 0), whole) if len(batches) == len(memory.lines) else None
