"""Whether processes of ranks are told apart in what is written."""

from __future__ import annotations

import pytest

from htagraph.output.export.pids import PREDICTED, PidOf, PidOfRank


@pytest.mark.parametrize(("pids", "own"), [(PidOf(), 3), (PidOfRank(), 1)])
def test_no_two_ranks_share_a_process(pids: PidOf, own: int) -> None:
    for rank in range(3):
        assert len({pids[rank, pid] for pid in (0, 1234, "Spans")}) == own
    assert len({pids[rank, pid] for rank in range(3) for pid in (0, 1234, "Spans", PREDICTED)}) == 3 * (own + 1)


def test_a_process_keeps_its_number() -> None:
    pids = PidOf()
    first = pids[1, 7]
    assert (pids[1, "other"] != first, pids[1, 7]) == (True, first)
