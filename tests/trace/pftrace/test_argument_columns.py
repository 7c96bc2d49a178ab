"""Arguments as columns: types, and keys that differ from Kineto's."""

from __future__ import annotations

from pathlib import Path

from tests.trace.pftrace.made import host, issues_of, small, trace_of, work


def test_each_value_is_of_the_type_of_its_column(tmp_path: Path) -> None:
    args = {"Process Group Name": "0", "In msg nelems": "12", "Comms Id": 2**64 - 3, "Seq": 4.0, "dtype": "Float"}
    trace = trace_of(small(tmp_path / "a.pftrace", [work("ncclKernel", 1, 2, **args)]))
    events = trace.events
    assert trace.names[events.arg("pg_name")[0]] == "0"
    assert trace.names[events.arg("dtype")[0]] == "Float"
    assert (int(events.arg("in_msg_nelems")[0]), int(events.arg("seq")[0])) == (12, 4)
    assert int(events.arg("comms_id")[0]) == 2**64 - 3
    assert trace.issues == ()


def test_values_of_another_type_are_reported(tmp_path: Path) -> None:
    events = [host("aten::mm", 1, 2, **{"Sequence number": "soon", "External id": 2**64 - 1})]
    trace = trace_of(small(tmp_path / "a.pftrace", events))
    assert trace.events.arg("sequence_number").tolist() == [-1]
    assert issues_of(trace) == {"value_unreadable": 1, "value_out_of_range": 1}


def test_shapes_are_kept_for_communication_on_the_host_alone(tmp_path: Path) -> None:
    args = {"Input Dims": [[4, 2], []], "Input type": ["float", ""]}
    events = [host("aten::mm", 1, 2, **args), host("gloo:all_reduce", 4, 2, **args)]
    trace = trace_of(small(tmp_path / "a.pftrace", events))
    dims = trace.events.arg("input_dims").tolist()
    assert dims[0] == -1
    assert trace.names[dims[1]] == "[[4, 2], []]"
    without = trace_of(small(tmp_path / "b.pftrace", events[:1]))
    assert "input_dims" not in without.events.args


def test_a_key_of_another_category_is_no_argument(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace", [host("mine", 1, 2, stream=3)]))
    assert trace.events.arg("stream").tolist() == [-1]
