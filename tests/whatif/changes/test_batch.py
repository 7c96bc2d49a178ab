from __future__ import annotations

import json
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from tests.strategies import MAIN, Json, kernel, launch, load, op


def job(size: int, us: tuple[int, int]) -> list[Json]:
    """Return a linear layer and a gelu on tensors of a batch, with their kernels, which end last."""
    shapes = {"aten::linear": [[size, 64, 512], [512, 512], [512]], "aten::gelu": [[size, 64, 512]]}
    events: list[Json] = []
    for at, (name, took) in enumerate(zip(shapes, us, strict=True)):
        dims = {"Input Dims": shapes[name], "Input type": ["float"] * len(shapes[name])}
        events += [op(name, 20 * at, 10, MAIN, **dims), launch(20 * at + 2, 2, at + 1)]
        events.append(kernel("ampere_sgemm_128x64_tn" if not at else "gelu_kernel", 50 + 1000 * at, took, at + 1))
    return events


def test_kernels_take_longer_with_the_batch_and_the_batch_is_found(tmp_path: Path) -> None:
    outcome = hg.what_if(load(job(8, (900, 300)), tmp_path)).batch(new=16).run()
    assert 1.2 < outcome.makespan_ns / outcome.baseline_ns < 2.1
    assert outcome.low < outcome.speedup < outcome.high
    assert "a batch of 16 and not 8" in outcome.notes[0]
    same = hg.what_if(load(job(8, (900, 300)), tmp_path)).batch(new=8).run()
    assert same.makespan_ns == same.baseline_ns


def test_a_second_recording_says_what_is_between(tmp_path: Path) -> None:
    graphs = []
    for size, us in ((8, (900, 300)), (32, (2100, 600))):
        folder = tmp_path / str(size)
        folder.mkdir()
        graphs.append(load(job(size, us), folder))
    state = hg.what_if(graphs[0], also=graphs[1:]).batch(new=16).state
    acts = state.graph.activities
    lags = [int(state.lag[state.graph.edges.activity == each].max()) for each in acts.on_device.nonzero()[0]]
    assert lags == [1_300_000, 400_000]


def test_refusals_name_what_to_record_or_give(tmp_path: Path) -> None:
    plain = [op("aten::linear", 0, 10, MAIN), launch(2, 2, 1), kernel("sgemm", 50, 9, 1)]
    replayed = [event | {"name": "cudaGraphLaunch"} if "Launch" in event["name"] else event for event in plain]
    used, fast = job(8, (900, 300))[::3], [event for event in job(1 << 16, (900, 300)) if event["cat"] == "cpu_op"]
    annotated = [*(event for event in used if event["cat"] == "cpu_op"), op("nccl:all_reduce", 60, 5, MAIN)]
    for events, match in (
        (plain, "record_shapes=True"), (replayed, "--captures"), (annotated, "CUDA"), (fast, "CUDA"),
    ):  # fmt: skip
        with pytest.raises(SelectionError, match=match):
            hg.what_if(load(events, tmp_path)).batch(new=16)
    graph = load(job(8, (900, 300)), tmp_path)
    with pytest.raises(SelectionError, match=r"batch of 16 contradicts the shapes of inputs: by them.* is 8 "):
        hg.what_if(graph).batch(16, 8)
    with pytest.raises(SelectionError, match=r"batch\(16\) says the recorded batch; give the new one"):
        hg.what_if(graph).batch(16)
    with pytest.raises(SelectionError, match="no size is given"):
        hg.what_if(graph).batch()
    with pytest.raises(SelectionError, match="new=0"):
        hg.what_if(graph).batch(new=0)
    with pytest.raises(SelectionError, match="another batch already"):
        hg.what_if(graph).batch(8, 16).batch(8, 16)


def test_other_recordings_are_graphs_of_the_same_job(tmp_path: Path) -> None:
    graph = load(job(8, (900, 300)), tmp_path)
    wider = json.loads(json.dumps(job(16, (900, 300))).replace("512", "768"))
    others = []
    for name, events in (("wider", wider), ("plain", [op("aten::linear", 0, 10, MAIN)])):
        (tmp_path / name).mkdir()
        others.append(load(events, tmp_path / name))
    for other, message in zip(others, (r"also=: hardly any time", r"also=: .*record_shapes"), strict=True):
        with pytest.raises(SelectionError, match=message):
            hg.what_if(graph, also=other).batch(new=16)
    for path in (str(tmp_path), [str(tmp_path)], 3):
        with pytest.raises(TypeError, match="takes graphs of other recordings"):
            hg.what_if(graph, also=path)  # type: ignore[arg-type]


def test_kernels_without_shapes_lie_between_unchanged_and_in_proportion(tmp_path: Path) -> None:
    events = [*job(8, (900, 300)), launch(60, 2, 3), kernel("gelu_kernel", 2050, 500, 3)]
    outcome = hg.what_if(load(events, tmp_path)).batch(new=64).run()
    assert "29% is of no known shape" in outcome.notes[0]
    unsure = hg.what_if(outcome.baseline).batch(new=64).state.unsure[0]
    own = unsure.activities == outcome.baseline.activities.duration.tolist().index(500_000)
    assert float((unsure.high / unsure.low)[own][0]) == pytest.approx(8)
