"""Whether the picture of a step shows the work of its ranks, and marks the cause of the first change."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from htagraph.core.intervals import clip, union
from htagraph.core.intervals import length as length_of
from htagraph.core.kinds import ActivityKind
from htagraph.findings.finding import Place
from htagraph.findings.results import Results
from htagraph.output.html.report import report_bytes
from htagraph.output.html.step_picture import step_picture
from tests.reach import DATASETS, REPOSITORY, graph_of

DEMO = graph_of(REPOSITORY / "data" / "demo")
_BAR = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" class="([a-z-]+)">')


def bars(picture: str, row: int, kind: str) -> list[tuple[float, float]]:
    """Return the begin and the width of the bars of a row."""
    found = _BAR.findall(picture)
    return [(float(left), float(width)) for left, top, width, name in found if name == kind and float(top) // 20 == row]


def test_without_a_place_nothing_is_drawn() -> None:
    assert step_picture(Results(DEMO), None) == ""


def test_the_bars_of_a_device_are_its_computation_in_the_step() -> None:
    acts = DEMO.activities
    kernel = int(np.flatnonzero((acts.kind == ActivityKind.COMPUTATION) & (acts.rank == 0) & (acts.step >= 0))[0])
    picture = str(step_picture(Results(DEMO), Place(kernel)))
    of_step = DEMO.step_spans.step == acts.step[kernel]
    begin = int(DEMO.time[DEMO.step_spans.start[of_step]].min())
    end = int(DEMO.time[DEMO.step_spans.end[of_step]].max())
    chosen = np.flatnonzero((acts.kind == ActivityKind.COMPUTATION) & (acts.rank == 0))
    busy = clip(union(DEMO.time[2 * chosen], DEMO.time[2 * chosen + 1]), begin, end)
    drawn = sum(width for _, width in bars(picture, 0, "c-computation"))
    pixels = 870 * length_of(busy) / (end - begin)
    assert pixels - 1 <= drawn <= pixels + 0.5 * len(busy[0])  # gaps of half a pixel are not seen


def test_the_place_is_framed_in_the_row_of_its_rank() -> None:
    acts = DEMO.activities
    kernel = int(np.flatnonzero((acts.kind == ActivityKind.COMPUTATION) & (acts.rank == 2) & (acts.step >= 0))[5])
    picture = str(step_picture(Results(DEMO), Place(kernel), "#here"))
    names = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert names == ["rank 0 device", "rank 1 device", "rank 2 device", "rank 2 host", "rank 3 device"]
    assert len(bars(picture, names.index("rank 2 device"), "cause")) == 1
    assert picture.count('class="cause"') == 1
    assert 'href="#here"' in picture


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_pages_begin_with_a_picture_of_a_step(path: Path) -> None:
    page = report_bytes(graph_of(path)).decode()
    head, _, _ = page.partition("</figure>")
    assert 'class="step"' in head
    assert page.index("<b>First: </b>") < page.index('class="step"')
