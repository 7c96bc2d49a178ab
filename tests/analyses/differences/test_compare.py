"""What occurs in two jobs how often and how long: against a count by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.core.naming import short_name, stable_name
from tests.strategies import COMPUTE, kernel, launch, load, op, step, traces

ADDED = ("boundary", "join")


@pytest.mark.slow
@settings(max_examples=15)
@given(traces(), traces())
def test_counts_and_times_are_those_of_the_activities(first: Any, second: Any) -> None:
    graphs = load(first), load(second)
    in_steps = all(graph.steps for graph in graphs)
    table = hg.compare(*graphs)
    for graph, side in zip(graphs, ("before", "after"), strict=True):
        count, time = Counter[tuple[str, bool]](), Counter[tuple[str, bool]]()
        acts = graph.activities
        for i in range(len(acts)):
            if hg.ActivityKind(acts.kind[i]).label in ADDED or (in_steps and acts.step[i] < 0):
                continue
            name = graph.names[acts.name[i]]
            key = (stable_name(name), bool(acts.on_device[i]))
            count[key] += 1
            time[key] += int(acts.duration[i])
        keys = list(zip(table["name"], table["on_device"], strict=True))
        assert {key: n for key, n in zip(keys, table[f"{side}_count"], strict=True) if n} == dict(count)
        assert [round(us * 1000) for us in table[f"{side}_us"]] == [time[key] for key in keys]
    assert (table["change_count"] == table["after_count"] - table["before_count"]).all()


def one(*names: str, steps: int = 1) -> list[Any]:
    events = []
    for number in range(steps):
        at = 200 * number
        events.append(step(number, at, 190))
        for i, name in enumerate(names):
            events += [op(name, at + 2 + 10 * i, 8), launch(at + 3 + 10 * i, 2, 100 * number + i + 1)]
            events.append(kernel(COMPUTE, at + 6 + 10 * i, 3, 100 * number + i + 1))
    return events


def counts(table: pd.DataFrame, name: str) -> list[Any]:
    return [table[column][name] for column in ("before_count", "after_count", "change")]


def test_jobs_of_different_length_are_compared_per_rank_and_step() -> None:
    short, long = load(one("a", "b", "b")), load({0: one("a", "b", "c", steps=2), 1: one("a", "b", "c", steps=2)})
    table = hg.compare(short, long).set_index("name")
    assert counts(table, "a") == [1, 4, "same"]
    assert counts(table, "b") == [2, 4, "fewer"]
    assert counts(table, "c") == [0, 4, "added"]
    assert hg.compare(long, short).set_index("name").loc["c", "change"] == "removed"
    assert table.loc["a", "after_per_step_us"] == 8


def test_names_can_be_short_or_whole_paths() -> None:
    graph = load(one("a", "b"))
    assert set(hg.compare(graph, graph, by="path", device="device")["name"]) == {f"{o} > {COMPUTE}" for o in "ab"}
    templates = load([kernel("void f<1>(int)", 0, 5), kernel("void f<2>(int)", 10, 5)])
    assert hg.compare(templates, templates, by="short_name")["name"].tolist() == [short_name("void f<1>(int)")]
    assert len(hg.compare(templates, templates)) == 2


def test_sides_are_apart() -> None:
    graph = load(one("a"))
    host, device = (set(hg.compare(graph, graph, device=side)["name"]) for side in ("host", "device"))
    assert (host & device, device) == (set(), {COMPUTE})


def test_steps_and_ranks_are_chosen() -> None:
    graph = load({0: one("a", steps=3), 1: one("b", steps=3)})
    table = hg.compare(graph, graph, steps=0, steps_after=[1, 2], ranks=0).set_index("name")
    assert counts(table, "a") == [1, 2, "same"]
    assert "b" not in table.index


def test_nonsense_is_refused() -> None:
    graph = load(one("a"))
    with pytest.raises(ValueError, match="choose one of 'name', 'short_name', 'path'"):
        hg.compare(graph, graph, by="colour")  # type: ignore[arg-type]
    with pytest.raises(hg.SelectionError, match="step 7"):
        hg.compare(graph, graph, steps=7)


@pytest.mark.slow
@pytest.mark.parametrize("events", [[], [kernel(COMPUTE, 0, 0)], [op("a", 2, 20)]])
def test_columns_are_the_same_on_every_kind_of_job(events: list[Any]) -> None:
    full = hg.compare(load(one("a")), load(one("b")))
    for by in ("name", "short_name", "path"):
        table = hg.compare(load(events), load(one("a")), by=by)
        assert table.dtypes.to_dict() == full.dtypes.to_dict()
        assert hg.compare(load({0: []}), load({0: []}), by=by).dtypes.to_dict() == full.dtypes.to_dict()
