"""A file as a Trace, as models, and one event of it again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import TraceError
from htagraph.trace.columns import Events
from htagraph.trace.kineto import read as reading
from htagraph.trace.kineto.events import CpuOp, Kernel, Metadata, RecordWindowEnd
from htagraph.trace.kineto.read import UNPADDED, event, metadata, read_event, read_events, survey
from tests import strategies
from tests.damage import (
    BASE_NS,
    END,
    Json,
    call,
    document,
    header,
    healthy,
    issues,
    kernel,
    kineto_text,
    loaded,
    op,
    read,
    written,
)
from tests.reach import REAL, REPOSITORY, SHARED, label, raw_events


def test_a_healthy_file_has_no_issues(tmp_path: Path) -> None:
    trace = loaded(tmp_path, kineto_text(healthy()))
    assert trace.issues == ()
    assert trace.counts == {"M": 1, "X": 18, "s": 1, "f": 1, "i": 2}
    assert len(trace.instants) == 1


def test_times_are_placed_on_the_epoch(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document([op(1), END]))
    assert (trace.events.start.tolist(), trace.events.end.tolist()) == ([BASE_NS + 100_000], [BASE_NS + 130_000])


def test_columns_are_read_only(tmp_path: Path) -> None:
    events = loaded(tmp_path, document(healthy())).events
    arrays = [getattr(events, each.name) for each in dataclasses.fields(Events) if each.name != "args"]
    assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize("block", [1, 5])
def test_models_come_in_the_order_of_the_file(block: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json.gz", kineto_text(healthy(block)))
    models = list(read_events(path))
    assert [type(each) for each in (models[0], models[1], models[3], models[-1])] == [
        Metadata,
        CpuOp,
        Kernel,
        RecordWindowEnd,
    ]
    assert [read_event(path, number) for number in range(len(models))] == models


def test_an_event_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document([op(1)]))
    with pytest.raises(TraceError, match=r"a\.json: has no event 1"):
        read_event(path, 1)


def test_an_event_that_does_not_fit_its_model_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document([op(1), kernel(2, args={"grid": "wide"})]))
    with pytest.raises(TraceError, match=r"a\.json: event 1: args\.grid: .*'wide'"):
        list(read_events(path))


@pytest.mark.parametrize("and_tail", [True, False])
def test_the_header_is_read_without_the_events(and_tail: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = written(tmp_path / "a.json.gz", document(healthy(), rank=4))
    assert survey(path, and_tail=and_tail).rank == 4


def test_an_outlier_at_zero_is_dropped_and_counted(tmp_path: Path) -> None:
    made = [op(i, ts=1_711_000_000_000_000 + i) for i in range(1, 9)]
    trace = loaded(tmp_path, document([*made, op(9, ts=0), op(9, ts=0.001), END]))
    assert len(trace.events) == len(made)
    assert np.diff(trace.events.start).tolist() == [1000] * (len(made) - 1)
    assert issues(trace) == {"time_outlier": 2}


def test_steps_that_are_minutes_apart_are_no_outliers(tmp_path: Path) -> None:
    made = [op(i, ts=i * 60e6) for i in range(60)]
    assert not issues(loaded(tmp_path, document([*made, END])))


@pytest.mark.parametrize(
    ("events", "keys", "what"),
    [([op(1)], {}, "no_window_end"), ([op(1), END], {"baseTimeNanoseconds": None}, "no_base_time")],
)
def test_what_a_trace_lacks_is_said(events: list[Json], keys: Json, what: str, tmp_path: Path) -> None:
    assert [issue.what for issue in loaded(tmp_path, kineto_text(events, **keys)).issues] == [what]


def test_ids_that_several_processes_use_are_nobodys_fault_yet(tmp_path: Path) -> None:
    merged = [call(number, pid=pid) for pid in (1001, 1002) for number in range(1, 6)]
    path = written(tmp_path / "a.json", document([*merged, END]))
    assert not issues(read(path))
    assert [issue.what for issue in hg.load(path).issues] == ["correlation_repeated"]  # once


def test_a_damaged_file_warns_once_its_events_have_come(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", kineto_text([op(1), op(2), op(3)])[:-150])
    events = read_events(path)
    assert [next(events).ph, next(events).ph] == ["X", "X"]
    with pytest.warns(UserWarning, match=r"a\.json: .*the file ends early; .*\(1\)"):
        list(events)


def test_one_event_of_a_damaged_file_comes_without_a_warning(tmp_path: Path) -> None:
    text = kineto_text([op(1), op(2), op(3)])[:-150].replace('"aten::mm"', '"a"mm"', 1)
    path = written(tmp_path / "a.json", text)
    assert [read_event(path, number).name for number in (0, 1)] == ['a"mm', "aten::mm"]


def test_one_event_is_repaired_where_only_the_bulk_reader_could_skip_the_damage(tmp_path: Path) -> None:
    text = document([op(1, args={"Backend": "a?b"}), op(2), END]).encode().replace(b"a?b", b"a\xffb")
    path = written(tmp_path / "a.json", text)
    assert len(read(path).events) == 2
    assert read_event(path, 0).args.model_dump()["backend"] == "a\ufffdb"
    assert read_event(path, 1).args.model_dump()["backend"] is None


@pytest.mark.parametrize("quote", ["", '"'])
def test_an_event_of_march_2024_needs_the_style_of_its_file(quote: str, tmp_path: Path) -> None:
    made = kineto_text([op(i, ts=f"TS{i}", dur="DUR") for i in range(3)], baseTimeNanoseconds=None)
    for i, fraction in enumerate(("120", "5", "37")):
        made = made.replace(f'"TS{i}"', f"{quote}1711900000000012.{fraction}{quote}")
    trace = loaded(tmp_path, made.replace('"DUR"', "7"))
    assert trace.bookmarks[UNPADDED].all()
    events = [event(trace, i) for i in range(3)]
    assert [event.ts_ns for event in events] == trace.events.start.tolist()
    assert [event.dur_ns for event in events] == [7000, 7000, 7000]
    assert [str(event.ts) for event in read_events(trace.path)][1] == "1711900000000012.5"  # as its docstring says


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document(healthy()))
    assert trace.unchanged_path() == trace.path
    written(Path(trace.path), document(healthy(1)))
    with pytest.raises(TraceError, match="was changed since it was loaded"):
        trace.unchanged_path()
    Path(trace.path).unlink()
    with pytest.raises(TraceError, match="cannot be read again"):
        trace.unchanged_path()


def test_both_texts_of_a_header_are_one_header(tmp_path: Path) -> None:
    facts = loaded(tmp_path, document(healthy())).facts
    again = loaded(tmp_path, kineto_text(healthy())).facts
    assert (facts, metadata(facts)) == (again, metadata(again))
    assert facts.base_ns == header()["baseTimeNanoseconds"]


def test_a_header_may_have_the_name_of_the_field(tmp_path: Path) -> None:
    given: dict[str, Any] = {"distributed_info": {"rank": 0, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}}
    assert loaded(tmp_path, kineto_text(healthy(), distributedInfo=[], **given)).facts.groups


def test_reading_again_gives_the_same_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document(healthy()))
    one, two = read(path).events, read(path).events
    assert all(
        (getattr(one, name) == getattr(two, name)).all() for name in ("index", "name", "lane", "start", "duration")
    )


HTA_VIOLATIONS = {
    "hta/small/mi250_minitoy_train_ROCm6_2_kineto": {"stream"},
    "tracelens/h100_qwen": {"Python parent id"},
    "tracelens/mi300_resnet_act_checkpoint": {"Python parent id", "bytes"},
    "tracelens/mi300_vllm_decode_graphs": {"bytes"},
}
"""The type violations that HTA 0.6.1's validate_trace_format(path, "complete") finds in the traces in reach."""


def checked(events: list[Json], folder: Path) -> dict[str, dict[str, Any]]:
    table = hg.check_arguments(strategies.write(events, folder / "rank-0.json"))
    rows: list[Any] = table.to_dict("records")
    return {f"{row['category']} {row['argument']}": row for row in rows}


def test_values_of_another_type_are_counted_with_an_example(tmp_path: Path) -> None:
    events = [
        strategies.kernel("k", 0, 1, 7),
        {**strategies.kernel("k", 2, 1), "args": {"stream": "0x7", "device": None, "mine": 1}},
        {**strategies.kernel("k", 4, 1), "args": {"stream": "seven"}},
        {**strategies.kernel("k", 5, 1), "args": {"stream": [1]}},
    ]  # fmt: skip
    rows = checked(events, tmp_path)
    stream = rows["kernel stream"]
    assert (stream["events"], stream["converted"], stream["wrong"], stream["example"]) == (4, 1, 2, "'seven'")
    assert (rows["kernel device"]["converted"], rows["kernel device"]["wrong"]) == (1, 0)
    assert (rows["kernel mine"]["known"], rows["kernel mine"]["events"]) == (False, 1)
    assert rows["kernel stream"]["known"]


def test_categories_of_old_are_named_as_today(tmp_path: Path) -> None:
    old = {**strategies.op("aten::mm", 0, 1, **{"Sequence number": 3}), "cat": "Operator"}
    assert checked([old], tmp_path)["cpu_op Sequence number"]["known"]


def test_what_has_no_category_is_named_by_its_phase(tmp_path: Path) -> None:
    row = checked([{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}], tmp_path)
    assert list(row) == ["phase M name"]


def test_a_file_without_arguments_has_an_empty_table(tmp_path: Path) -> None:
    none = hg.check_arguments(strategies.write([strategies.op("a", 0, 1)], tmp_path / "a.json"))
    some = hg.check_arguments(strategies.write([strategies.op("a", 0, 1, mine=2)], tmp_path / "b.json"))
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


@pytest.mark.parametrize(("size", "large"), [(0, False), ((1 << 20) - 1, False), (1 << 20, True)])
def test_compiled_code_is_loaded_for_files_of_a_mebibyte(tmp_path: Path, size: int, *, large: bool) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b" " * size)
    assert (reading._scan(path) is not None) is large
