"""Whether processes of several ranks stay apart."""

from __future__ import annotations

from htagraph.output.export.originals import PidOf


def test_no_two_ranks_share_a_process() -> None:
    pids = PidOf()
    keys: list[tuple[int, int | str]] = [(rank, pid) for rank in range(3) for pid in (0, 1234, "Spans")]
    assert len({pids[key] for key in keys}) == len(keys)


def test_a_process_keeps_its_number() -> None:
    pids = PidOf()
    first = pids[1, 7]
    assert (pids[1, "other"] != first, pids[1, 7]) == (True, first)
