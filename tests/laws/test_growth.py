"""No answer takes much longer than its job is larger, whatever makes it larger; `benchmarks.growth` has the grid."""

from __future__ import annotations

import warnings

import pytest

from benchmarks.growth import ASIDE, PARAMETERS, commands, exponent, grown
from htagraph.cli.verbs import VERBS

_LIMIT = 1.5
"""Between what is in proportion and what is quadratic. Chosen: the grid, on a quiet machine, demands 1.15; a machine
that runs other tests varies by a third. Doubled, nothing fails."""
FIRST = list({line.split()[0]: line for line in reversed(commands())}.values())
"""One command of each verb."""


def test_every_verb_of_a_job_is_measured() -> None:
    assert {line.split()[0] for line in commands()} == {"load", *VERBS} - {*ASIDE}


def test_an_exponent_is_that_of_what_the_size_adds() -> None:
    assert exponent({1: 1.0, 10: 2.0, 20: 5.0, 40: 17.0}) == pytest.approx(2)
    assert exponent({1: 1.0, 10: 1.01, 20: 1.02, 40: 1.04}) == pytest.approx(0)


@pytest.mark.slow
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_no_verb_grows_much_faster_than_the_job(parameter: str) -> None:
    with warnings.catch_warnings():
        found = {growth.line: growth for growth in grown(parameter, FIRST, 0.25, (1, 4), limit=_LIMIT)}
    fast = {line: each.seconds for line, each in found.items() if each.exponent > _LIMIT}
    assert not fast, f"seconds by size; see python -m benchmarks.growth --parameters '{parameter}'"
