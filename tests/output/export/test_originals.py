"""Whether a first pass over a file finds its slices and arrows."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.export.originals import survey


def test_every_activity_of_a_file_is_one_of_its_slices() -> None:
    graph = hg.load("data/demo")
    acts = graph.activities
    for rank in graph.ranks:
        original = survey(graph, rank)
        events = acts.event[acts.of_rank(rank)]
        assert set(events[events >= 0].tolist()) <= set(original.index.tolist())
        assert [original.tracks[track] for track in original.track.tolist()] == list(
            zip(original.lane.tolist(), original.level.tolist(), strict=True)
        )
