"""P2P edges: sends and receives of pipelines wait for each other as the simulator knows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htagraph import EdgeKind
from htagraph.graph.clocks import estimate_clocks
from htagraph.graph.construction.matching.alignment import Track
from htagraph.graph.construction.matching.clusters import partners
from htagraph.graph.construction.matching.match import match
from htagraph.simulate import Job, simulate
from tests.graph.construction.matching.test_match import OFFSETS, loaded, made, matched
from tests.graph.rules.test_collective import assert_waits_are_true


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2026", "2024", "2021"])
@pytest.mark.parametrize("args", [True, False])
@pytest.mark.parametrize("shape", [{"ranks": 4, "parallelism": "pipeline"}, {"ranks": 4, "tp": 2, "pp": 2}])
def test_pairs_wait_for_each_other(era: str, args: bool, shape: dict[str, object], tmp_path: Path) -> None:  # noqa: FBT001
    job = Job.model_validate({"steps": 2, "era": era, "group_args": args, "clock_offsets_us": OFFSETS[:4], **shape})
    done = simulate(job)
    assert_waits_are_true(done, loaded(done, tmp_path))


@pytest.mark.slow
def test_sends_and_receives_have_edges_of_their_own_kind(tmp_path: Path) -> None:
    graph = loaded(simulate(Job(ranks=2, parallelism="pipeline", steps=1)), tmp_path)
    matches = graph.matches
    assert matches is not None
    assert set(matches.op) == {"send_recv"}
    assert (np.bincount(matches.collective) == 2).all()
    kinds = set(graph.edges.kind.tolist())
    assert EdgeKind.P2P in kinds
    assert EdgeKind.COLLECTIVE not in kinds
    leaving = (graph.edges.kind == EdgeKind.P2P) & (graph.edges.target % 2 == 1)
    assert sorted(graph.edges.activity[leaving].tolist()) == sorted(matches.activity.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("offsets", [(), OFFSETS[:4]])
@pytest.mark.parametrize(("ranks", "pairs"), [((0, 2), 0), ((0, 3), 0), ((1, 3), 0), ((0, 1, 3), 1), ((0, 2, 3), 1)])
def test_stages_that_are_no_neighbours_are_not_linked(
    offsets: tuple[float, ...], ranks: tuple[int, ...], pairs: int, tmp_path: Path
) -> None:
    """Their sends and receives are as many and as regular; no clock is invented that lets them end together."""
    done = simulate(Job(ranks=4, parallelism="pipeline", steps=2, group_args=False, clock_offsets_us=offsets))
    graph = loaded(done, tmp_path, ranks)
    found = matched(graph)
    linked = {tuple(found.members.rank[found.collective == each].tolist()) for each in range(len(found))}
    assert linked == {(a, b) for a, b in ((0, 1), (2, 3)) if {a, b} <= set(ranks)}
    assert len(linked) == pairs
    assert {issue.what for issue in found.issues} == {"p2p_ambiguous"}  # ranks of one host share its clock
    for clock in estimate_clocks(graph.ranks, found):
        true = offsets[clock.rank] - offsets[clock.gauge] if offsets and clock.gauge >= 0 else 0.0
        assert abs(clock.offset_ns - 1000 * true) <= 2_000


def pipeline(
    seed: int, stages: int, offset: tuple[float, ...], *, there: bool = True, back: bool = True, mixed: bool = False
) -> tuple[list[Track], dict[int, tuple[int, int, int]]]:
    """Return the sequences of a pipeline that fills and drains, and of each (rank, way, its true partner)."""
    draw = np.random.default_rng(seed)
    count = 16
    rows: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
    time = np.zeros(stages)
    for _ in range(count):
        for a, b in [(s, s + 1) for s in range(stages - 1)] * there + [
            (s, s - 1) for s in range(stages - 1, 0, -1)
        ] * back:
            time[a] += draw.normal(200_000, 15_000)
            ends = max(time[a], time[b]) + 30_000 + draw.uniform(0, 2_000, 2)
            for rank, way, other, end in ((a, 1, b, ends[0]), (b, -1, a, ends[1])):
                rows.setdefault((rank, way, -1 if mixed else other), []).append(
                    (time[rank] + offset[rank], end + offset[rank])
                )
                time[rank] = end
    tracks, meaning = [], {}
    for number, (key, times) in enumerate(sorted(rows.items())):
        start, end = np.array(times).T
        label = np.zeros(len(start), np.int64)
        tracks.append(
            Track(number, key[0], label, start, end, label, label == 0, 0, certain=False, pairwise=True, way=key[1])
        )
        meaning[number] = (*key[:2], key[2])
    return tracks, meaning


def united(tracks: list[Track], stages: int) -> list[tuple[int, ...]]:
    return [tuple(each.shift) for each in partners(tracks, {rank: rank for rank in range(stages)})]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("offset", [(0.0,) * 4, (0.0, 0.0, 3e6, 3e6), (0.0, 4e5, -8e5, 1.2e6)])
def test_neighbours_are_found_under_any_clocks_where_both_ways_agree(seed: int, offset: tuple[float, ...]) -> None:
    tracks, meaning = pipeline(seed, 4, offset)
    found = united(tracks, 4)
    assert len(found) == len(tracks) / 2
    for a, b in found:
        (rank_a, way_a, with_a), (rank_b, way_b, with_b) = meaning[a], meaning[b]
        assert (with_a, with_b, way_a) == (rank_b, rank_a, -way_b)


@pytest.mark.parametrize("seed", range(5))
def test_one_way_alone_earns_no_clock_offset(seed: int) -> None:
    tracks, meaning = pipeline(seed, 4, (0.0, 0.0, 3e6, 3e6), back=False)
    found = {frozenset((meaning[a][0], meaning[b][0])) for a, b in united(tracks, 4)}
    assert found == {frozenset((0, 1)), frozenset((2, 3))}
    assert len(united(pipeline(seed, 4, (0.0,) * 4, back=False)[0], 4)) == 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("offset", [(0.0,) * 4, (0.0, 0.0, 3e6, 3e6)])
def test_what_goes_to_two_partners_on_one_stream_is_refused(seed: int, offset: tuple[float, ...]) -> None:
    tracks, _ = pipeline(seed, 4, offset, mixed=True)
    assert united(tracks, 4) == []


@pytest.mark.parametrize(("offset", "linked"), [(0, 20), (3_000_000, 0)])
def test_kernels_without_any_name_are_partners_only_on_one_clock(offset: int, linked: int) -> None:
    """Of a batch of sends and receives a trace says nothing at all: under an unknown clock anything would fit."""
    draw = np.random.default_rng(3)
    ends = np.cumsum(draw.integers(500_000, 900_000, 20))
    streams = {
        rank: [
            [(int(end - draw.integers(20_000, 300_000) + rank * offset), int(end + 500 * rank + rank * offset))]
            for end in ends
        ]
        for rank in range(2)
    }
    acts, _ = made({rank: [[one[0] for one in rows]] for rank, rows in streams.items()})
    found = match(acts, ("ncclDevKernel_Generic(ncclDevComm*)",), {})
    assert len(found) == linked
    assert set(found.op) <= {"send_recv"}
    assert [issue.what for issue in found.issues] == ([] if linked else ["p2p_ambiguous"])
