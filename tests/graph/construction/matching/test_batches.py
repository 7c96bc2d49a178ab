"""The only peer of a batch of sends and receives that one launch ends; test_members has whole jobs of them."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.kinds import ActivityKind
from htagraph.graph.construction.matching.batches import only_peer, values
from tests.strategies import Json, kernel, launch, load, op


def batch(*peers: int) -> list[Json]:
    """Return sends of rank 0 to peers, recorded one by one, and the kernel that runs them all."""
    sends = [op("record_param_comms", 10.0 * i, 5, **{"Src Rank": 0, "Dst Rank": peer}) for i, peer in enumerate(peers)]
    return [*sends, launch(100, 5, 1), kernel("ncclDevKernel_SendRecv", 120, 50, 1)]


@pytest.mark.parametrize(("peers", "expected"), [((3,), 3), ((3, 3), 3), ((3, 2), -1), ((), -1)])
def test_a_batch_has_a_peer_if_it_is_the_only_one(peers: tuple[int, ...], expected: int) -> None:
    acts = load(batch(*peers)).activities
    rows = np.flatnonzero(acts.kind == ActivityKind.COMMUNICATION)
    assert only_peer(acts, rows, np.array([-1]), np.array([True])).tolist() == [expected]


def test_values_of_an_argument_are_those_of_the_rows_that_have_it() -> None:
    acts = load(batch(3, 2)).activities
    targets = values(acts, "dst_rank", np.arange(-1, 4)).tolist()
    assert sorted(targets) == [-1, -1, -1, 2, 3]
    assert values(acts, "no_such_column", np.array([0, 1]), missing=7).tolist() == [7, 7]
