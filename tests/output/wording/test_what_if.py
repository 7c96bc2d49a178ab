"""Whether a prediction has both times, its direction and what bounds the job then."""

from __future__ import annotations

import pandas as pd

import htagraph as hg
from htagraph.output.wording.what_if import sentences
from tests.reach import DATA, graph_of


def bounds(before: str, after: str) -> pd.DataFrame:
    rows = [("category", key, share[0], share[1]) for key, share in {before: (90.0, 10.0), after: (10.0, 80.0)}.items()]
    return pd.DataFrame(rows, columns=["group", "key", "before_share_percent", "after_share_percent"])


def test_slower_and_faster_are_told_apart() -> None:
    scenario = hg.what_if(graph_of(DATA / "demo"))
    slower, faster = (scenario.scale(kind="computation", factor=factor).run() for factor in (2, 0.5))
    table = bounds("computation", "communication")
    assert "times as long" in sentences(slower, table)[0]
    assert "times as fast" in sentences(faster, table)[0]
    assert sentences(faster, table)[1] == (
        "It would then be bound by transfers between ranks (80 % of the critical path) instead of computation."
    )
    assert "takes as long" not in sentences(faster, table)[0]
    assert "as long as before" in sentences(scenario.run(), table)[0]
