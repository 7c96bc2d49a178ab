"""What ``htagraph compare`` says."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.compare import sentences


def test_the_largest_change_is_named() -> None:
    table = pd.DataFrame({"name": ["a", "b<int>"], "change": ["more", "same"], "change_per_step_us": [3.0, -20.0]})
    assert sentences(table, ["x", "y"]) == [
        "2 names occur per rank and step: 1 more often and 1 as often as before.",
        "b takes 20.0 µs less per rank and step, with what lies in it.",
        "To see why steps take another time: htagraph diff x y",
    ]
    assert sentences(table.iloc[:0], ["x", "y"]) == ["Neither job has an activity."]
