"""Every verb answers on a recording that lacks all rows of a category, or all durations."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.reports.ranks import plan_report
from tests.reach import DATA

Json = dict[str, Any]
CALLS = frozenset({"cuda_runtime", "cuda_driver"})


def without(*categories: str) -> Callable[[Json], Json | None]:
    """Return the function that leaves out rows of some categories."""
    return lambda event: None if event.get("cat") in categories else event


def without_durations(event: Json) -> Json:
    """Return a row that takes no time."""
    return {**event, "dur": 0} if "dur" in event else event


LOSSES: dict[str, Callable[[Json], Json | None]] = {
    "calls and arrows": without(*CALLS, "ac2g"),
    "calls": without(*CALLS),
    "arrows": without("ac2g"),
    "operators": without("cpu_op"),
    "annotations": without("user_annotation", "gpu_user_annotation"),
    "kernels": without("kernel"),
    "durations": without_durations,
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_every_verb_answers(loss: str, tmp_path: Path) -> None:
    for name in ("rank-0.json.gz", "rank-1.json.gz"):
        trace = json.loads(gzip.decompress((DATA / "demo" / name).read_bytes()))
        changed = [LOSSES[loss](event) for event in trace["traceEvents"]]
        trace["traceEvents"] = [event for event in changed if event is not None]
        (tmp_path / name.removesuffix(".gz")).write_text(json.dumps(trace), encoding="utf-8")
    graph = hg.load(tmp_path)
    assert str(hg.summarize(graph)).strip()
    assert plan_report(graph, ["x"]).sentences
    assert plan_report(graph, ["x"], budget=2).sentences
    assert hg.critical_path(graph).makespan_ns > 0
    assert hg.what_if(graph).scale(factor=0.5, rank=0).run().makespan_ns > 0
