"""More ranks, or fewer: an extrapolation from the recorded ranks."""

from __future__ import annotations

from typing import TypedDict, Unpack

import numpy as np

from htagraph.queries.weights import ChangeError, State, checked
from htagraph.whatif.growth import Growth, busier_host, later_joins, longer_transfers, on_one_host
from htagraph.whatif.layout import group_sizes, in_groups
from htagraph.whatif.links import transfers

__all__ = ["scale_ranks"]


class Sizes(TypedDict, total=False):
    """How many ranks one axis of a job's layout has."""

    data: int
    tensor: int
    pipeline: int


def scale_ranks(
    state: State, n: int | None = None, *, groups: str = "*", strong: bool = False, **sizes: Unpack[Sizes]
) -> State:
    """Return the state of the job on `n` ranks that all do what the recorded ones do: an extrapolation, noted as such.
    """
    if (n is None) == (not sizes):
        msg = "scale_ranks: give a number of ranks, or data=, tensor= or pipeline="
        raise ChangeError(msg)
    wanted = n
    job_transfers, have = transfers(state), len(state.graph.ranks)
    before = group_sizes(job_transfers.matches)
    after = before.copy()
    if n is not None:
        wanted = _whole(n, "n")
        grows = in_groups(job_transfers.matches, groups)
        after[grows] = np.maximum(1, np.rint(before[grows] * wanted / have))
    note = f"extrapolation: {have} ranks → {wanted}, by transfer formulas and the spread of arrivals"
    growth = Growth(job_transfers, before, after)
    if on_one_host(state) and _on_hosts(state) and wanted > have:
        state = busier_host(state, have, wanted)
    state = longer_transfers(later_joins(state, growth), growth).with_note(note)
    if n is not None and grows.all() and (before < have).any():
        note = "extrapolation: groups of some ranks grow as those of all; groups= says which, such as '*dp*'"
        state = state.with_note(note)
    return state


def _on_hosts(state: State) -> bool:
    return not state.graph.activities.on_device.any()


def _whole(value: float, what: str) -> int:
    wanted = checked(value, what, least=1)
    if wanted != int(wanted):
        msg = f"{what}={value!r}: give a whole number of ranks"
        raise ChangeError(msg)
    return int(wanted)
