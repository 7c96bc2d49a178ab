from __future__ import annotations

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
    outcome = hg.what_if(load(job(8, (900, 300)), tmp_path)).batch(16).run()
    assert 1.3 < outcome.makespan_ns / outcome.baseline_ns < 2.1
    assert outcome.low < outcome.speedup < outcome.high
    assert "a batch of 16 and not 8" in outcome.notes[0]
    same = hg.what_if(load(job(8, (900, 300)), tmp_path)).batch(8).run()
    assert same.makespan_ns == same.baseline_ns


def test_a_second_recording_says_what_is_between(tmp_path: Path) -> None:
    graphs = []
    for size, us in ((8, (900, 300)), (32, (2100, 600))):
        folder = tmp_path / str(size)
        folder.mkdir()
        graphs.append(load(job(size, us), folder))
    state = hg.what_if(graphs[0], also=graphs[1:]).batch(16).state
    acts = state.graph.activities
    lags = [int(state.lag[state.graph.edges.activity == each].max()) for each in acts.on_device.nonzero()[0]]
    assert lags == [1_300_000, 400_000]


def test_refusals_name_what_to_record_or_give(tmp_path: Path) -> None:
    plain = [op("aten::linear", 0, 10, MAIN), launch(2, 2, 1), kernel("sgemm", 50, 9, 1)]
    with pytest.raises(SelectionError, match="record_shapes=True"):
        hg.what_if(load(plain, tmp_path)).batch(16)
    graph = load(job(8, (900, 300)), tmp_path)
    with pytest.raises(SelectionError, match="before=7: no tensor"):
        hg.what_if(graph).batch(16, 7)
    with pytest.raises(SelectionError, match="after=0"):
        hg.what_if(graph).batch(0)
