"""The section of timelines has a place and a payload for each."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.html.timeline import timeline_of
from htagraph.output.html.timeline_section import timeline_section
from tests.strategies import load, op


def test_each_timeline_has_its_place_and_its_payload() -> None:
    timeline = timeline_of(hg.critical_path(load([op("a", 0, 1)])))
    section = timeline_section({"before": ("Before", timeline), "after": ("After", timeline)})
    assert list(section.payload) == ["before-header", "before-data", "after-header", "after-data"]
    assert section.body.count("<canvas") == 2
    assert 'data-key="before"' in section.body


def test_what_is_left_out_is_said() -> None:
    timeline = timeline_of(hg.critical_path(load([op("x" * 2000, 0, 1)])))
    assert "without their middle" in timeline_section({"job": ("", timeline)}).body
