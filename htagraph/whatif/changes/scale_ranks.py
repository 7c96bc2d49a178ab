"""More ranks, or fewer, and other sizes of a layout: an extrapolation from the recorded ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, get_args

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.queries.weights import ChangeError, State, checked, weighed
from htagraph.whatif import layout
from htagraph.whatif.fixed_parts import fixed_parts
from htagraph.whatif.growth import Growth, busier_host, later_joins, longer_transfers, with_unknown_links, within_host
from htagraph.whatif.layout import Axis
from htagraph.whatif.links import Transfers, transfer_edges, transfers
from htagraph.whatif.one_rank import with_activations_exchanged, with_gradients_exchanged, with_stages_of_one
from htagraph.whatif.rates import split

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    state: State, n: int | None = None, *, groups: str | None = None, strong: bool = False, **sizes: Unpack[Asked]
) -> State:
    """Return the state of the job on `n` ranks that all do what the recorded ones do: an extrapolation, noted as such.

    A process group of p ranks becomes one of ``p n / R``, R being the ranks recorded, unless its label or what it
    exchanges says that it is tensor or pipeline parallel (where the recording does not show it, the interval holds that
    the group stays): if all are, `n` ranks are ``n / R`` replicas that all-reduce
    their gradients. With `data`, `tensor` or `pipeline`, the groups of that axis get this size. Of each transfer, the
    part that bytes explain grows as the share of bytes that a ring moves, such as ``2 (p - 1) / p``. The latency stays
    among the devices of one host, and grows as the depth of a tree, ``log2 p``, among hosts. Ranks of one host that
    have no devices send through one network: there, transfers grow as ``p - 1``. Each rank's work stays (weak scaling);
    with `strong`, the ranks share the work that there is.

    Among more ranks, the last rank arrives later: the JOIN of each collective moves by the growth of the expected
    maximum of p normal draws, times the spread of arrivals. How late each rank is on average is taken out of this
    spread, so that a rank that is always late does not add to it. Each further stage of a pipeline adds a turn of the
    slowest stage. A recording of one rank has no collectives: then its gradients, in buckets as DDP makes them, are
    all-reduced beside the backward pass, before the optimizer.

    The interval holds what formulas, few arrivals, smaller kernels, and the cores of a host that more ranks share leave
    open, and how much slower networks between hosts may be than within, where more ranks than a host has devices need
    them; `bandwidth_gb_s` says it.

    Args:
        n: number of ranks.
        groups: label, or glob on labels, of the process groups that grow, for jobs where only some do.
        strong: share the work among the ranks: `n` and `data` the batch, `tensor` and `pipeline` the model.
        sizes: `data`, `tensor`, `pipeline`: ranks of each group of that axis. `bandwidth_gb_s`: 10^9 bytes/s between
            two ranks of groups that grow (for ranks of one host, through its network). Where the recording does not
            show them: `gradients_mb` and `activations_mb`, 10^6 bytes per step that data and tensor parallel ranks
            all-reduce; `microbatches` per step of a pipeline.

    Raises:
        SelectionError: a size is no whole number of at least 1, no collective is matched, no group matches, the
            recording does not show which groups belong to an axis, or a size is given that nothing uses.

    Example:
        >>> import htagraph as hg
        >>> job = hg.what_if(hg.load("data/demo"))
        >>> job.scale_ranks(16).run().speedup < job.scale_ranks(8).run().speedup < 1
        True
    """
    every: tuple[Axis, ...] = get_args(Axis)
    axes = {axis: _whole(sizes[axis], axis) for axis in every if axis in sizes}
    if (n is None) == (not axes):
        msg = "give either a number of ranks, or some of data=, tensor= and pipeline="
        raise ChangeError(msg)
    wanted = None if n is None else _whole(n, "n")
    if len(transfer_edges(state.graph)[0]):
        return _grown(state, wanted, axes, groups, sizes, strong=strong)
    if len(state.graph.ranks) > 1:
        transfers(state)  # raises: no collective is matched
    (axis, size), *more = (axes or {"data": wanted or 1}).items()
    if more:
        msg = "from a recording of one rank, only one of data=, tensor= and pipeline= is known"
        raise ChangeError(msg)
    _refuse_others(sizes, _USES[axis])
    if size == 1:
        return state
    state = layout.with_shared_work(state, 1 / size, axis) if strong else state
    rate = sizes.get("bandwidth_gb_s")
    if axis == "data":
        state = with_gradients_exchanged(state, size, rate, sizes.get("gradients_mb"))
    elif axis == "tensor":
        state = with_activations_exchanged(state, size, rate, sizes.get("activations_mb"))
    else:
        state = with_stages_of_one(state, size, 1 / size if strong else 1.0, sizes.get("microbatches"))
    return _scaled(busier_host(state, size), {axis: size}, strong=strong)


_USES: dict[str, tuple[str, ...]] = {
    "data": ("bandwidth_gb_s", "gradients_mb"), "tensor": ("activations_mb", "bandwidth_gb_s"),
    "pipeline": ("microbatches",),
}  # fmt: skip
"""What has to be known of an axis that was not recorded."""


def _refuse_others(sizes: Asked, uses: tuple[str, ...]) -> None:
    """Raise ChangeError for a size that nothing uses."""
    if others := sorted(set(sizes) - {*_USES, *uses}):
        used = f"; {' and '.join(uses)} would count" if uses else ""
        msg = f"{others[0]}= changes nothing here, leave it out{used}"
        raise ChangeError(msg)


def _scaled(state: State, times: dict[Axis, float], *, strong: bool) -> State:
    """Return the state with how many times as many ranks, samples and work of a step there are, by axis."""
    ranks, had = float(np.prod(list(times.values()))), state.scaled
    samples, work = (1.0, 1.0) if strong else (times.get("data", 1.0), ranks)
    return replace(state, scaled=(had[0] * ranks, had[1] * samples, had[2] * work))


def _grown(
    state: State, wanted: int | None, axes: dict[Axis, int], groups: str | None, sizes: Asked, *, strong: bool
) -> State:
    """Return the state of recorded ranks among others of their kind."""
    job, have = transfers(state), len(state.graph.ranks)
    before, pairs = layout.group_sizes(job.matches), np.array([op == "send_recv" for op in job.matches.op])
    known = layout.known_groups(state.graph, "tensor", "pipeline")
    parts, notes = _parts(state, wanted, axes, groups, known | pairs)
    after, share, added = before.astype(np.float64), 1.0, 1
    for axis, grows, times in parts:
        after[grows] *= times
        after[(before == have) & ~grows & ~pairs & ~known] *= times  # groups of all ranks
        added = round(times) if axis == "data" and not grows.any() else added
        if strong:
            state, share = _shared(state, job, 1 / times, axis, grows), share / times
    growth = Growth(job, before, np.maximum(1, np.rint(after)).astype(np.int64), sizes.get("bandwidth_gb_s"))
    _check(growth, sizes, added)
    state = _scaled(state, {axis: times for axis, _, times in parts}, strong=strong)
    count = have * float(np.prod([times for *_, times in parts]))
    for note in (f"extrapolation: {have} ranks → {count:g}, by transfer formulas and the spread of arrivals", *notes):
        state = state.with_note(note)
    if growth.gb_s is None and (growth.after > before).any():
        state, slower = with_unknown_links(state, count)
        growth = growth._replace(slower=slower)
    growth = growth._replace(within=within_host(state.graph, count))
    if groups is None:  # else it is said which groups grow
        growth = growth._replace(may_stay=layout.undecided_groups(state.graph))
    state = later_joins(state, growth)
    state = layout.with_more_stages(state, axes["pipeline"], share) if "pipeline" in axes else state
    state = longer_transfers(busier_host(state, count), growth)
    if added == 1:
        return state
    try:
        return with_gradients_exchanged(state, added, growth.gb_s, sizes.get("gradients_mb"))
    except SelectionError as error:
        said = " ".join(notes).removeprefix("extrapolation: ")
        msg = f"{said}, but {error}; or give the size of these groups, such as tensor=4"
        raise SelectionError(msg) from None


def _parts(
    state: State, wanted: int | None, axes: dict[Axis, int], groups: str | None, others: Array
) -> tuple[list[tuple[Axis, Array, float]], list[str]]:
    """Return (axes, which collectives are of their groups, how many times as large these are; notes on the choice).

    If all groups are `others` than data parallel ones, the first axis adds replicas.
    """
    matches, have, parts, notes = transfers(state).matches, len(state.graph.ranks), list[Any](), list[str]()
    labels, grows = np.array(matches.group), ~others if groups is None else layout.in_groups(matches, groups)
    grows &= np.array([op != "send_recv" for op in matches.op])
    asked = axes.pop("data", 1) if wanted is None and not grows.any() else (wanted or 0) / have
    if not grows.any():
        why = f"groups such as {labels[0]} are tensor or pipeline parallel"
        if asked != int(asked):
            msg = f"n={wanted}: {why}, so that ranks are added as replicas of all: give a multiple of {have}"
            raise ChangeError(f"{msg}, or another size of these groups, such as tensor=4")  # noqa: EM102
        notes += [f"extrapolation: {asked:g} replicas of the {have} recorded ranks, as {why}"] * (asked > 1)
    elif wanted is not None and groups is None:
        label, stay = labels[grows][0], [f"; those such as {each} stay" for each in labels[others][:1]]
        note = f"extrapolation: data parallel are taken to be groups such as {label}{''.join(stay)}"
        notes += [f"{note}; groups= says others, such as groups={layout.pattern_of(label)}"]
    parts += [("data", grows, asked)] * (wanted is not None or asked > 1)
    if wanted is not None and "send_recv" in matches.op:
        notes += ["extrapolation: messages between two ranks stay as they are; pipeline= adds stages"]
    for axis, size in axes.items():
        if axis == "pipeline":
            grows, had = np.zeros(len(labels), np.bool_), layout.stages_of(state.graph)[0]
        else:
            grows = layout.groups_of_axis(state.graph, axis, groups)
            had = int(layout.group_sizes(matches)[grows][0])
            notes += [f"extrapolation: {axis} parallel are taken to be groups such as {labels[grows][0]}"]
        parts += [(axis, grows, size / had)]
    return parts, notes


def _check(growth: Growth, sizes: Asked, added: int) -> None:
    """Raise ChangeError for sizes that nothing uses, groups that show no transfers, and transfers without bytes."""
    changed = growth.after != growth.before
    _refuse_others(sizes, _USES["data"] if added > 1 else ("bandwidth_gb_s",) if changed.any() else ())
    if ((growth.after > growth.before) & (growth.before == 1)).any():
        msg = "process groups of one rank show no transfers; record groups of two, or give groups="
        raise ChangeError(msg)
    if growth.gb_s is not None and (changed[growth.transfers.collective] & (growth.transfers.moved < 0)).any():
        msg = "bandwidth_gb_s=: the recording does not show what collectives move: scale_network(factor=), --network 2"
        raise ChangeError(msg)


def _shared(state: State, job: Transfers, factor: float, axis: Axis, grows: Array) -> State:
    """Return the state in which ranks share work along an axis; what other groups move shrinks with it.

    A smaller batch makes activations smaller, which tensor groups and stages send; a smaller part of the model has
    fewer gradients, and fewer layers per stage.
    """
    others = ~grows & np.array([axis == "data" or op != "send_recv" for op in job.matches.op], np.bool_)
    rows = job.edges[others[job.collective] & (state.lag[job.edges] > 0)]
    lag = split(state.lag[rows], fixed_parts(state.graph).usual[rows]).at(factor)
    return layout.with_shared_work(weighed(state, rows, np.rint(lag)), factor, axis)


def _whole(value: float, what: str) -> int:
    wanted = checked(value, what, least=1)
    if wanted != int(wanted):
        msg = f"{what}={value!r}: give a whole number of ranks"
        raise ChangeError(msg)
    return int(wanted)
