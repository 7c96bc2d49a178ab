"""Execution traces for Chakra's simulators, read and replayed by a feeder that knows nothing of this package."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.errors import HtagraphError
from htagraph.simulate import REGIMES, simulate
from tests.chakra_feeder import COLLECTIVE, COMP, METADATA, RECV, SEND, Job, read, replay
from tests.reach import DATA, DATASETS, SHARED, graph_of, label
from tests.strategies import COMPUTE, kernel, launch, load, op, step

JOBS = [*DATASETS, *(DATA / "gpu_demo" / name for name in ("before", "after", "train", "generate"))]
JOBS = [path for path in JOBS if path.name != "gpu_demo"]
REAL = [path for name in ("megatron_tp8_a100", "torchrec_v100_equal", "gloo4_cpu") if (path := SHARED / name).is_dir()]


@cache
def written(graph: DependencyGraph) -> Job:
    with tempfile.TemporaryDirectory() as folder:
        hg.to_chakra(graph, folder)
        return read(Path(folder))


@cache
def simulated(regime: str) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        simulate(REGIMES[regime]()).write(Path(folder), truth=False)
        return hg.load(folder)


def recorded_us(graph: DependencyGraph) -> float:
    return hg.replay(graph).makespan_ns / 1000


def check_replay(graph: DependencyGraph) -> None:
    """Every node ends when its file says, and the job within 1 % of the recorded time."""
    job = written(graph)
    ends = replay(job)
    assert max(ends.values()) == pytest.approx(recorded_us(graph), rel=0.01)
    assert all(
        ends[rank, node.id] == node.start + node.lasts for rank, own in job.nodes.items() for node in own.values()
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", [*JOBS, *REAL], ids=label)
def test_a_replay_gives_the_recorded_times(path: Path) -> None:
    check_replay(graph_of(path))


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
def test_a_replay_of_a_simulated_job_gives_the_recorded_times(regime: str) -> None:
    check_replay(simulated(regime))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("regime", ["gpu_bound", "host_bound", "communication_bound", "balanced", "tensor"])
def test_a_feeder_with_other_kernels_agrees_with_the_what_if(regime: str, factor: float) -> None:
    """Gaps alone would give back any recorded time; dependencies show where times change."""
    graph = simulated(regime)
    job = written(graph)
    nodes = [node for own in job.nodes.values() for node in own.values()]
    lasts = [node.lasts for node in nodes]
    for node in nodes:
        if node.type == COMP and not node.attr["is_cpu_op"] and not node.name.startswith(("before ", "nccl")):
            node.lasts = round(factor * node.lasts)
    predicted = hg.what_if(graph).scale(kind=("computation", "memory"), factor=factor).run().makespan_ns / 1000
    assert max(replay(job).values()) == pytest.approx(predicted, rel=0.015)
    for node, before in zip(nodes, lasts, strict=True):
        node.lasts = before


def test_a_feeder_with_one_node_at_a_time_keeps_the_order() -> None:
    """As ASTRA-sim has it: of each rank one node of the host, one of computation, one of communication."""
    graph = graph_of(DATA / "demo")
    assert max(replay(written(graph), limited=True).values()) == pytest.approx(recorded_us(graph), rel=0.01)


def test_nodes_say_what_they_are() -> None:
    graph = graph_of(DATA / "demo")
    job = written(graph)
    assert job.versions == {"0.0.4"}
    assert job.groups == {"1": [0, 1, 2, 3]}
    for rank, nodes in job.nodes.items():
        every = sorted(nodes.values(), key=lambda node: node.id)
        assert [node.id for node in every] == list(range(len(every)))
        assert all(dep < node.id for node in every for dep in node.deps)
        assert all(node.ctrl <= node.deps for node in every)
        ends = [node for node in every if node.type == METADATA]
        assert [(node.name, node.lasts) for node in ends] == [(f"ProfilerStep#{number}", 0) for number in graph.steps]
        reduces = [node for node in every if node.type == COLLECTIVE]
        acts = graph.activities
        assert len(reduces) == int((acts.kind[acts.of_rank(rank)] == hg.ActivityKind.COMMUNICATION).sum())
        assert {node.attr["comm_type"] for node in reduces} == {0}
        assert all(node.attr["comm_size"] > 0 and node.attr["is_cpu_op"] is False for node in reduces)
    tags = [[node.attr["comm_tag"] for node in own.values() if node.type == COLLECTIVE] for own in job.nodes.values()]
    assert tags == [tags[0]] * 4


def test_a_pipeline_sends_and_receives() -> None:
    job = written(simulated("pipeline"))
    ends = {SEND: set[tuple[int, int, int]](), RECV: set[tuple[int, int, int]]()}
    for node in (node for own in job.nodes.values() for node in own.values() if node.type in ends):
        ends[node.type].add((node.attr["comm_src"], node.attr["comm_dst"], node.attr["comm_tag"]))
    assert ends[SEND] == ends[RECV]
    assert ends[SEND]


def test_a_kernel_waits_for_its_launch_and_its_stream() -> None:
    graph = load([
        step(0, 0, 90), op("aten::mm", 1, 40), launch(2, 5, correlation=1), launch(10, 5, correlation=2),
        kernel(COMPUTE, 20, 30, correlation=1), kernel(COMPUTE, 50, 10, correlation=2),
    ])  # fmt: skip
    nodes = written(graph).nodes[0]
    first, second = (node for node in nodes.values() if node.name == COMPUTE)
    assert (first.lasts, second.lasts) == (30, 10)
    assert first.id in second.deps
    assert {nodes[dep].attr["is_cpu_op"] for dep in second.deps} == {True, False}


def test_communication_whose_partners_were_not_recorded_is_computation(tmp_path: Path) -> None:
    files = hg.to_chakra(hg.load(DATA / "demo", ranks=[1]), tmp_path)
    assert (files.unmatched, files.unsized) == (6, 0)
    assert "Give the traces of all ranks." in files.sentences[1]
    assert {node.type for node in read(tmp_path).nodes[1].values()} == {COMP, METADATA}


def test_the_same_graph_gives_the_same_bytes_in_the_place_of_the_old(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    first = [path.read_bytes() for path in hg.to_chakra(graph, tmp_path).traces]
    assert [path.read_bytes() for path in hg.to_chakra(graph, tmp_path).traces] == first


def test_folders_of_traces_and_of_other_jobs_are_refused(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    with pytest.raises(HtagraphError, match="holds the traces themselves"):
        hg.to_chakra(graph, DATA / "demo")
    (tmp_path / "rank.7.et").write_bytes(b"")
    with pytest.raises(HtagraphError, match=r"rank\.7\.et: is of another job"):
        hg.to_chakra(graph, tmp_path)
    with pytest.raises(HtagraphError, match="is a file, not a folder"):
        hg.to_chakra(graph, tmp_path / "rank.7.et")
