"""Definitions are docstrings without how to call."""

from __future__ import annotations

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.output.html.definitions import definition


def test_a_definition_says_what_the_numbers_are_and_not_how_to_call() -> None:
    shown = definition(temporal_breakdown)
    assert "One row per rank: rank, executor" in shown
    assert "Returns:" not in shown
    assert "int64" not in shown
    assert "Args:" not in shown
    assert "&gt;&gt;&gt;" not in shown


def test_each_item_of_a_list_has_its_line() -> None:
    assert "<p>- kernel_wait: another edge" in definition(idle_breakdown)


def test_without_a_docstring_there_is_nothing() -> None:
    assert definition(lambda: None) == ""
