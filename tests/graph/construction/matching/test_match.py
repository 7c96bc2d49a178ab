"""Matching against known membership: of simulated jobs, of generated ones, and of real traces counted by hand."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import Activities
from htagraph.graph.clocks import estimate_clocks
from htagraph.graph.construction.matching.match import Matching, match
from htagraph.simulate import REGIMES, Job, Simulated, simulate
from htagraph.simulate.job import Era
from tests.reach import SHARED

PAIRS = SHARED.parent / "real_pairs" / "data"
MESHES = {
    "mesh": Job(ranks=8, tp=2, pp=2, steps=3, microbatches=2),
    "fsdp": Job(ranks=4, data_strategy="fsdp", steps=2),
    "mesh_fsdp": Job(ranks=8, tp=2, data_strategy="fsdp", steps=2),
    "all_to_all": Job(ranks=4, steps=3, all_to_all=True, broadcast_buffers=True),
}
OFFSETS = (0.0, 4321.0, -2500.0, 17.5, 900.0, -5000.0, 3.0, 41.0)


def loaded(done: Simulated, folder: Path, ranks: Iterable[int] | None = None) -> DependencyGraph:
    """Return the graph of a simulated job, of all ranks or some."""
    paths = done.write(folder, level=1, truth=False)
    return hg.load({rank: paths[rank] for rank in (range(len(paths)) if ranks is None else ranks)})


def recorded(graph: DependencyGraph) -> Activities:
    """Return the activities that files recorded, without those of the graph's own."""
    acts = graph.activities
    dense = [name for name in Activities.__dataclass_fields__ if name != "args"]
    return Activities(**{name: getattr(acts, name)[: acts.ranked] for name in dense}, args=acts.args)


def matched(graph: DependencyGraph) -> Matching:
    """Return what `match` finds in a graph's recorded activities."""
    return match(recorded(graph), graph.names, graph.traces)


def truth_of(done: Simulated, graph: DependencyGraph, found: Matching) -> list[int]:
    """Return the true collective of each member."""
    where = {(member.rank, member.event): each.id for each in done.truth.collectives for member in each.members}
    acts = graph.activities
    return [where[int(acts.rank[row]), int(acts.event[row])] for row in found.members.activity]


def score(truth: list[int], collective: np.ndarray) -> tuple[int, int, int]:
    """Return (links between different collectives, members linked, members that could be)."""
    parts = defaultdict(set)
    for own, linked in zip(truth, collective.tolist(), strict=True):
        if linked >= 0:
            parts[linked].add(own)
    sizes = Counter(truth)
    return (
        sum(len(part) > 1 for part in parts.values()),
        int((collective >= 0).sum()),
        sum(count for count in sizes.values() if count > 1),
    )


@cache
def with_clocks_off(regime: str, *, args: bool, era: Era) -> tuple[Simulated, DependencyGraph]:
    """Return three steps of a regime, with few micro-batches, simulated with clocks that are off, and its graph."""
    job = REGIMES[regime]()
    short = {"steps": 3, "layers": 4, "microbatches": 3}
    off = {"era": era, "group_args": args, "clock_offsets_us": OFFSETS[: job.ranks], **short}
    done = simulate(job.model_copy(update=off))
    with tempfile.TemporaryDirectory() as folder:
        return done, loaded(done, Path(folder))


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(
    ("era", "args"), [("2026", True), ("2024", True), ("2024-03", True), ("2026", False), ("2021", False)]
)
def test_every_collective_of_every_regime_is_matched(regime: str, era: Era, args: bool) -> None:  # noqa: FBT001
    done, graph = with_clocks_off(regime, args=args, era=era)
    found = matched(graph)
    wrong, linked, possible = score(truth_of(done, graph, found), found.collective)
    assert (wrong, linked) == (0, possible)
    assert set(found.key) == {"comms_id" if args and era == "2026" else "pg+order" if args else "lane+order"}
    assert not found.issues


@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("offsets", [(), OFFSETS])
def test_meshes_without_arguments_fall_into_their_groups(name: str, offsets: tuple[float, ...], tmp_path: Path) -> None:
    job = MESHES[name].model_copy(update={"group_args": False, "clock_offsets_us": offsets[: MESHES[name].ranks]})
    done = simulate(job)
    graph = loaded(done, tmp_path)
    found = matched(graph)
    wrong, linked, possible = score(truth_of(done, graph, found), found.collective)
    assert (wrong, linked) == (0, possible)


def cut(acts: Activities, members: np.ndarray, seed: int) -> Activities:
    """Return activities in which some ranks lack the head or the tail of their communication."""
    draw = np.random.default_rng(seed)
    kind = acts.kind.copy()
    for rank in np.unique(acts.rank[members]).tolist():
        rows = members[acts.rank[members] == rank]
        head, tail = (int(draw.integers(0, len(rows) // 3 + 1)) * int(draw.random() < 0.5) for _ in range(2))
        kind[np.concatenate((rows[:head], rows[len(rows) - tail :]))] = ActivityKind.COMPUTATION
    return replace(acts, kind=kind)


@pytest.mark.parametrize(("jitter", "seed"), [(0.0, 1), (0.005, 1), (0.005, 2)])
def test_sibling_groups_that_work_alike_are_told_apart(jitter: float, seed: int, tmp_path: Path) -> None:
    """Ends of all four ranks agree within a few µs, also where two groups have their all-reduces at once."""
    done = simulate(Job(ranks=4, tp=2, steps=3, layers=3, layer_mb=8.0, jitter=jitter, seed=seed, group_args=False))
    graph = loaded(done, tmp_path)
    found = match(recorded(graph), graph.names, graph.traces)
    wrong, linked, possible = score(truth_of(done, graph, found), found.collective)
    assert (wrong, linked) == (0, possible)
    assert len({found.group[number] for number in found.collective.tolist()}) == 4


@pytest.mark.parametrize("which", ["comms_id", "all"])
@pytest.mark.parametrize("pp", [1, 2])
def test_a_rank_without_arguments_is_placed_beside_those_that_have_them(which: str, pp: int, tmp_path: Path) -> None:
    done = simulate(Job(ranks=4, tp=2, pp=pp, steps=3, layers=3, microbatches=2))
    graph = loaded(done, tmp_path)
    acts = recorded(graph)
    args = {}
    for name, argument in acts.args.items():
        kept = (acts.rank[argument.rows] != 3) | (which not in (name, "all"))
        args[name] = replace(argument, rows=argument.rows[kept], values=argument.values[kept])
    found = match(replace(acts, args=args), graph.names, graph.traces)
    wrong, linked, possible = score(truth_of(done, graph, found), found.collective)
    assert (wrong, linked) == (0, possible)


@pytest.mark.parametrize("offsets", [(), OFFSETS[:4]])
def test_missing_heads_and_tails_change_no_match(offsets: tuple[float, ...], tmp_path: Path) -> None:
    done = simulate(Job(ranks=4, tp=2, steps=3, layers=2, group_args=False, clock_offsets_us=offsets))
    graph = loaded(done, tmp_path)
    acts = recorded(graph)
    whole = match(acts, graph.names, graph.traces)
    for seed in range(2):
        found = match(cut(acts, whole.members.activity, seed), graph.names, graph.traces)
        wrong, linked, possible = score(truth_of(done, graph, found), found.collective)
        assert wrong == 0
        assert linked >= 0.75 * possible  # what too few collectives are left of may stay alone


@pytest.mark.skipif(not SHARED.exists(), reason="no shared traces")
@pytest.mark.parametrize("folder", ["torchrec_v100_equal", "megatron_tp8_a100"])
def test_missing_heads_and_tails_change_no_match_of_real_traces(folder: str) -> None:
    graph = hg.load(SHARED / folder)
    acts = recorded(graph)
    whole = match(acts, graph.names, graph.traces)
    place = dict(zip(whole.members.activity.tolist(), whole.collective.tolist(), strict=True))
    for seed in range(1):
        found = match(cut(acts, whole.members.activity, seed), graph.names, graph.traces)
        truth = [place[row] for row in found.members.activity.tolist()]
        wrong, linked, possible = score(truth, found.collective)
        assert (wrong, linked) == (0, possible)


@pytest.mark.skipif(not PAIRS.exists(), reason="no real pairs")
@pytest.mark.parametrize("pair", ["ddp2_network_half", "ddp4_straggler_log", "ddp2_backward_half"])
def test_gloo_jobs_are_matched_in_their_steps_on_one_clock(pair: str) -> None:
    """Their ends lie up to 18 ms apart, in every step by the same."""
    graph = hg.load(PAIRS / pair / "A1")
    found = matched(graph)
    assert (found.collective >= 0).all()
    step = found.members.step
    for number in range(len(found)):
        assert len(set(step[found.collective == number].tolist())) == 1
    assert {clock.offset_ns for clock in estimate_clocks(graph.ranks, found)} == {0}


@pytest.mark.slow
def test_operations_are_named_by_what_called_them(tmp_path: Path) -> None:
    job = MESHES["all_to_all"].model_copy(update={"group_args": False})
    done = simulate(job)
    graph = loaded(done, tmp_path)
    found = matched(graph)
    kinds = {each.id: each.kind for each in done.truth.collectives}
    truth = truth_of(done, graph, found)
    for row in np.flatnonzero(found.collective >= 0):
        assert found.op[found.collective[row]] == kinds[truth[row]]


@pytest.mark.slow
def test_an_absent_rank_is_said_and_the_others_are_linked(tmp_path: Path) -> None:
    done = simulate(Job(ranks=4, steps=2))
    graph = loaded(done, tmp_path, ranks=(0, 1, 3))
    found = matched(graph)
    wrong, linked, _ = score(truth_of(done, graph, found), found.collective)
    assert wrong == 0
    assert linked == len(found.members)
    assert [issue.what for issue in found.issues] == ["collectives_ranks_absent"]
    assert "without 1 of its 4 ranks (only 0, 1, 3 are linked)" in found.issues[0].detail


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2026", "2021"])
def test_a_file_of_another_run_is_refused_and_the_others_are_linked(era: str, tmp_path: Path) -> None:
    job = Job(ranks=4, steps=4, era=era, tp=1, jitter=0.1)
    ours, other = simulate(job), simulate(job.model_copy(update={"seed": 9}))
    paths = ours.write(tmp_path / "ours", level=1, truth=False)
    graph = hg.load({**dict(enumerate(paths)), 2: other.write(tmp_path / "other", level=1, truth=False)[2]})
    found = matched(graph)
    by_rank = Counter(found.members.rank[found.collective >= 0].tolist())
    assert by_rank[2] == 0
    assert by_rank[0] == by_rank[1] == by_rank[3] > 0


def test_one_rank_alone_has_no_collectives(tmp_path: Path) -> None:
    graph = loaded(simulate(Job(ranks=2, steps=1, layers=1)), tmp_path, ranks=(1,))
    found = matched(graph)
    assert len(found) == len(found.members) == 0


def made(ends: dict[int, list[list[tuple[int, int]]]]) -> tuple[Activities, tuple[str, ...]]:
    """Return activities: for each rank, for each of its streams, (start, end) of all-reduces."""
    rows = [
        (rank, lane + 100 * rank, start, end - start)
        for rank in sorted(ends)
        for lane, stream in enumerate(ends[rank])
        for start, end in stream
    ]
    rank, lane, start, duration = (np.array(column) for column in zip(*rows, strict=True))
    count = len(rows)
    none, zero = np.full(count, -1, np.int32), np.zeros(count, np.int32)
    acts = Activities(
        rank=rank.astype(np.int32), kind=np.full(count, ActivityKind.COMMUNICATION, np.int8), name=zero, category=zero,
        lane=lane.astype(np.int32), start=start, duration=duration, step=none, parent=none, cause=none, event=none,
    )  # fmt: skip
    return acts, ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.integers(0, 10**6), st.integers(2, 5), st.integers(8, 40),
    st.lists(st.integers(0, 4), min_size=5, max_size=5), st.floats(0, 5e6),
)  # fmt: skip
def test_no_link_is_ever_wrong(seed: int, ranks: int, count: int, cut: list[int], skew: float) -> None:
    """Random all-reduces of one group, of which ranks lack up to four at the head, on clocks that differ."""
    draw = np.random.default_rng(seed)
    arrival = np.zeros((ranks, count), np.int64)
    end = arrival.copy()
    now: np.ndarray = np.zeros(ranks)
    for i in range(count):
        arrival[:, i] = now + draw.exponential(80_000, ranks) + 5_000
        end[:, i] = arrival[:, i].max() + draw.uniform(20_000, 60_000) + draw.uniform(0, 2_000, ranks)
        now = end[:, i] + draw.uniform(1_000, 300_000)
    offset = draw.uniform(-skew, skew, ranks).astype(np.int64)
    acts, names = made(
        {
            rank: [
                [(int(s), int(e)) for s, e in zip(arrival[rank] + offset[rank], end[rank] + offset[rank], strict=True)][
                    cut[rank] :
                ]
            ]
            for rank in range(ranks)
        }
    )
    found = match(acts, names, {})
    truth = [i for rank in range(ranks) for i in range(cut[rank], count)]
    wrong, linked, possible = score(truth, found.collective)
    assert (wrong, linked) == (0, possible)
    clocks = estimate_clocks(range(ranks), found)
    for clock in clocks:
        assert abs(clock.offset_ns - (offset[clock.rank] - offset[0])) <= 2_500


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(6, 40))
def test_ranks_that_never_met_are_not_linked(seed: int, ranks: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    streams = {}
    for rank in range(ranks):
        start = np.cumsum(draw.uniform(100_000, 900_000, count)).astype(np.int64)
        streams[rank] = [
            [(int(s), int(s + d)) for s, d in zip(start, draw.uniform(20_000, 60_000, count), strict=True)]
        ]
    acts, names = made(streams)
    assert len(match(acts, names, {})) == 0


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="no shared traces")
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("megatron_tp8_a100", {("all_reduce", 8): 84}),
        ("torchrec_v100_equal", {("all_reduce", 4): 15, ("all_to_all", 4): 15}),
        (
            "torchrec_v100_leading_missing",
            {("all_reduce", 4): 15, ("all_to_all", 4): 16, ("all_reduce", 3): 1, ("all_to_all", 3): 1},
        ),
        ("gloo4_cpu", {("all_reduce", 4): 6}),
    ],
)
def test_real_traces(folder: str, expected: dict[tuple[str, int], int]) -> None:
    graph = hg.load(SHARED / folder)
    found = matched(graph)
    sizes = np.bincount(found.collective[found.collective >= 0], minlength=len(found))
    assert Counter(zip(found.op, sizes.tolist(), strict=True)) == expected
    assert not found.issues
    members, barrier = found.members, found.barrier
    clocks = {clock.rank: clock.offset_ns for clock in estimate_clocks(graph.ranks, found)}
    off = np.array([clocks[rank] for rank in members.rank.tolist()])
    for number in np.flatnonzero(barrier):
        rows = found.collective == number
        assert (members.start - off)[rows].max() <= (members.end - off)[rows].min()
    if "torchrec" in folder:  # one stream: what is last on one rank is last on all, and so on backwards
        for rank in graph.ranks:
            own = found.collective[members.rank == rank]
            assert (np.diff(own[own >= 0]) == 1).all()


def test_the_gloo_job_of_the_repository() -> None:
    graph = hg.load("data/gloo_ddp")
    found = matched(graph)
    sizes = np.bincount(found.collective[found.collective >= 0])
    assert sizes.tolist() == [4] * 12
