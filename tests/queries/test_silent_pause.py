"""Whether the pause of one rank is found where it is, and no pause that all ranks make or that other threads fill."""

from __future__ import annotations

import pytest

from htagraph import DependencyGraph
from htagraph.queries.silent_pause import silent_pause
from tests.strategies import Json, annotation, load, op, step

HELPER_THREAD = 77


def rank_events(pause_us: int, *, is_silent: bool = False, is_filled: bool = False) -> list[Json]:
    """Return four steps that exchange features, pause inside of that region, and compute for 5 ms."""
    events = []
    lasts = 6_000 + pause_us
    for number in range(4):
        begin = number * (lasts + 10)
        region_us = 200 + pause_us
        events += [step(number, begin, lasts), annotation("exchange features", begin + 10, region_us)]
        if not is_silent:
            events += [op("aten::index", begin + 20, 50), op("aten::cat", begin + 100 + pause_us, 50)]
        if is_filled:
            events.append(op("aten::sort", begin + 80, pause_us, tid=HELPER_THREAD))
        events.append(op("aten::mm", begin + 300 + pause_us, 5_000))
    return events


def job(pause_us: int, peers_us: int = 40, *, is_silent: bool = False, is_filled: bool = False) -> DependencyGraph:
    """Return a job of three ranks, of which rank 1 pauses for another time than its peers."""
    late = rank_events(pause_us, is_silent=is_silent, is_filled=is_filled)
    return load({0: rank_events(peers_us, is_silent=is_silent), 1: late, 2: rank_events(30, is_silent=is_silent)})


def test_the_pause_of_a_rank_is_found_with_its_place_and_beside_its_peers() -> None:
    pause = silent_pause(job(20_000), 1)
    assert pause is not None
    assert pause.region == "exchange features"
    assert pause.usual_us == pytest.approx(20_030, abs=1)  # from the end of aten::index to aten::cat
    assert 40 < pause.peers_us < 200  # rank 0's gaps in the region


def test_a_region_that_encloses_nothing_is_a_pause() -> None:
    pause = silent_pause(job(20_000, is_silent=True), 1)
    assert pause is not None
    assert pause.region == "exchange features"
    assert pause.usual_us == pytest.approx(20_200, abs=1)


def test_what_all_ranks_pause_what_is_short_and_what_another_thread_fills_are_none() -> None:
    assert silent_pause(job(20_000, 20_000), 1) is None
    assert silent_pause(job(900), 1) is None
    assert silent_pause(job(20_000, is_filled=True), 1) is None


def test_a_pause_of_one_step_is_no_usual_pause() -> None:
    usual = rank_events(40)
    once = [*rank_events(40)[:-4], *rank_events(9_000)[-4:]]
    assert silent_pause(load({0: usual, 1: once}), 1) is None
