"""Execution traces as columns of a frame."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from htagraph.core.errors import SelectionError, TraceError
from htagraph.hta.common.execution_trace import add_et_column, correlate_execution_trace, load_execution_trace
from htagraph.hta.common.trace import Trace
from tests.hta.shapes.test_job import event, write
from tests.reach import SHARED

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
