"""More ranks, or fewer, and other sizes of a layout: an extrapolation from the recorded ranks."""

from __future__ import annotations

from typing import TypedDict, Unpack

import numpy as np

from htagraph.core.arrays import Array
from htagraph.queries.weights import ChangeError, State, checked, weighed
from htagraph.whatif.gradients import with_gradients_exchanged
from htagraph.whatif.growth import Growth, busier_host, later_joins, longer_transfers, on_one_host
from htagraph.whatif.layout import (
    Axis,
    group_sizes,
    groups_of_axis,
    in_groups,
    stages_of,
    with_more_stages,
    with_shared_work,
)
from htagraph.whatif.links import Transfers, transfer_edges, transfers

__all__ = ["scale_ranks"]


class Sizes(TypedDict, total=False):
    """What the ranks of a job are to be, by axis of its layout; and what a recording of one rank does not show."""

    data: int
    tensor: int
    pipeline: int
    bandwidth_gb_s: float
    gradients_mb: float


def scale_ranks(
    state: State, n: int | None = None, *, groups: str = "*", strong: bool = False, **sizes: Unpack[Sizes]
) -> State:
    """Return the state of the job on `n` ranks that all do what the recorded ones do: an extrapolation, noted as such.

    A process group of p ranks becomes one of ``p n / R``, R being the ranks recorded; with `data`, `tensor` or
    `pipeline`, the groups of that axis get this size, and R grows with them. Of each transfer, the part that bytes
    explain grows as the share of bytes that a ring moves, such as ``2 (p - 1) / p``, and the latency grows as the depth
    of a tree, ``log2 p``. Ranks of one host send through one network: there, transfers grow as ``p - 1``. Sizes stay
    (weak scaling); with `strong`, the ranks share the work that there is.

    Among more ranks, the last rank arrives later: the JOIN of each collective moves by the growth of the expected
    maximum of p normal draws, times the spread of arrivals. How late each rank is on average is taken out of this
    spread, so that a rank that is always late does not add to it. Each further stage of a pipeline adds a turn of the
    slowest stage. A recording of one rank has no collectives: then its gradients, in buckets as DDP makes them, are
    all-reduced beside the backward pass, before the optimizer.

    The interval holds what formulas, few arrivals, smaller kernels, and the cores of a host that more ranks share leave
    open. Nothing is known of networks that are slower between nodes than within: add ``.network()`` for that.

    Args:
        state: the weights so far.
        n: number of ranks.
        groups: glob on the labels of the process groups that grow, for jobs where only the data-parallel groups do.
        strong: share the work among the ranks: `n` and `data` the batch, `tensor` and `pipeline` the model.
        sizes: `data`, `tensor`, `pipeline`: ranks of each group of that axis. For a recording of one rank:
            `bandwidth_gb_s`, 10^9 bytes/s between two ranks, and `gradients_mb`, 10^6 bytes of gradients, where the
            recording does not show them.

    Raises:
        SelectionError: a size is no whole number of at least 1, no collective is matched, no group matches, or the
            recording does not show which groups belong to an axis.

    Example:
        >>> import htagraph as hg
        >>> job = hg.what_if(hg.load("data/demo"))
        >>> job.scale_ranks(16).run().speedup < job.scale_ranks(data=8).run().speedup < 1
        True
    """
    axes: dict[Axis, int] = {
        axis: _whole(sizes[axis], axis) for axis in ("data", "tensor", "pipeline") if axis in sizes
    }
    if (n is None) == (not axes):
        msg = "scale_ranks: give either a number of ranks, or some of data=, tensor= and pipeline="
        raise ChangeError(msg)
    wanted = None if n is None else _whole(n, "n")
    if not len(transfer_edges(state.graph)[0]):
        state = _from_one(state, axes.get("data", wanted or 0), set(axes) <= {"data"}, sizes)
        count = wanted or axes["data"]
        return with_shared_work(state, 1 / count, optimizer=False) if strong else state
    return _grown(state, wanted, axes, groups, strong=strong)


def _from_one(state: State, count: int, data_alone: bool, sizes: Sizes) -> State:
    if len(state.graph.ranks) != 1 or not data_alone:
        transfers(state)  # raises: no collective is matched
    return _beside(
        with_gradients_exchanged(state, count, sizes.get("bandwidth_gb_s"), sizes.get("gradients_mb")), count
    )


def _beside(state: State, count: float) -> State:
    """Return the state in which all ranks share the host that the recorded ones share, where there are no devices."""
    have = len(state.graph.ranks)
    if not on_one_host(state) or state.graph.activities.on_device.any() or count <= have:
        return state
    note = "all ranks share one host, as recorded: its network, and its cores as far as the interval says"
    return busier_host(state, have, count).with_note(note)


def _grown(state: State, wanted: int | None, axes: dict[Axis, int], groups: str, *, strong: bool) -> State:
    job, have = transfers(state), len(state.graph.ranks)
    before = group_sizes(job.matches)
    after, count, share = before.astype(np.float64), float(have), 1.0
    alike = ""
    if wanted is not None:
        grows = in_groups(job.matches, groups)
        after[grows] = np.rint(before[grows] * wanted / have)
        count, axes = float(wanted), {}
        if grows.all() and (before < have).any():
            alike = "extrapolation: groups of some ranks grow as those of all; groups= says which, such as '*dp*'"
        if strong:
            state = with_shared_work(state, have / wanted, optimizer=False)
    stages = 0
    for axis, size in axes.items():
        if axis == "pipeline":
            ratio, stages = size / stages_of(state.graph)[0], size
            grows = np.zeros(len(before), np.bool_)
        else:
            grows = groups_of_axis(state.graph, axis, groups)
            ratio = size / float(np.median(before[grows]))
            after[grows] = size
        after[(before == have) & ~grows & (before > 2)] *= ratio  # groups of all ranks
        count *= ratio
        if strong:
            state = _shared(state, job, 1 / ratio, axis, grows)
            share /= ratio
    whole = np.maximum(1, np.rint(after)).astype(np.int64)
    growth = Growth(job, before, whole)
    note = f"extrapolation: {have} ranks → {count:g}, by transfer formulas and the spread of arrivals"
    state = later_joins(state, growth)
    state = with_more_stages(state, stages, share) if stages else state
    state = longer_transfers(_beside(state.with_note(note), count), growth)
    return state.with_note(alike) if alike else state


def _shared(state: State, job: Transfers, factor: float, axis: Axis, grows: Array) -> State:
    """Return the state in which ranks share work along an axis; what other groups move shrinks with it.

    A smaller batch makes activations smaller, which tensor groups and stages send; a smaller part of the model has
    fewer gradients, and fewer layers per stage.
    """
    others = ~grows & np.array([axis == "data" or op != "send_recv" for op in job.matches.op], np.bool_)
    rows = job.edges[others[job.collective] & (state.lag[job.edges] > 0)]
    return with_shared_work(weighed(state, rows, np.rint(state.lag[rows] * factor)), factor, optimizer=axis != "data")


def _whole(value: float, what: str) -> int:
    wanted = checked(value, what, least=1)
    if wanted != int(wanted):
        msg = f"{what}={value!r}: give a whole number of ranks"
        raise ChangeError(msg)
    return int(wanted)
