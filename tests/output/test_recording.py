"""The ledger as `validate` prints it, by rank."""

from __future__ import annotations

from htagraph.output.recording import NEEDS, RECORDING, recording_of
from htagraph.output.validation import validate
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, runtime


def test_time_in_synchronizing_calls_is_split_by_recorded_work() -> None:
    wait = runtime("cudaDeviceSynchronize", 10, 90)
    (row,) = recording_of(load([launch(0, 5, 1), kernel(COMPUTE, 20, 30, 1), wait])).to_dict("records")
    assert list(row) == list(RECORDING.types)
    assert (row["sync_us"], row["sync_without_work_us"], row["device_work"]) == (90.0, 60.0, 1)
    assert row["writer"] == "PyTorch's profiler"


def test_every_analysis_that_rests_on_a_part_is_one_that_validate_names() -> None:
    assert set(NEEDS) <= set(validate(DATA / "demo").support["analysis"])
    assert len(recording_of(graph_of(DATA / "demo"))) == 4
