from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.kinds import ActivityKind
from htagraph.whatif.link_transfers import Sharing, link_transfers, places_of_links
from tests.whatif.changes.made import Piece, made
from tests.whatif.test_link_sharing import in_rows


def test_of_two_transfers_that_share_a_link_equally_each_would_take_less_alone() -> None:
    graph = in_rows([(2000, 18_000, 18_000)])
    transfers = link_transfers(graph, ActivityKind.COMMUNICATION)
    assert transfers is not None
    assert transfers.overlapped
    assert transfers.alone(Sharing.NONE).tolist() == transfers.lag.tolist()
    # 2 µs alone, 16 µs with half of the link, and the other one the same the other way round
    assert transfers.alone(Sharing.EQUAL) == pytest.approx([10_000] * 4, rel=1e-3)
    later = transfers.start + np.where(transfers.transfer == transfers.transfer[0], 0, 50_000)
    assert not transfers.overlap(later, transfers.lag)


def test_fewer_than_two_transfers_share_nothing() -> None:
    one = made([Piece("nccl", 7, 100, rank=rank, collective=0) for rank in (0, 1)])
    assert link_transfers(one, ActivityKind.COMMUNICATION) is None
    assert link_transfers(made([Piece("gemm", 7, 10)]), ActivityKind.COMMUNICATION) is None


def test_devices_have_a_link_each() -> None:
    graph = in_rows([(2000, 9_000, 9_000)])
    assert places_of_links(graph, ActivityKind.COMMUNICATION)[:2].tolist() == [0, 1]
