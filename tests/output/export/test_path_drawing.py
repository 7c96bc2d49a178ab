"""Drawn paths: rows and labels without overlap, ticks at round moments."""

from __future__ import annotations

import itertools
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.output.export.path_drawing import (
    COLORS,
    dot_text,
    draw_path,
    fold_path,
    hops_between,
    one_line,
    rows_of,
    text_width,
)
from htagraph.queries.paths import CATEGORIES
from tests.reach import DATA, JOBS, LARGE_BYTES, graph_of, label
from tests.strategies import COMPUTE, kernel, launch, load

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


SMALL = [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES]


@pytest.mark.parametrize("path", SMALL, ids=label)
def test_boxes_tile_the_path(path: Path) -> None:
    critical = hg.critical_path(graph_of(path))
    for most in (1, 7, 40):
        check_boxes(critical, most)


def check_boxes(critical: hg.CriticalPath, most: int) -> None:
    boxes = fold_path(critical, most)
    assert 0 < len(boxes) <= most
    assert sum(box.length_ns for box in boxes) == critical.makespan_ns
    assert [box.first for box in boxes[1:]] == [box.end for box in boxes[:-1]]
    assert (boxes[0].first, boxes[-1].end) == (0, len(critical.segments))
    for box in boxes:
        assert sum(box.categories.values()) == sum(box.ranks.values()) == box.length_ns
        assert box.category == max(box.categories, key=lambda word: box.categories[word])
        assert box.start_ns == critical.segments.start[box.first]


def test_with_room_for_all_a_box_is_of_one_row_and_category_and_long_segments_stand_alone() -> None:
    path = hg.critical_path(graph_of(DATA / "gloo_ddp"))
    boxes, parts, rows = fold_path(path, len(path.segments)), path.segments, rows_of(path)
    long = parts.length >= path.makespan_ns / 100
    assert long.any()
    for box in boxes:
        some = slice(box.first, box.end)
        assert len(np.unique(rows[some])) == len(np.unique(parts.category[some])) == 1
        assert box.segments == 1 or not long[some].any()
        assert CATEGORIES[parts.category[box.first]] == box.category
    for one, other in pairwise(boxes):  # nothing that belongs together is apart
        alike = (one.row, one.category) == (other.row, other.category)
        assert not alike or long[one.first] or long[other.first]


def test_the_shortest_join_first_and_rather_their_own_category() -> None:
    work = [kernel(COMPUTE, 10, 400, 1), kernel("Memcpy DtoD", 410, 3, 2), kernel("b", 413, 400, 3)]
    graph = load([*(launch(i, 1, i + 1) for i in range(3)), *work])
    boxes = fold_path(hg.critical_path(graph), 3)
    assert [box.length_ns for box in boxes if box.category == "computation"][-1] >= 400_000
    assert {box.name for box in boxes} >= {COMPUTE, "b"}
    assert all(box.category != "memory" for box in boxes)


def test_hops_say_who_waited_how_long() -> None:
    path = hg.critical_path(graph_of(DATA / "gloo_ddp"))
    boxes = fold_path(path, 40)
    found, table = hops_between(path, boxes), path.hops()
    assert found
    waited = (table["waited_us"] * 1000).round().astype(int).tolist()
    said = set(zip(*(table[name].tolist() for name in ("from_rank", "to_rank", "edge")), waited, strict=True))
    for number, hop in found.items():
        assert (hop.from_rank, hop.to_rank, hop.edge, hop.waited_ns) in said
        assert boxes[number].ranks.get(hop.to_rank)


def test_an_empty_path_has_no_boxes() -> None:
    assert fold_path(hg.critical_path(load([])), 5) == []


def test_labels_escape_what_graphviz_would_read() -> None:
    assert dot_text("a\\Nb") == "a\\\\Nb"
    assert dot_text("&lt;\n") == "&amp;lt;\\n"
    assert one_line("a\r\n\tb\x00") == "a b "


def test_the_longest_line_counts() -> None:
    assert text_width("a\nabc\nab", 10) == text_width("abc", 10) == 3 * text_width("a", 10)


def test_characters_that_command_a_terminal_or_end_a_line_are_blanks() -> None:
    assert one_line("a\x1b[31m\x9b31mb\u2028c\nd") == "a [31m 31mb c d"
    assert one_line("a\u202e\u2066b\u200fc  d") == "a b c  d"
