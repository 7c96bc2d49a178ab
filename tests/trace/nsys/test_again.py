"""Rows of an export read again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import htagraph as hg
from htagraph.trace.nsys.again import category_arguments, check_arguments
from tests.trace.nsys.made import KERNELS, small


def test_rows_are_read_again_with_the_keys_of_all_formats(tmp_path: Path) -> None:
    path = small(tmp_path / "report.sqlite")
    table = category_arguments(path, "kernel")
    assert table["grid"].tolist() == [[8, 2, 1]] * 2
    assert table["shortName"].notna().all()  # columns without a key keep their names
    assert len(category_arguments(path)) == 14
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE {KERNELS} SET streamId = 'seven' WHERE rowid = 2")
    database.close()
    whole = hg.load(path)
    event = whole.event(int(whole.select(kind="op").activities[1]))
    assert (event.name, event.cat, event.tid, event.ts_ns, event.dur_ns) == (
        "aten::mm",
        "cpu_op",
        152,
        1_010_000,
        80_000,
    )
    written = hg.critical_path(whole).to_perfetto(tmp_path / "path.json")  # activities, as no events can be copied
    assert written.slices > len(whole.select(kind="device").activities)
    checked = check_arguments(path).set_index(["category", "argument"])
    rows = checked.reset_index()
    row = rows[(rows["category"] == "kernel") & (rows["argument"] == "streamId")]
    assert row[["events", "wrong", "example"]].to_numpy().tolist() == [[2, 1, "'seven'"]]
    assert checked["wrong"].sum() == 1
    assert hg.validate(path, arguments=True).usable
