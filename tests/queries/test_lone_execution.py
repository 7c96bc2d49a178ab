"""Single executions that take most of the time of their name, against the definition in plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import ActivityKind, GapKind
from htagraph.queries.lone_execution import lone_executions
from tests.reach import DATASETS, graph_of, label


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_the_executions_are_those_of_the_definition(path: Path) -> None:
    graph = graph_of(path)
    acts = graph.activities
    parts = hg.critical_path(graph).segments
    least_ns = 0.002 * (int(graph.time.max()) - graph.origin_ns)
    on_path = dict.fromkeys(range(len(acts)), 0)
    for activity, length, gap in zip(parts.activity.tolist(), parts.length.tolist(), parts.gap.tolist(), strict=True):
        if gap == GapKind.NONE and activity >= 0:
            on_path[activity] += length
    own = np.where(acts.on_device, acts.duration, graph.own_time).tolist()
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, key in enumerate(zip(acts.rank.tolist(), acts.name.tolist(), acts.kind.tolist(), strict=True)):
        alike.setdefault(key, []).append(row)
    expected = {
        row
        for (_, name, kind), rows in alike.items()
        for row in rows
        if kind in (ActivityKind.OP, ActivityKind.COMPUTATION) and "DataLoader" not in graph.names[name]
        if on_path[row] >= least_ns and len(rows) >= 3 and 2 * own[row] >= sum(own[other] for other in rows)
    }
    nothing = np.zeros(len(acts), np.bool_)
    assert {found.activity for found in lone_executions(graph, parts, least_ns, nothing)} == expected


def test_what_is_left_out_is_not_named() -> None:
    graph = graph_of(DATASETS[0])
    everything = np.ones(len(graph.activities), np.bool_)
    assert lone_executions(graph, hg.critical_path(graph).segments, 0.0, everything) == []
