"""Inject a straggler: one rank's kernels, host or data loader become slower."""

from __future__ import annotations

from typing import Any, Literal

from htagraph.core.kinds import ActivityKind
from htagraph.queries.weights import ChangeError, State, checked, own_time, with_factor
from htagraph.whatif.loader_time import loader_time

__all__ = ["inject"]

_KINDS = {"kernels": ActivityKind.COMPUTATION.label, "host": "host"}


def inject(
    state: State,
    *,
    rank: int,
    factor: float,
    kind: Literal["kernels", "host", "loader"] = "kernels",
    **criteria: Any,  # noqa: ANN401 - those of graph.select
) -> State:
    """Return the state in which one rank is slower, or faster where the factor is below 1.

    Args:
        state: the weights so far.
        rank: the rank.
        factor: the durations are multiplied by it; at least 0.
        kind: ``"kernels"``: its computation; ``"host"``: its operators, calls and Python; ``"loader"``: its waits for
            data.
        **criteria: ``name=``, ``op=``, ``step=``: only some of them.

    Raises:
        SelectionError: the rank is absent or has nothing of the kind, or the factor is negative or not finite.
    """
    factor = checked(factor, "factor")
    if kind == "loader":
        return with_factor(state, loader_time(state, {"rank": rank} | criteria), factor)
    if not isinstance(kind, str) or kind not in _KINDS:
        msg = f"kind={kind!r}: choose from kernels, host, loader"
        raise ChangeError(msg)
    return with_factor(state, own_time(state, {"kind": _KINDS[kind], "rank": rank} | criteria), factor)
