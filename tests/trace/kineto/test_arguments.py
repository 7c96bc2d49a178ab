"""Arguments by category: what is known, and which values are of another type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.reach import REAL, REPOSITORY, SHARED, label, raw_events
from tests.strategies import Json, kernel, op, write

HTA_VIOLATIONS = {
    "hta/small/mi250_minitoy_train_ROCm6_2_kineto": {"stream"},
    "tracelens/h100_qwen": {"Python parent id"},
    "tracelens/mi300_resnet_act_checkpoint": {"Python parent id", "bytes"},
    "tracelens/mi300_vllm_decode_graphs": {"bytes"},
}
"""The type violations that HTA 0.6.1's validate_trace_format(path, "complete") finds in the traces in reach."""


def checked(events: list[Json], folder: Path) -> dict[str, dict[str, Any]]:
    table = hg.check_arguments(write(events, folder / "rank-0.json"))
    rows: list[Any] = table.to_dict("records")
    return {f"{row['category']} {row['argument']}": row for row in rows}


def test_values_of_another_type_are_counted_with_an_example(tmp_path: Path) -> None:
    events = [
        kernel("k", 0, 1, 7), {**kernel("k", 2, 1), "args": {"stream": "0x7", "device": None, "mine": 1}},
        {**kernel("k", 4, 1), "args": {"stream": "seven"}}, {**kernel("k", 5, 1), "args": {"stream": [1]}},
    ]  # fmt: skip
    rows = checked(events, tmp_path)
    stream = rows["kernel stream"]
    assert (stream["events"], stream["converted"], stream["wrong"], stream["example"]) == (4, 1, 2, "'seven'")
    assert (rows["kernel device"]["converted"], rows["kernel device"]["wrong"]) == (1, 0)
    assert (rows["kernel mine"]["known"], rows["kernel mine"]["events"]) == (False, 1)
    assert rows["kernel stream"]["known"]


def test_categories_of_old_are_named_as_today(tmp_path: Path) -> None:
    old = {**op("aten::mm", 0, 1, **{"Sequence number": 3}), "cat": "Operator"}
    assert checked([old], tmp_path)["cpu_op Sequence number"]["known"]


def test_what_has_no_category_is_named_by_its_phase(tmp_path: Path) -> None:
    row = checked([{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}], tmp_path)
    assert list(row) == ["phase M name"]


def test_a_file_without_arguments_has_an_empty_table(tmp_path: Path) -> None:
    none = hg.check_arguments(write([op("a", 0, 1)], tmp_path / "a.json"))
    some = hg.check_arguments(write([op("a", 0, 1, mine=2)], tmp_path / "b.json"))
    assert len(none) == 0
    assert none.dtypes.to_dict() == some.dtypes.to_dict()


@pytest.mark.parametrize("path", [path for path in REAL if path.stat().st_size < 400_000], ids=label)
def test_every_argument_of_a_real_file_is_counted_and_none_is_wrong(path: Path) -> None:
    table = hg.check_arguments(path)
    assert table["events"].sum() == sum(len(event.get("args") or {}) for event in raw_events(path))
    assert table["wrong"].sum() == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("name", HTA_VIOLATIONS)
def test_what_hta_calls_a_violation_is_converted(name: str) -> None:
    table = hg.check_arguments(SHARED / f"{name}.json.gz")
    assert HTA_VIOLATIONS[name] <= set(table.loc[table["converted"] > 0, "argument"])


def test_validate_checks_them_where_asked(run: Any) -> None:
    demo = REPOSITORY / "data" / "demo"
    assert hg.validate(demo).arguments is None
    table = hg.validate(demo, arguments=True).arguments
    assert table is not None
    assert sorted(set(table["rank"])) == [0, 1, 2, 3]
    assert list(table.columns[1:]) == list(hg.check_arguments(demo / "rank-0.json.gz").columns)
    assert "Event arguments" in run("validate", demo, "--arguments").out
    assert "Event arguments" not in run("validate", demo).out
