"""Own time of activities as a difference compares it, on a job whose answer is obvious."""

from __future__ import annotations

from htagraph.analyses.differences.compared_parts import parts_of
from htagraph.analyses.differences.own_work import OwnWork
from tests.strategies import load, op


def test_own_time_is_that_of_no_other_operator() -> None:
    graph = load([op("outer", 0, 100), op("inner", 20, 30)])
    own = OwnWork.of(parts_of(graph, graph, None, None, None)[0])
    names = [graph.names[graph.activities.name[i]] for i in own.whose.tolist()]
    total = dict.fromkeys(names, 0.0)
    for name, time in zip(names, own.shown.tolist(), strict=True):
        total[name] += time / 1000
    assert total == {"outer": 70, "inner": 30}
    assert not own.before.any()
