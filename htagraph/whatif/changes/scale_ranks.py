"""More ranks, or fewer, and other sizes of a layout: an extrapolation from the recorded ranks."""

from __future__ import annotations

from typing import TypedDict, Unpack, get_args

import numpy as np

from htagraph.core.arrays import Array
from htagraph.queries.weights import ChangeError, State, checked, weighed
from htagraph.whatif.growth import Growth, busier_host, later_joins, longer_transfers
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
from htagraph.whatif.one_rank import with_activations_exchanged, with_gradients_exchanged, with_stages_of_one

__all__ = ["scale_ranks"]


class Asked(TypedDict, total=False):
    """How many ranks the axes of a job's layout have, and what a recording of one rank does not show."""

    data: int
    tensor: int
    pipeline: int
    bandwidth_gb_s: float
    gradients_mb: float
    activations_mb: float
    microbatches: int


def scale_ranks(
    state: State, n: int | None = None, *, groups: str = "*", strong: bool = False, **sizes: Unpack[Asked]
) -> State:
    """Return the state of the job on `n` ranks that all do what the recorded ones do: an extrapolation, noted as such.

    A process group of p ranks becomes one of ``p n / R``, R being the ranks recorded; with `data`, `tensor` or
    `pipeline`, the groups of that axis get this size, and R grows with them. Of each transfer, the part that bytes
    explain grows as the share of bytes that a ring moves, such as ``2 (p - 1) / p``, and the latency grows as the depth
    of a tree, ``log2 p``. Ranks of one host send through one network: there, transfers grow as ``p - 1``. Asked stay
    (weak scaling); with `strong`, the ranks share the work that there is.

    Among more ranks, the last rank arrives later: the JOIN of each collective moves by the growth of the expected
    maximum of p normal draws, times the spread of arrivals. How late each rank is on average is taken out of this
    spread, so that a rank that is always late does not add to it. Each further stage of a pipeline adds a turn of the
    slowest stage. A recording of one rank has no collectives: then its gradients, in buckets as DDP makes them, are
    all-reduced beside the backward pass, before the optimizer.

    The interval holds what formulas, few arrivals, smaller kernels, and the cores of a host that more ranks share leave
    open. Nothing is known of networks that are slower between nodes than within: add ``.network()`` for that.

    Args:
        n: number of ranks.
        groups: glob on the labels of the process groups that grow, for jobs where only the data-parallel groups do.
        strong: share the work among the ranks: `n` and `data` the batch, `tensor` and `pipeline` the model.
        sizes: `data`, `tensor`, `pipeline`: ranks of each group of that axis. Where a recording of one rank does not
            show them: `bandwidth_gb_s`, 10^9 bytes/s between two ranks (for ranks of one host, through its network);
            `gradients_mb` and `activations_mb`, 10^6 bytes per step that data and tensor parallel ranks all-reduce;
            `microbatches` per step of a pipeline.

    Raises:
        SelectionError: a size is no whole number of at least 1, no collective is matched, no group matches, or the
            recording does not show which groups belong to an axis.

    Example:
        >>> import htagraph as hg
        >>> job = hg.what_if(hg.load("data/demo"))
        >>> job.scale_ranks(16).run().speedup < job.scale_ranks(8).run().speedup < 1
        True
    """
    every: tuple[Axis, ...] = get_args(Axis)
    axes = {axis: _whole(sizes[axis], axis) for axis in every if axis in sizes}
    if (n is None) == (not axes):
        msg = "scale_ranks: give either a number of ranks, or some of data=, tensor= and pipeline="
        raise ChangeError(msg)
    wanted = None if n is None else _whole(n, "n")
    if not len(transfer_edges(state.graph)[0]):
        if len(state.graph.ranks) > 1:
            transfers(state)  # raises: no collective is matched
        axes = axes or {"data": wanted or 1}
        (axis, size), *more = axes.items()
        if more:
            msg = "scale_ranks: from a recording of one rank, only one of data=, tensor= and pipeline= is known"
            raise ChangeError(msg)
        return _from_one(state, axis, size, sizes, strong=strong)
    return _grown(state, wanted, axes, groups, strong=strong)


def _from_one(state: State, axis: Axis, size: int, sizes: Asked, *, strong: bool) -> State:
    """Return the state of one rank among others of its kind along one axis, and what these would send."""
    rate = sizes.get("bandwidth_gb_s")
    if size == 1:
        return state
    state = with_shared_work(state, 1 / size, optimizer=axis != "data") if strong else state
    if axis == "data":
        state = with_gradients_exchanged(state, size, rate, sizes.get("gradients_mb"))
    elif axis == "tensor":
        state = with_activations_exchanged(state, size, rate, sizes.get("activations_mb"))
    else:
        state = with_stages_of_one(state, size, 1 / size if strong else 1.0, sizes.get("microbatches"))
    return busier_host(state, size)


def _grown(state: State, wanted: int | None, axes: dict[Axis, int], groups: str, *, strong: bool) -> State:
    """Return the state of recorded ranks among others of their kind."""
    job, have = transfers(state), len(state.graph.ranks)
    before = group_sizes(job.matches)
    after, pairs, share = before.astype(np.float64), np.array([op == "send_recv" for op in job.matches.op]), 1.0
    notes = [] if wanted is None else _assumed(job, groups, have)
    if wanted is not None:
        grows = in_groups(job.matches, groups)
        after[grows] = np.rint(before[grows] * wanted / have)
        axes, count = {}, float(wanted)
        state = with_shared_work(state, have / wanted, optimizer=False) if strong else state
    else:
        count = float(have)
    for axis, size in axes.items():
        if axis == "pipeline":
            grows, had = np.zeros(len(before), np.bool_), stages_of(state.graph)[0]
        else:
            grows = groups_of_axis(state.graph, axis, groups)
            had, label = int(before[grows][0]), job.matches.group[int(np.argmax(grows))]
            notes += [f"extrapolation: {axis} parallel are taken to be groups such as {label}"]
        after[grows] = size
        after[(before == have) & ~grows & ~pairs] *= size / had  # groups of all ranks
        count *= size / had
        if strong:
            state, share = _shared(state, job, had / size, axis, grows), share * had / size
    growth = Growth(job, before, np.maximum(1, np.rint(after)).astype(np.int64))
    if ((growth.after > before) & (before == 1)).any():
        msg = "scale_ranks: process groups of one rank show no transfers; record groups of two, or give groups="
        raise ChangeError(msg)
    notes = [f"extrapolation: {have} ranks → {count:g}, by transfer formulas and the spread of arrivals", *notes]
    state = later_joins(state, growth)
    state = with_more_stages(state, axes["pipeline"], share) if "pipeline" in axes else state
    for note in notes:
        state = state.with_note(note)
    return longer_transfers(busier_host(state, count), growth)


def _assumed(job: Transfers, groups: str, have: int) -> list[str]:
    """Return notes on what a number of ranks alone does not say."""
    notes, sizes = [], group_sizes(job.matches)
    pairs = np.array([op == "send_recv" for op in job.matches.op])
    if in_groups(job.matches, groups).all() and (sizes[~pairs] < have).any():
        notes += ["extrapolation: groups of some ranks grow as those of all; groups= says which, such as '*dp*'"]
    if pairs.any():
        notes += ["extrapolation: messages between two ranks stay as they are; pipeline= adds stages"]
    return notes


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
