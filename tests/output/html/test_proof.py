"""What stands under a finding may be nothing at all."""

from __future__ import annotations

from htagraph.output.html.proof import Evidence


def test_evidence_of_nothing_shows_nothing() -> None:
    nothing = Evidence()
    assert not any((nothing.chart, nothing.table, nothing.href, nothing.command, nothing.trial, nothing.meaning))
