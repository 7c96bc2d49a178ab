"""Capacity: rows are what-if runs, memory at the recorded batch is the recorded one, refusals say what is lacking."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.findings.verbs.what_if import capacity_sentences
from htagraph.queries.recorded_events import memory_events
from htagraph.whatif.capacity import Capacity
from tests.reach import REPOSITORY
from tests.strategies import MAIN, kernel, launch, load, op


@pytest.fixture(scope="module")
def found() -> Capacity:
    graph = hg.load(REPOSITORY / "data/gpu_demo/train", cache=False)
    return hg.capacity(graph, batches=[8, 16, 64], devices=["L4", "H200"])


def test_rows_are_predictions_of_changes(found: Capacity) -> None:
    assert found.batch == 16  # of the job that was recorded, data/gpu_demo_jobs.py
    job = hg.what_if(found.graph)
    for row in found.batches.to_dict("records"):
        outcome = job.run() if row["batch"] == 16 else job.batch(16, row["batch"]).run()
        assert row["step_us"] == outcome.step_ns / 1000
        assert row["low_us"] <= row["step_us"] <= row["high_us"]
        assert row["samples_per_s"] == pytest.approx(row["batch"] / row["step_us"] * 1e6)
    for row in found.devices.to_dict("records"):
        outcome = job.device(row["device"]).run()
        assert row["step_us"] == outcome.step_ns / 1000
        assert row["speedup"] == pytest.approx(found.step_us / row["step_us"])
        assert row["low"] <= row["speedup"] <= row["high"]


def test_the_recorded_batch_has_the_recorded_step_and_memory(found: Capacity) -> None:
    row = found.batches.iloc[1]
    assert row["step_us"] == row["low_us"] == row["high_us"] == found.step_us
    events = memory_events(found.graph)
    assert row["memory_low_bytes"] == row["memory_high_bytes"] == events["allocated_bytes"].max()


def test_memory_grows_with_the_batch_and_the_largest_batch_fits(found: Capacity) -> None:
    table, room = found.batches, found.room
    assert np.all(np.diff(table["memory_low_bytes"]) > 0)
    assert np.all(table["memory_low_bytes"] <= table["memory_high_bytes"])
    assert room is not None
    assert 16 < room.surely <= room.perhaps
    low, high = (table[f"memory_{end}_bytes"] for end in ("low", "high"))
    slope = (high[2] - high[1]) / (64 - 16)  # a line, held by two of its points
    assert high[1] + slope * (room.surely - 16) <= room.bytes
    slope = (low[2] - low[1]) / (64 - 16)
    assert low[1] + slope * (room.perhaps + 1 - 16) > room.bytes


def test_sentences_say_what_binds(found: Capacity) -> None:
    said = capacity_sentences(found)
    assert "With a batch of 64 instead of 16" in said[0]
    assert "fits into the device's memory" in said[1]
    assert "On none of these devices is a step shorter than on H100 SXM" in said[2]  # hosts bind this job
    assert any(each.startswith("Note: batch of 64: the interval is wide") for each in said)


def test_a_job_without_steps_is_no_step(tmp_path: Path) -> None:
    events = [
        op("aten::gelu", 0, 40, MAIN, **{"Input Dims": [[4, 256, 64]], "Input type": ["float"]}), launch(2, 2, 1),
        kernel("gelu_kernel", 50, 40, 1),
    ]  # fmt: skip
    result = hg.capacity(load(events, tmp_path), before=4, devices=["L4"], recorded="H100 SXM")
    assert result.unit == "job"
    assert result.batches["samples_per_s"].isna().all()
    assert "a job takes" in capacity_sentences(result)[0]
    assert result.device == "H100 SXM"


def test_ranks_that_were_not_read_are_said() -> None:
    result = hg.capacity(hg.load(REPOSITORY / "data/demo", ranks=[2]), devices=["H100 SXM"])
    assert result.notes[0].startswith("1 of 4 ranks was read")


def test_what_the_recording_cannot_tell_is_refused_with_the_setting() -> None:
    graph = hg.load(REPOSITORY / "data/demo")
    result = hg.capacity(graph, devices=["H100 SXM"])
    assert not len(result.batches)
    assert result.batch == 0
    assert "record_shapes=True" in result.refused[0]
    with pytest.raises(SelectionError, match="record_shapes=True"):
        hg.capacity(graph, batches=[8])
    with pytest.raises(SelectionError, match="A100 40GB SXM or A100 80GB SXM"):
        hg.capacity(graph, devices=["A100 SXM"])
