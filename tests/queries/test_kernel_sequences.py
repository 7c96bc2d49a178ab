"""Sequences of device work below operators, against their definition in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph import ActivityKind, DependencyGraph
from htagraph.queries.kernel_sequences import containing, named, numbered, sequences_below, work_below
from tests.graph import slow_tree
from tests.strategies import COMPUTE, COPY, Json, jobs, kernel, launch, load, op

FRAMES = {ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON}


def work_of(graph: DependencyGraph) -> list[int]:
    acts = graph.activities
    return [row for row in range(len(acts)) if acts.on_device[row] and acts.kind[row] != ActivityKind.DEVICE_OTHER]


def name_of(graph: DependencyGraph, row: int) -> str:
    return graph.names[graph.activities.name[row]]


@pytest.mark.slow
@given(jobs(), st.data())
@settings(max_examples=20)
def test_work_belongs_to_the_innermost_of_some_activities_above_it(
    job: dict[int, list[Json]], data: st.DataObject
) -> None:
    graph = load(job)
    ancestors = slow_tree.ancestors(graph)
    roots = data.draw(st.sets(st.integers(0, len(graph.activities) - 1))) if len(graph.activities) else set()
    expected = [
        (row, next(each for each in (row, *ancestors[row]) if each in roots))
        for row in work_of(graph)
        if roots & {row, *ancestors[row]}
    ]
    work, owner = work_below(graph, graph.tree.parent, np.array(sorted(roots), np.int64))
    assert list(zip(work.tolist(), owner.tolist(), strict=True)) == expected


@pytest.mark.slow
@given(jobs(), st.integers(1, 3))
@settings(max_examples=20)
def test_a_sequence_is_the_work_below_an_operator_in_the_order_of_starts(
    job: dict[int, list[Json]], min_length: int
) -> None:
    graph = load(job)
    acts, ancestors = graph.activities, slow_tree.ancestors(graph)
    root = graph.tree.outermost(containing(graph, "aten::"))
    below = {
        each: sorted((row for row in work_of(graph) if each in ancestors[row]), key=lambda row: (acts.start[row], row))
        for each in root.tolist()
    }
    below = {each: rows for each, rows in below.items() if len(rows) >= min_length}
    sequences = sequences_below(graph, root, graph.tree.parent, min_length)
    assert sequences.root.tolist() == list(below)
    assert sequences.work.tolist() == [row for rows in below.values() for row in rows]
    assert sequences.occurrence.tolist() == [i for i, rows in enumerate(below.values()) for _ in rows]
    keys = [
        (int(acts.rank[each]), name_of(graph, each), *(name_of(graph, row) for row in rows))
        for each, rows in below.items()
    ]
    same = [[one == other for other in keys] for one in keys]
    assert (sequences.pattern[:, None] == sequences.pattern[None, :]).tolist() == same
    table = sequences.to_frame()
    assert table["count"].tolist() == [keys.count(key) for key in dict.fromkeys(keys)]
    assert table["pattern"].tolist() == ["|".join(map(str, key[1:])) for key in dict.fromkeys(keys)]
    of = dict(zip(below, sequences.pattern.tolist(), strict=True))
    members = [next((of[each] for each in (row, *ancestors[row]) if each in of), -1) for row in range(len(acts))]
    assert sequences.members().tolist() == members


@pytest.mark.slow
@given(jobs())
@settings(max_examples=25)
def test_a_text_is_looked_for_in_the_names_of_operators_annotations_steps_and_frames(
    job: dict[int, list[Json]],
) -> None:
    graph = load(job)
    kinds = graph.activities.kind
    of_frames = [kinds[row] in FRAMES for row in range(len(graph.activities))]
    expected = [is_frame and "m" in name_of(graph, row) for row, is_frame in enumerate(of_frames)]
    assert containing(graph, "m").tolist() == expected
    assert named(graph, lambda _: True).tolist() == of_frames


def test_a_glob_is_of_the_whole_name() -> None:
    graph = load([op("aten::mm", 0, 5), op("aten::mm_out", 10, 5), op("[memory]", 20, 5)])
    for text, expected in (("aten::*mm", [0]), ("mm", [0, 1]), ("*::mm*", [0, 1]), ("[memory]", [2]), ("a?en", [])):
        assert np.flatnonzero(containing(graph, text)).tolist() == expected


def test_numbers_are_given_in_the_order_of_occurrences() -> None:
    events: list[Json] = []
    for i, name in enumerate((COMPUTE, COPY, COMPUTE)):
        events += [op("a", 20 * i, 9), launch(20 * i + 1, 1, i + 1), kernel(name, 20 * i + 5, 2, i + 1)]
    graph = load(events)
    work, owner = work_below(graph, graph.tree.parent, roots := np.flatnonzero(containing(graph, "a")))
    assert numbered(graph, roots, work, np.searchsorted(roots, owner)).tolist() == [0, 1, 0]


@pytest.mark.parametrize("text", [None, 3])
def test_an_operator_that_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(TypeError, match="give a text in the name"):
        containing(load([op("a", 0, 5)]), text)


def test_a_length_that_is_no_whole_number_is_refused() -> None:
    graph = load([op("a", 0, 5)])
    length: Any = 1.5
    with pytest.raises(TypeError, match="give a whole number"):
        sequences_below(graph, np.array([0]), graph.tree.parent, length)
