"""Which operator of c10d asked for each piece of communication on the host, and what its arguments say.

A backend such as gloo records its sends and receives on the thread that asked for them, from within the operator, and
its collectives on threads of its own, in the order in which it was asked. Nothing in a trace names the operator.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, looked_up, marked
from htagraph.core.flops import element_bytes
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import DEFAULT_NAMING, Naming, collective_op, is_collective_call, names_that
from htagraph.graph.activities import Activities
from htagraph.graph.tolerances import Confidence

__all__ = ["CallArguments", "HostCalls", "call_arguments", "host_calls"]

_WITHOUT_OWN: Final = {"reduce_scatter": "all_reduce"}
"""Operations that a backend may do by another one, and record as that (gloo)."""
_NO_TENSOR: Final = ("", "Scalar", "ScalarList", "GenericList")
"""What the profiler writes under ``Input type`` for an input that is no tensor."""


@dataclass(frozen=True, eq=False)
class HostCalls:
    """Pairs of an operator that asked for communication and the HOST_COMMUNICATION activity it led to, by activity.

    Example:
        >>> from htagraph.graph.activities import Activities
        >>> HostCalls.none().call.tolist()
        []
    """

    call: Ints
    """The operator (``c10d::…``); each occurs at most once."""
    work: Ints
    """The activity of kind HOST_COMMUNICATION; each occurs at most once."""
    confidence: npt.NDArray[np.int8]
    """How sure the pair is, percent."""

    @staticmethod
    def none() -> HostCalls:
        """Return no pairs."""
        empty = np.empty(0, np.int64)
        return HostCalls(empty, empty, np.empty(0, np.int8))

    def call_of(self, work: Array) -> Ints:
        """Return the operator that asked for each of some activities, -1 where it is unknown."""
        return looked_up(self.work, self.call, work)


def host_calls(acts: Activities, names: tuple[str, ...], naming: Naming = DEFAULT_NAMING) -> HostCalls:
    """Return which operator asked for each piece of communication on host threads, as far as the recording shows it.

    What begins while an operator of its kind runs on the same thread was asked for by that operator. Of the rest, the
    n-th of a kind and size was asked for by the n-th operator of that kind and size on its rank; what begins before any
    such operator was asked for before the recording began.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> len(host_calls(graph.activities, graph.names).work)  # it communicates on devices
        0
    """
    work = np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)
    if not len(work):
        return HostCalls.none()
    calls = _calls(acts, names)
    words: dict[str, int] = {}
    of_work, of_call = (_operations(acts, names, naming, rows, words) for rows in (work, calls))
    parts = []
    for rank in np.unique(acts.rank[work]):
        mine, asked = acts.rank[work] == rank, acts.rank[calls] == rank
        own = _own_words(of_work[mine], of_call[asked], words)
        parts += _of_rank(acts, names, (work[mine], of_work[mine]), (calls[asked], own))
    call, done, confidence = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.argsort(done, kind="stable")
    return HostCalls(call[order], done[order], confidence[order].astype(np.int8))


def _calls(acts: Activities, names: tuple[str, ...]) -> Ints:
    """Return the operators that ask for communication, without those that only pass on to another one inside them."""
    ops = np.flatnonzero(acts.kind == ActivityKind.OP)
    calls = ops[names_that(is_collective_call, names)[acts.name[ops]]]
    above = acts.parent[calls]
    return np.setdiff1d(calls, above[above >= 0])


def _operations(acts: Activities, names: tuple[str, ...], naming: Naming, rows: Array, words: dict[str, int]) -> Ints:
    """Return the number in `words` of the operation that each activity's name stands for; new words are added."""
    distinct, inverse = np.unique(acts.name[rows], return_inverse=True)
    codes = [words.setdefault(collective_op(names[name], naming, host=True), len(words)) for name in distinct.tolist()]
    return np.array(codes, np.int64)[inverse.ravel()]


def _own_words(of_work: Array, of_call: Array, words: dict[str, int]) -> Array:
    """Return the operations of calls as the backend records them."""
    out = of_call.copy()
    for asked, done in _WITHOUT_OWN.items():
        if asked in words and done in words and not (of_work == words[asked]).any():
            out[of_call == words[asked]] = words[done]
    return out


def _of_rank(
    acts: Activities, names: tuple[str, ...], works: tuple[Array, Array], calls: tuple[Array, Array]
) -> list[tuple[Array, Array, Array]]:
    """Return (calls, works, percent) of one rank, in parts; given are (activities, operation of each)."""
    inside = _around(acts, works, calls)
    held = inside >= 0
    parts = [(inside[held], works[0][held], np.full(int(held.sum()), Confidence.SURE))]
    left, kind = works[0][~held], works[1][~held]
    free = ~np.isin(calls[0], inside[held])
    asked, kind_asked = calls[0][free], calls[1][free]
    for each in np.unique(kind).tolist():
        of_kind, wanted = left[kind == each], asked[kind_asked == each]
        for work, call in _by_size(acts, names, of_kind, wanted):
            got = _in_order(acts, work, call)
            parts.append((got[0], got[1], np.full(len(got[0]), Confidence.LIKELY)))
    return parts


def _around(acts: Activities, works: tuple[Array, Array], calls: tuple[Array, Array]) -> Ints:
    """Return for each work the operator of its kind that ran on its thread when it began; -1 for none.

    An operator leads to one piece of work: the first that begins in it.
    """
    (work, kind), (call, asked) = works, calls
    out = np.full(len(work), -1, np.int64)
    order = np.lexsort((acts.start[call], acts.lane[call]))
    call, asked = call[order], asked[order]
    for lane in np.unique(acts.lane[work]):
        mine, on_lane = np.flatnonzero(acts.lane[work] == lane), np.flatnonzero(acts.lane[call] == lane)
        if not len(on_lane):
            continue
        begin = acts.start[work[mine]]
        at = on_lane[np.maximum(0, np.searchsorted(acts.start[call[on_lane]], begin, side="right") - 1)]
        fits = (acts.start[call[at]] <= begin) & (begin <= acts.end[call[at]]) & (asked[at] == kind[mine])
        first = marked(np.flatnonzero(fits)[np.unique(at[fits], return_index=True)[1]], len(mine))
        out[mine[first]] = call[at[first]]
    return out


def _by_size(acts: Activities, names: tuple[str, ...], work: Array, call: Array) -> list[tuple[Array, Array]]:
    """Return works and calls of one kind by the size of the message, where every work's size occurs among the calls."""
    size = call_arguments(acts, names, work).own_elements
    asked = call_arguments(acts, names, call).own_elements
    if not len(call) or (size < 0).any() or not np.isin(size, asked).all():
        return [(work, call)]
    return [(work[size == each], call[asked == each]) for each in np.unique(size).tolist()]


def _in_order(acts: Activities, work: Array, call: Array) -> tuple[Array, Array]:
    """Return (calls, works) paired first come, first served; what begins before any unserved call has none.

    Where calls are left over, they are the last ones, unless leaving out others, one after the other, makes what comes
    behind them begin much sooner after its calls: then a record was lost there.
    """
    work = work[np.argsort(acts.start[work], kind="stable")]
    call = call[np.argsort(acts.start[call], kind="stable")]
    served = _served(acts, work, call)
    left = len(call) - len(served[0])
    if left and len(served[0]):
        later = _served(acts, work, call[left:])
        if len(later[0]) == len(served[0]) and _latency(acts, later) < _latency(acts, served) / 2:
            return later
        lost = _lost_at(acts, served, call)
        return np.append(served[0][:lost], call[lost + left : len(call)]), served[1]
    return served


def _lost_at(acts: Activities, served: tuple[Array, Array], call: Array) -> int:
    """Return how many of the calls that were served come before those that have no work."""
    own, work = served
    count = len(own)
    begin = acts.start[work]
    waits, sooner = begin - acts.start[own], begin - acts.start[call[len(call) - count :]]
    possible = np.minimum.accumulate(sooner[::-1])[::-1] >= 0
    behind, instead = np.cumsum(waits[::-1])[::-1], np.cumsum(sooner[::-1])[::-1]
    gain = np.where(possible & (2 * instead < behind), behind - instead, 0)
    return int(gain.argmax()) if gain.any() else count


def _served(acts: Activities, work: Array, call: Array) -> tuple[Array, Array]:
    begins = np.concatenate((acts.start[call], acts.start[work]))
    is_work = np.arange(len(begins)) >= len(call)
    order = np.lexsort((is_work, begins))
    change = np.where(is_work[order], -1, 1)
    unserved = np.maximum.accumulate(np.maximum(0, -np.cumsum(change)))  # works that found no call, so far
    in_vain = np.diff(unserved, prepend=0) > 0
    taken = order[is_work[order] & ~in_vain] - len(call)
    return call[: len(taken)], work[taken]


def _latency(acts: Activities, pairs: tuple[Array, Array]) -> float:
    return float(np.median(acts.start[pairs[1]] - acts.start[pairs[0]]))


@dataclass(frozen=True, eq=False)
class CallArguments:
    """What the recorded inputs of operators of c10d, or of a backend's own records, say; -1 where they say nothing."""

    peer: Ints
    """Rank within the group: the partner of a send or receive, the root of a rooted collective."""
    tag: Ints
    """Tag of a send or receive."""
    elements: Ints
    """Elements of the largest input; the whole message."""
    own_elements: Ints
    """Elements that the rank contributes: of the last tensor or list of tensors among the inputs."""
    width: Ints
    """Bytes of an element."""


def call_arguments(acts: Activities, names: tuple[str, ...], rows: Array) -> CallArguments:
    """Return what the recorded inputs of some calls say. They were recorded if ``record_shapes`` was on.

    Rows are operators of c10d, or activities of kind HOST_COMMUNICATION; -1 for none.
    """
    columns = ("concrete_inputs", "input_dims", "input_type")
    known = np.stack([acts.arg(column)[rows] if column in acts.args else np.full(len(rows), -1) for column in columns])
    known = np.where(rows >= 0, known, -1)
    known = np.stack([*known, np.where(rows >= 0, acts.name[rows], -1)])
    distinct, inverse = np.unique(known, axis=1, return_inverse=True)
    parsed = [
        _parsed(*(names[code] if code >= 0 else "" for code in column)) for column in distinct.T.tolist()
    ] or [(-1,) * 5]  # fmt: skip
    values = np.array(parsed, np.int64)[inverse.ravel()] if len(rows) else np.empty((0, 5), np.int64)
    return CallArguments(*values.T)


def _parsed(concrete: str, dims: str, types: str, name: str) -> tuple[int, int, int, int, int]:
    """Return (peer or root, tag, elements, own elements, bytes of an element) of one call."""
    scalars = [int(each) for each in _list(concrete) if isinstance(each, str) and each.lstrip("-").isdigit()]
    word = collective_op(name, host=True)
    peer = tag = -1
    if word == "send_recv" and scalars:
        peer, tag = (scalars[0], scalars[1]) if len(scalars) > 1 else (-1, scalars[0])  # from any source: only a tag
    elif word in ("broadcast", "reduce", "gather", "scatter") and len(scalars) > 1:
        peer = scalars[0]
    kinds = _list(types)
    tensors = [(shape, kind) for shape, kind in zip(_list(dims), kinds, strict=False) if kind not in _NO_TENSOR]
    sizes = [_elements(shape, is_list=kind == "TensorList") for shape, kind in tensors]
    width = next(filter(None, (element_bytes(str(each)) for each in kinds)), -1)
    return peer, tag, max(sizes, default=-1), sizes[-1] if sizes else -1, width


def _list(text: str) -> list[Any]:
    """Return the list that a JSON text holds; nothing for any other text."""
    try:
        value = json.loads(text) if text else []
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _elements(shape: object, *, is_list: bool) -> int:
    """Return the elements of a shape, or of a list of shapes together; a scalar tensor has one."""
    if not isinstance(shape, list):
        return 0
    if is_list or any(isinstance(each, list) for each in shape):
        return sum(_elements(each, is_list=False) for each in shape)
    return prod(each for each in shape if isinstance(each, int))
