"""The columns that a ParserConfig asks for: HTA's columns, types and values."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.core.errors import TraceError
from htagraph.hta.configs.default_values import AttributeSpec, ValueType
from htagraph.hta.configs.parser_config import ParserConfig
from htagraph.hta.shapes.job import open_job
from htagraph.hta.shapes.parsed import parsed_frame
from tests.hta.shapes.test_job import event, job_of
from tests.reach import SHARED

ALEXNET = SHARED / "hta" / "critical_path" / "alexnet.json.gz"

EVENTS = [
    event("gemm", "kernel", 0, 4, tid=7, stream=7, correlation=1, grid=[1, 2, 3], own=2.5, shared=8),
    event("aten::mm", "cpu_op", 0, 4) | {"args": {"Ev Idx": 3, "note": "x"}},
]


def test_other_arguments_stand_in_the_place_of_the_default_ones(tmp_path: Path) -> None:
    job = job_of(tmp_path, EVENTS)
    config = ParserConfig(ParserConfig.get_minimum_args())
    config.add_args([
        AttributeSpec("grid", "grid", ValueType.Object, "[]"), AttributeSpec("own", "own", ValueType.Float, 0.0),
        AttributeSpec("ev_idx", "Ev Idx", ValueType.Int, -1), AttributeSpec("absent", "absent", ValueType.String, ""),
    ])  # fmt: skip
    frame = parsed_frame(job, 0, config)
    assert frame.columns.tolist() == [
        "index", "cat", "name", "pid", "tid", "ts", "dur", "stream", "correlation", "grid", "own", "ev_idx", "absent",
        "index_correlation", "iteration", "end",
    ]  # fmt: skip
    assert frame["grid"].tolist() == [[1, 2, 3], "[]"]
    assert frame["own"].tolist() == [2.5, 0]
    assert frame["ev_idx"].tolist() == [-1, 3]
    assert str(frame["ev_idx"].dtype) == "int8"
    assert frame["absent"].tolist() == ["", ""]


def test_every_argument_of_the_file_may_be_asked_for(tmp_path: Path) -> None:
    frame = parsed_frame(job_of(tmp_path, EVENTS), 0, ParserConfig(parse_all_args=True))
    assert frame.columns.tolist()[7:-3] == ["ev_idx", "correlation", "stream", "grid", "own", "shared", "note"]
    assert (frame["shared"].tolist(), frame["note"].tolist()) == ([8, 0], ["", "x"])


def test_the_default_is_a_copy_of_the_frame(tmp_path: Path) -> None:
    job = job_of(tmp_path, EVENTS)
    frame = parsed_frame(job, 0, ParserConfig())
    assert frame.equals(job.frame(0))
    frame["stream"] = 0
    assert job.frame(0)["stream"].tolist() == [7, -1]


def test_a_file_that_is_gone_cannot_be_asked_again(tmp_path: Path) -> None:
    job = job_of(tmp_path, EVENTS)
    (tmp_path / "a.json").unlink()
    with pytest.raises(TraceError, match=r"a\.json"):
        parsed_frame(job, 0, ParserConfig(parse_all_args=True))


EXPECTED = {
    "minimum": 12, "complete": 57, "all": 33,
}  # fmt: skip
"""How many columns HTA's frame of the trace has, with `ParserConfig(ARGS_MINIMUM)`, `ARGS_COMPLETE`, parse_all_args."""
DTYPES = {
    "ev_idx": "int16", "fwd_thread_id": "int8", "cbid": "int16", "est_occupancy": "int8", "warps_per_sm": "float64",
    "shared_memory": "int32", "registers_per_thread": "int16", "blocks_per_sm": "object",
}  # fmt: skip
"""HTA's types of some columns of the same trace."""


@pytest.mark.skipif(not ALEXNET.is_file(), reason="the shared traces are not here")
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
def test_columns_and_types_of_a_real_trace_are_htas() -> None:
    job = open_job({0: str(ALEXNET)}, whole=True)
    frames = {
        "minimum": parsed_frame(job, 0, ParserConfig(ParserConfig.get_minimum_args())),
        "complete": parsed_frame(job, 0, ParserConfig(list(ParserConfig.ARGS_COMPLETE))),
        "all": parsed_frame(job, 0, ParserConfig(parse_all_args=True)),
    }
    assert {name: len(frame.columns) for name, frame in frames.items()} == EXPECTED
    for name in ("complete", "all"):
        assert {column: str(frames[name][column].dtype) for column in DTYPES} == DTYPES
