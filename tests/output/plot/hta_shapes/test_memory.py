"""Whether memory by category is drawn in GiB."""

from __future__ import annotations

import pandas as pd

from htagraph.output.plot.hta_shapes.memory import memory_categories
from htagraph.trace.profiler_files.memory_timeline import CATEGORIES

GIB = 1024**3


def test_categories_are_stacked_areas_in_gib() -> None:
    columns = {f"{category}_bytes": [number * GIB] for number, category in enumerate(CATEGORIES)}
    areas = memory_categories(pd.DataFrame({"time_us": [2000.0], **columns})).data
    assert [list(area.y) for area in areas] == [[number] for number in range(len(CATEGORIES))]
    assert {tuple(area.x) for area in areas} == {(2.0,)}
    assert {area.stackgroup for area in areas} == {"memory"}
