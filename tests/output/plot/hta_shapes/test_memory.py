"""Whether memory over time is drawn in GiB and ms."""

from __future__ import annotations

import pandas as pd

from htagraph.output.plot.hta_shapes.memory import memory_categories, memory_timeline
from htagraph.trace.profiler_files.memory_timeline import CATEGORIES

GIB = 1024**3


def test_categories_are_stacked_areas_in_gib() -> None:
    columns = {f"{category}_bytes": [number * GIB] for number, category in enumerate(CATEGORIES)}
    areas = memory_categories(pd.DataFrame({"time_us": [2000.0], **columns})).data
    assert [list(area.y) for area in areas] == [[number] for number in range(len(CATEGORIES))]
    assert {tuple(area.x) for area in areas} == {(2.0,)}
    assert {area.stackgroup for area in areas} == {"memory"}


def test_a_device_has_a_line_for_memory_in_use_and_one_for_reserved() -> None:
    rows = {"rank": [0], "device": ["cuda:0"], "name": ["aten::mm"], "time_us": [1000.0]}
    table = pd.DataFrame(rows | {"allocated_bytes": [GIB], "reserved_bytes": [2 * GIB]})
    lines = memory_timeline(table).data
    assert [(line.name, list(line.y)) for line in lines] == [
        ("rank 0 cuda:0 allocated", [1.0]), ("rank 0 cuda:0 reserved", [2.0]),
    ]  # fmt: skip
