"""Drawn paths: rows and labels without overlap, ticks at round moments."""

from __future__ import annotations

import itertools
import re

import pytest

import htagraph as hg
from htagraph.output.export.path_drawing import COLORS, draw_path
from htagraph.queries.paths import CATEGORIES
from tests.reach import DATA, graph_of

_NODE = re.compile(
    r'^\t([a-z]+)(\d+) \[.* height=([\d.]+) .*pos="([\d.-]+),([\d.-]+)!".* width=([\d.]+)\]', re.MULTILINE
)


@pytest.mark.parametrize("job", ["demo", "gloo_ddp"])
@pytest.mark.parametrize("most", [1, 10, 40, 200])
def test_nothing_lies_over_anything_else(job: str, most: int) -> None:
    source = draw_path(hg.critical_path(graph_of(DATA / job)), most).source
    places = {}
    for kind, number, height, x, y, width in _NODE.findall(source):
        if kind != "tick":
            places[kind + number] = float(x), float(y), float(width), float(height)
    assert len(places) > most / 2
    for (one, a), (other, b) in itertools.combinations(places.items(), 2):
        apart = abs(a[0] - b[0]) >= (a[2] + b[2]) / 2 - 0.03 or abs(a[1] - b[1]) >= (a[3] + b[3]) / 2 - 0.03
        assert apart, (one, other)


def test_every_category_has_a_color() -> None:
    assert COLORS.keys() == set(CATEGORIES)
    assert len(set(COLORS.values())) == len(COLORS)


def test_ticks_are_where_their_moments_are() -> None:
    source = draw_path(hg.critical_path(graph_of(DATA / "demo")), 40).source
    ticks = re.findall(r'tick\d+ \[label="([\d.]+) ms".*pos="([\d.]+),', source)
    assert [label for label, _ in ticks] == ["0", "5", "10", "15", "20", "25"]
    steps = [float(b) - float(a) for (_, a), (_, b) in itertools.pairwise(ticks)]
    assert max(steps) - min(steps) < 0.001
