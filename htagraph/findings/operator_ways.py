"""Operators for which a faster way is known by their kind: convolutions, random numbers of the host, optimizers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core import naming
from htagraph.core.arrays import Ints, Mask, inverse_of, marked
from htagraph.core.kinds import KERNELS, ActivityKind, of_kinds
from htagraph.core.statistics import MOST
from htagraph.findings.limits import SHORT_LIST
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.device_record import DeviceRecord, device_record
from htagraph.queries.host_time import MANY
from htagraph.whatif.options import criteria_text

__all__ = ["OperatorWay", "UsualWork", "convolutions_in", "random_numbers_in", "usual_work"]


class OperatorWay(NamedTuple):
    """Operators of one kind that a job could run in a faster way."""

    rows: Ints
    """The operators."""
    criteria: tuple[str, ...]
    """The criteria that select the operators, as options of the command line have them; one text per name."""


class UsualWork(NamedTuple):
    """Medians over some regions."""

    kernels: float
    """How many kernels are launched inside."""
    ran_us: float
    """How long kernels and copies run that are launched inside, together."""
    lasted_us: float
    """How long the region takes."""


def usual_work(graph: DependencyGraph, regions: Ints) -> UsualWork:
    """Return the device work that is launched inside the usual one of some regions.

    The first region of each rank is left out where more follow: it may make states that later regions find.

    Args:
        graph: the job.
        regions: activities of the host; no region is inside another one.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> usual_work(graph, graph.select(name="Optimizer.step#*").activities).kernels
        120.0
    """
    acts = graph.activities
    later = _later_regions(graph, regions)
    launched = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    around = graph.tree.nearest(marked(later, len(acts)), acts.cause[launched])
    is_inside = around >= 0
    works = launched[is_inside]
    region = inverse_of(later, len(acts))[around[is_inside]]
    is_kernel = of_kinds(acts.kind[works], KERNELS)
    kernels = np.bincount(region[is_kernel], minlength=len(later))
    ran_ns = np.bincount(region, acts.duration[works], minlength=len(later))
    return UsualWork(
        kernels=float(np.median(kernels)),
        ran_us=float(np.median(ran_ns)) / 1000,
        lasted_us=float(np.median(acts.duration[later])) / 1000,
    )


def _later_regions(graph: DependencyGraph, regions: Ints) -> Ints:
    """Return the regions behind the first region of each rank; all regions where no rank has a second one."""
    acts = graph.activities
    ordered = regions[np.lexsort((acts.start[regions], acts.rank[regions]))]
    is_first = np.append(True, np.diff(acts.rank[ordered]) != 0)
    return ordered if is_first.all() else ordered[~is_first]


def convolutions_in(graph: DependencyGraph) -> OperatorWay | None:
    """Return the convolutions of a library that chooses among kernels, where there are many; None for none.

    Trying kernels out takes time, too: it pays where shapes come again and again.

    Example:
        >>> import htagraph as hg
        >>> convolutions_in(hg.load("data/demo")) is None
        True
    """
    acts = graph.activities
    named = naming.names_that(naming.is_tunable_convolution, graph.names)[acts.name]
    rows = graph.tree.outermost(named & (acts.kind == ActivityKind.OP))
    if not len(rows):  # old profilers name kernels after operators
        rows = np.flatnonzero(named & acts.on_device)
    names = np.unique(acts.name[rows])
    are_many = len(rows) >= MANY * max(1, len(names))
    is_tuned = bool(naming.names_that(naming.is_tuning, graph.names).any())
    return OperatorWay(rows, _criteria(graph, rows)) if are_many and not is_tuned else None


def random_numbers_in(graph: DependencyGraph) -> OperatorWay | None:
    """Return operators in which the host makes random numbers that a copy follows, in jobs of a device; None for none.

    Example:
        >>> import htagraph as hg
        >>> random_numbers_in(hg.load("data/demo")) is None
        True
    """
    acts = graph.activities
    if device_record(graph) is DeviceRecord.UNUSED:
        return None
    is_op = acts.kind == ActivityKind.OP
    makes = naming.names_that(naming.is_random, graph.names)[acts.name] & is_op
    makes &= ~graph.tree.around(acts.kind == ActivityKind.LAUNCH)  # a device makes numbers where a launch is inside
    region = marked(_copied_afterwards(graph, makes), len(acts))
    is_copied = makes & (region | graph.tree.inside(region))
    rows = _of_mostly_chosen_names(graph, is_copied)
    return OperatorWay(rows, _criteria(graph, rows)) if len(rows) else None


def _of_mostly_chosen_names(graph: DependencyGraph, chosen: Mask) -> Ints:
    """Return the chosen operators of names that have most of their time in chosen operators.

    The changes select by name: of another name, they would take away the time of operators that stay.

    Args:
        graph: the job.
        chosen: the operators.
    """
    acts = graph.activities
    names = len(graph.names)
    is_op = acts.kind == ActivityKind.OP
    of_all_ns = np.bincount(acts.name[is_op], acts.duration[is_op], names)
    of_chosen_ns = np.bincount(acts.name[chosen], acts.duration[chosen], names)
    is_mostly_chosen = of_chosen_ns > MOST * of_all_ns
    rows = np.flatnonzero(chosen)
    return rows[is_mostly_chosen[acts.name[rows]]]


def _copied_afterwards(graph: DependencyGraph, makes: Mask) -> Ints:
    """Return the outermost operators that make random numbers, and that a copy follows soon on the same thread.

    Args:
        graph: the job.
        makes: which operators make random numbers on the host.
    """
    acts = graph.activities
    outer = graph.tree.outermost(acts.kind == ActivityKind.OP)
    ops = outer[np.lexsort((acts.start[outer], acts.lane[outer]))]
    is_maker = (graph.tree.around(makes) | makes)[ops]
    is_copy = naming.names_that(naming.is_conversion, graph.names)[acts.name[ops]]
    place = np.arange(len(ops))
    last_maker = np.maximum.accumulate(np.where(is_maker, place, -1))
    is_near = (last_maker >= 0) & (place - last_maker <= SHORT_LIST)
    is_same_thread = acts.lane[ops[last_maker]] == acts.lane[ops]
    return np.unique(ops[last_maker[is_copy & is_near & is_same_thread]])


def _criteria(graph: DependencyGraph, rows: Ints) -> tuple[str, ...]:
    """Return the criteria that select activities by name, operators with all activities inside.

    Args:
        graph: the job.
        rows: the activities.
    """
    acts = graph.activities
    key = "name" if acts.on_device[rows].all() else "op"
    globs = [naming.exact_glob(graph.names[name]) for name in np.unique(acts.name[rows]).tolist()]
    return tuple(criteria_text({key: glob}) for glob in globs)
