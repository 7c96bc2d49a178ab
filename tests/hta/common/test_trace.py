"""Trace: HTA's own way in, and frames that are the caller's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from htagraph.core.errors import SelectionError, TraceError
from htagraph.hta.common.trace import (
    Trace,
    add_et_column,
    correlate_execution_trace,
    load_execution_trace,
    parse_trace_file,
)
from htagraph.hta.configs.parser_config import ParserConfig
from tests.hta.shapes.test_job import TWO_STEPS, event, job_of, write
from tests.reach import DATA, SHARED

DEMO = str(DATA / "demo")


def test_files_are_known_before_they_are_read(tmp_path: Path) -> None:
    trace = Trace({0: write(tmp_path / "a.json", TWO_STEPS)})
    assert trace.trace_files == {0: str(tmp_path / "a.json")}
    assert not trace.is_parsed
    assert (trace.traces, trace.get_ranks(), trace.symbol_table.is_empty(), trace.meta_data) == ({}, [], True, {})
    with pytest.raises(ValueError, match="call parse_traces"):
        trace.get_trace(0)


def test_reading_aligning_and_filtering_are_apart_or_together(tmp_path: Path) -> None:
    trace = Trace({0: write(tmp_path / "a.json", TWO_STEPS)})
    trace.parse_traces(use_multiprocessing=False, use_memory_profiling=False)
    assert trace.is_parsed
    assert (len(trace.get_trace(0)), trace.get_trace(0)["ts"].min()) == (9, 98)
    trace.align_and_filter_trace()
    aligned = trace.get_trace(0)
    assert (len(aligned), aligned["ts"].min()) == (5, 0)
    loaded = Trace({0: str(tmp_path / "a.json")})
    loaded.load_traces(include_last_profiler_step=False, use_multiprocessing=True)
    assert loaded.get_trace(0).equals(aligned)


def test_the_lowest_ranks_are_read_if_not_all_are_wanted() -> None:
    trace = Trace(trace_dir=DEMO)
    trace.parse_traces(max_ranks=2)
    assert list(trace.traces) == trace.get_ranks() == [0, 1]
    trace.align_and_filter_trace()
    assert trace.get_ranks() == [0, 1]


def test_what_is_written_into_a_frame_stays_and_no_analysis_sees_it(tmp_path: Path) -> None:
    trace = Trace.of(job_of(tmp_path, TWO_STEPS))
    trace.get_trace(0)["mine"] = 1
    trace.decode_symbol_ids()
    assert {"mine", "s_name", "s_cat"} <= set(trace.get_all_traces()[0].columns)
    assert not {"mine", "s_name"} & set(trace.job.frame(0).columns)


def test_a_raw_trace_is_written_compressed_only_if_the_name_says_so(tmp_path: Path) -> None:
    """HTA compresses whatever the name (D16)."""
    trace = Trace.of(job_of(tmp_path, TWO_STEPS))
    raw = trace.get_raw_trace_for_one_rank(0)
    for name in ("b.json", "b.json.gz"):
        trace.write_raw_trace(str(tmp_path / name), raw)
    assert json.loads((tmp_path / "b.json").read_text()) == raw
    assert json.loads(gzip.decompress((tmp_path / "b.json.gz").read_bytes())) == raw


def test_one_file_has_a_frame_its_symbols_and_what_stands_beside_the_events(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", TWO_STEPS)
    meta, frame, symbols = parse_trace_file(path, ParserConfig(ParserConfig.get_minimum_args()))
    assert meta["schemaVersion"] == 1
    assert "stream" in frame
    assert "bytes" not in frame
    assert symbols.get_sym_table()[frame["name"].iloc[0]] == "cudaLaunchKernel"


def test_one_rank_more_can_be_read(tmp_path: Path) -> None:
    trace = Trace(trace_dir=DEMO)
    trace.parse_single_rank(2)
    assert trace.get_ranks() == [2]
    trace.parse_multiple_ranks([0, 2])
    assert trace.get_ranks() == [0, 2]
    with pytest.raises(ValueError, match="no file of rank 9; ranks: 0, 1, 2, 3"):
        trace.parse_single_rank(9)


def test_a_series_becomes_counters_in_the_files_own_time(tmp_path: Path) -> None:
    trace = Trace.of(job_of(tmp_path, TWO_STEPS))
    series = pd.DataFrame({"pid": [0, 0], "ts": [1.5, 2.0], "length": [3, 4], "id": ["7", "7"]})
    events = trace.convert_time_series_to_events(series, "queue", "length")
    assert events[0] == {
        "name": "queue", "pid": 0, "id": "7", "ts": 1.5 + trace.min_ts, "ph": "C", "args": {"queue": 3}
    }  # fmt: skip
    json.dumps(events)
    with pytest.raises(ValueError, match="no column length"):
        trace.convert_time_series_to_events(series.drop(columns="length"), "queue", "length")


def test_arrows_bind_to_the_slice_at_their_end() -> None:
    begin = Trace.flow_event(5, 0, 7, 1.5, is_start=True, name="launch", cat="ac2g")
    assert begin == {"ph": "s", "id": 5, "pid": 0, "tid": 7, "ts": 1.5, "cat": "ac2g", "name": "launch"}
    end = Trace.flow_event(5, 0, 8, 2.5, is_start=False, name="launch", cat="ac2g", args={"a": 1})
    assert (end["ph"], end["bp"], end["args"]) == ("f", "e", {"a": 1})


@pytest.mark.parametrize(
    ("call", "kind"),
    [("cudaLaunchKernel", "NVIDIA GPU"), ("cudaLaunchKernelExC", "NVIDIA GPU"), ("hipLaunchKernel", "AMD GPU"),
     ("runFunction - job_prep_and_submit_for_execution", "MTIA"), ("aten::mm", "UNKNOWN GPU")],
)  # fmt: skip
def test_the_maker_is_known_by_the_launches(call: str, kind: str, tmp_path: Path) -> None:
    assert Trace.of(job_of(tmp_path, [event(call, "cuda_runtime", 0, 1)])).get_device_type() == kind


ET = SHARED / "hta" / "execution_trace"


def node(number: int, name: str, rf_id: int) -> dict[str, object]:
    return {
        "id": number, "name": name, "rf_id": rf_id, "parent": 1, "op_schema": f"{name}(Tensor self)",
        "input_shapes": [[2, 2]], "input_types": ["Tensor(float)"], "output_shapes": [], "output_types": [],
    }  # fmt: skip


def both(tmp_path: Path, *nodes: dict[str, object]) -> tuple[Trace, str]:
    """Return a trace of two operators and the file of an execution trace."""
    operators = [event("aten::mm", "cpu_op", 0, 5), event("aten::add", "cpu_op", 9, 5)]
    for number, operator in enumerate(operators, 7):
        operator["args"]["External id"] = number
    (tmp_path / "et.json").write_text(json.dumps({"schema": "1.0.1", "nodes": list(nodes)}))
    trace = Trace({0: write(tmp_path / "a.json", operators)})
    trace.parse_traces()
    return trace, str(tmp_path / "et.json")


def test_an_operator_has_the_node_of_its_id(tmp_path: Path) -> None:
    trace, path = both(tmp_path, node(70, "aten::mm", 7))
    et = load_execution_trace(path)
    assert et.nodes[70].op_schema == "aten::mm(Tensor self)"
    correlate_execution_trace(trace, 0, et)
    frame = trace.get_trace(0)
    assert frame["et_node"].tolist()[0] == 70
    assert frame["et_node"].isna().tolist() == [False, True]
    for column in ("et_node_name", "input_shapes"):
        add_et_column(frame, et, column)
    assert frame["input_shapes"].iloc[0] == [[2, 2]]
    assert frame["et_node_name"].isna().tolist() == [False, True]


def test_ids_of_another_run_are_refused(tmp_path: Path) -> None:
    trace, path = both(tmp_path, node(70, "aten::sum", 7), node(71, "aten::mul", 8))
    with pytest.raises(TraceError, match="not of this run"):
        correlate_execution_trace(trace, 0, load_execution_trace(path))


def test_unknown_columns_and_frames_without_nodes_are_refused(tmp_path: Path) -> None:
    _, path = both(tmp_path, node(70, "aten::mm", 7))
    et = load_execution_trace(path)
    with pytest.raises(SelectionError, match="choose one of"):
        add_et_column(pd.DataFrame({"et_node": [70]}), et, "duration")
    with pytest.raises(SelectionError, match="correlate_execution_trace"):
        add_et_column(pd.DataFrame(), et, "op_schema")


@pytest.mark.skipif(not ET.is_dir(), reason="the shared traces are not here")
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
def test_the_sample_of_htas_own_tests_links_every_operator_and_annotation() -> None:
    trace = Trace({0: str(ET / "benchmark_simple_add_trace.json.gz")})
    trace.load_traces()
    et = load_execution_trace(str(ET / "benchmark_simple_add_et.json.gz"))
    correlate_execution_trace(trace, 0, et)
    frame = trace.get_trace(0)
    symbols = trace.symbol_table.get_sym_id_map()
    linkable = frame["cat"].isin([symbols["cpu_op"], symbols["user_annotation"]])
    assert frame["et_node"].notna().tolist() == linkable.tolist()
    assert (
        frame["et_node"].dropna().map(lambda number: et.nodes[number].rf_id).tolist()
        == frame.loc[linkable, "external_id"].tolist()
    )
