"""Whether a prediction has both times, its direction and what bounds the job then."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.wording.what_if import sentences
from htagraph.queries.path_segments import Bound
from tests.reach import DATA, graph_of


def bound(cause: str) -> Bound:
    share = {cause: 80.0}
    return Bound(cause, share, share, ranks={0: 100.0}, by_workers=False, batches=(0, 0), unexplained={})


def test_slower_and_faster_are_told_apart() -> None:
    scenario = hg.what_if(graph_of(DATA / "demo"))
    slower, faster = (scenario.scale(kind="computation", factor=factor).run() for factor in (2, 0.5))
    before, now = bound("computation"), bound("communication")
    assert "times as long" in sentences(slower, before, now)[0]
    assert "times as fast" in sentences(faster, before, now)[0]
    assert sentences(faster, before, now)[1] == (
        "It would then be bound by transfers between ranks (80 % of the critical path) instead of computation."
    )
    assert "takes as long" not in sentences(faster, before, now)[0]
    assert "as long as before" in sentences(scenario.run(), before, now)[0]
    assert "per step: " in sentences(faster, before, now)[0]
    assert sentences(faster, before, before)[1].startswith("It would still be bound by computation")
