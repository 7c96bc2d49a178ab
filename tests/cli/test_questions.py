"""Verbs that are rows: each names a report that takes its options, and is asked as any verb."""

from __future__ import annotations

import inspect
from pkgutil import resolve_name
from typing import Any

import pytest

from htagraph.cli.questions import QUESTIONS
from tests.reach import DATA


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_row_names_a_report_that_takes_its_options(name: str) -> None:
    row = QUESTIONS[name]
    taken = inspect.signature(resolve_name(f"htagraph.output.{row.report}")).parameters
    assert {"graph", "inputs", "top", *row.options, *row.last} == set(taken)
    assert taken["top"].default == row.top
    if row.on_workers:
        assert list(inspect.signature(resolve_name(f"htagraph.output.{row.on_workers}")).parameters) == ["job", "top"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_option_has_the_default_that_its_report_has(name: str) -> None:
    row = QUESTIONS[name]
    taken = inspect.signature(resolve_name(f"htagraph.output.{row.report}")).parameters
    assert all(taken[option].default == default for option, default in {**row.options, **row.last}.items())
    assert next(iter(row.defaults)) == "paths"


@pytest.mark.parametrize("verb", ["stragglers", "summary"])
def test_workers_may_read_the_ranks(verb: str, run: Any) -> None:
    ran = run(verb, DATA / "demo", "--scheduler", "nobody")
    assert ran.code == 2
    assert "--scheduler" in ran.err
