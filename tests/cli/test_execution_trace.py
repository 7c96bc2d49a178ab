"""``htagraph execution-trace``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command_line import one_line_of_error
from tests.strategies import op, write

NODE = {
    "id": 5, "name": "aten::mm", "rf_id": 3, "parent": 1, "op_schema": "aten::mm(Tensor self)",
    "input_shapes": [[2, 2]], "input_types": ["Tensor(float)"], "output_shapes": [], "output_types": [],
}  # fmt: skip


def written(path: Path) -> Path:
    path.write_text(json.dumps({"schema": "1.0.1", "nodes": [NODE, NODE | {"id": 6, "rf_id": 4}]}), encoding="utf-8")
    return path


def test_nodes_are_counted_by_name(run: Any, tmp_path: Path) -> None:
    found = json.loads(run("execution-trace", written(tmp_path / "et.json"), "-f", "json").out)["results"]
    assert found["names"] == [{"name": "aten::mm", "nodes": 2, "op_schema": "aten::mm(Tensor self)"}]
    assert found["nodes"][0]["input_shapes"] == [[2, 2]]
    assert found["conclusions"][0] == "2 nodes of 1 name; 2 are operators with a schema, 2 have input shapes."


def test_a_trace_of_another_run_has_no_nodes(run: Any, tmp_path: Path) -> None:
    trace = write([op("aten::add", 0, 5)], tmp_path / "rank-0.json")
    ran = run("execution-trace", written(tmp_path / "et.json"), trace, "-f", "json")
    assert json.loads(ran.out)["results"]["links"] == []
    assert "No activity of the trace has a node" in json.loads(ran.out)["results"]["conclusions"][1]


def test_what_is_no_execution_trace_is_one_line(run: Any, tmp_path: Path) -> None:
    one_line_of_error(run("execution-trace", write([op("a", 0, 5)], tmp_path / "t.json")), "not an execution trace")
