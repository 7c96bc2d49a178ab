"""Whether each list of changes has one order, and each advice names a command that answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.analyses.roofline import roofline
from htagraph.findings.bound import BOUND
from htagraph.findings.changes import ProposedChange, changes_of
from htagraph.findings.head import RecordingExtent, head_of
from htagraph.findings.next_change import next_change_of
from htagraph.findings.plan import plan_of
from htagraph.findings.results import Results
from htagraph.findings.straggler import STRAGGLER
from htagraph.findings.verdict import claims_of, stated
from htagraph.findings.whereabouts import changed_by
from tests.reach import DATASETS, graph_of, label

_COMMAND = re.compile(r"htagraph ([a-z-]+)")


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_rows_are_in_the_order_of_their_heading(path: Path) -> None:
    """Known ways come first, then code; each of these by the lower end of the gain."""
    found = changes_of(Results(graph_of(path)), exact=True)
    rows = [row for row in found if row.gain]
    groups = [_group(row) for row in rows]
    assert groups == sorted(groups)
    for group in set(groups):
        sure_us = [row.gain.low_us for row in rows if row.gain and _group(row) == group and not _is_of_rank(row)]
        assert sure_us == sorted(sure_us, reverse=True)


def _group(row: ProposedChange) -> int:
    return 0 if row.is_known else 1


def _is_of_rank(row: ProposedChange) -> bool:
    """Return whether a row may hold the late work of a rank, which counts once."""
    return row.finding == "straggler" or row.about.startswith("half the time of rank")


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_the_first_places_are_the_same_in_every_list(path: Path) -> None:
    results = Results(graph_of(path))
    quick = [row.options for row in changes_of(results)][:2]
    exact = [row.options for row in changes_of(results, exact=True)][:2]
    assert quick == exact


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_a_plan_may_gain_as_little_as_its_changes(path: Path) -> None:
    results = Results(graph_of(path))
    plan = plan_of(results)
    if all(row.gain and row.gain.low_us <= 0 for row in plan.proposed):
        assert plan.interval_us[0] <= 0.001


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_first_and_then_are_known_ways_and_then_is_no_part_of_first(path: Path) -> None:
    results = Results(graph_of(path))
    found = changes_of(results)
    first = found.first
    following = next_change_of(results, found)
    head = head_of(claims_of(results), found.rows, RecordingExtent("1 rank.", "1 rank."), following)
    if first is None:
        return
    is_way = first.is_known or first.gain is None
    assert head.is_advised == bool(first.action)
    assert is_way or first.is_hypothetical or first.finding in (BOUND.name, STRAGGLER.name)
    if following is None or first.change is None:
        return
    acts = results.graph.activities
    then = changed_by(results.graph, following.row.options)
    shared = then & changed_by(results.graph, first.options)
    assert not then.any() or acts.duration[shared].sum() < acts.duration[then].sum() or not acts.duration[then].any()


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_no_advice_names_a_roofline_that_has_no_answer(path: Path) -> None:
    graph = graph_of(path)
    advice = [finding.advice(*claims) for finding, claims in stated(claims_of(Results(graph)))]
    named = {command for text in advice for command in _COMMAND.findall(text)}
    assert named <= {"kernels", "roofline", "collectives", "idle"}
    if "roofline" in named:
        assert len(roofline(graph))
    if "collectives" in named:
        assert len(graph.waits)
    if {"kernels", "idle"} & named:
        assert len(hg.idle_breakdown(graph))
