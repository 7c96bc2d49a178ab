"""Whether the thresholds of findings are in their order, and those that follow from digits are what digits show."""

from __future__ import annotations

from htagraph.findings.limits import (
    LARGE_SHARE,
    MAX_LISTED,
    MAX_NAMED,
    MIN_PERCENT,
    MIN_SHARE,
    MOST_ROWS,
    ROUNDING,
    SHORT_LIST,
    VISIBLE_PERCENT,
)


def test_what_has_a_sentence_is_more_than_what_is_named_and_in_brief_there_is_less() -> None:
    assert VISIBLE_PERCENT < MIN_PERCENT < 100 * MIN_SHARE < 100 * LARGE_SHARE < 50
    assert SHORT_LIST < MAX_NAMED < MAX_LISTED < MOST_ROWS


def test_what_is_below_rounding_does_not_show() -> None:
    assert [f"{1 + factor * ROUNDING:.2f}" for factor in (0.99, 1.01)] == ["1.00", "1.01"]
    assert [f"{100 * factor * ROUNDING:.0f} %" for factor in (0.99, 1.01)] == ["0 %", "1 %"]
