"""Inject a straggler: one rank's kernels, host or data loader become slower."""

from __future__ import annotations

from typing import Any, Literal

from htagraph.core.kinds import ActivityKind
from htagraph.queries.fetches import is_hidden, loader_time
from htagraph.queries.weights import ChangeError, State, checked, own_time, with_factor
from htagraph.whatif.rewire import with_scope_note

__all__ = ["inject"]

_KINDS = {"kernels": ActivityKind.COMPUTATION.label, "host": "host"}


def inject(
    state: State, /, *, rank: int, factor: float, kind: Literal["kernels", "host", "loader"] = "kernels",
    **criteria: Any,  # noqa: ANN401 - those of graph.select
) -> State:  # fmt: skip
    """Return the state in which one rank is slower, or faster where the factor is below 1.

    Args:
        rank: the rank.
        factor: the factor of the durations; at least 0.
        kind: ``"kernels"``: its computation; ``"host"``: its operators, calls and Python; ``"loader"``: its data
            loader.
        **criteria: ``name=``, ``op=``, ``step=``: only some of these activities; a loader by ``step=`` alone.

    Raises:
        SelectionError: the rank is absent or has nothing of the kind, or the factor is negative or not finite.
    """
    factor = checked(factor, "factor")
    if kind == "loader":
        time = loader_time(state, {"rank": rank} | criteria)
        if factor > 1 and is_hidden(state.graph, time):
            state = state.with_note(
                "nothing waited for the data loader's workers, so the recording does not show how long they take per "
                "batch; only the time to fetch a batch changes"
            )
        return with_factor(state, time, factor)
    if not isinstance(kind, str) or kind not in _KINDS:
        msg = f"kind={kind!r}: choose from kernels, host, loader"
        raise ChangeError(msg)
    given = {"kind": _KINDS[kind], "rank": rank} | criteria
    time = own_time(state, given)
    return with_scope_note(with_factor(state, time, factor), state, time, given, "scaled")
