"""Whether the largest possible gains are named, or that there is none."""

from __future__ import annotations

from htagraph.findings.verbs.opportunities import sentences
from tests.findings.claims_by_hand import gain


def test_a_gain_is_named_with_its_note_and_a_command() -> None:
    claim = gain(
        "aten::mm", 5000.0, 2.0, "operator", target="op=aten::mm", half_us=300.0, note="all inside it", steps=10
    )
    first, second = sentences([claim], ["x"])
    assert "operator aten::mm, 500.0 µs (2 %)" in first
    assert first.startswith("Largest gains per step (of 10)")
    assert first.endswith("The first one counts all inside it. Gains overlap and do not add up.")
    assert second.startswith("Half the time of operator aten::mm saves 30.0 µs per step.")
    assert second.endswith(": htagraph what-if x --scale op=aten::mm:0.5")


def test_where_nothing_gains_that_is_said() -> None:
    (sentence,) = sentences([], [])
    assert sentence.startswith("No single improvement would gain 2 %")
