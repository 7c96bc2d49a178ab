"""No verdict rests on device work that the recording lacks, and a complete recording is never said to lack any."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.findings.verdict import FINDINGS, first_step
from htagraph.graph.measures.ledger import Part
from tests.reach import DATA, JOBS, LARGE_BYTES, graph_of, label

_RESTING = {finding.name for finding in FINDINGS if Part.DEVICE in finding.needs}
_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
SMALL = [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES]


def _without_device_work(folder: Path, into: Path, kept_percent: int) -> None:
    """Copy a job, with the first percent of its kernels and copies alone."""
    for path in sorted(folder.glob("*.json.gz")):
        with gzip.open(path, "rt") as file:
            document: dict[str, Any] = json.load(file)
        work = [event for event in document["traceEvents"] if event.get("cat") in _DEVICE]
        work.sort(key=lambda event: float(event["ts"]))
        dropped = {id(event) for event in work[len(work) * kept_percent // 100 :]}
        document["traceEvents"] = [event for event in document["traceEvents"] if id(event) not in dropped]
        with gzip.open(into / path.name, "wt") as file:
            json.dump(document, file)


@pytest.mark.slow
@pytest.mark.parametrize("kept_percent", [0, 10, 40])
def test_without_most_device_work_nothing_is_concluded_from_the_rest(kept_percent: int, tmp_path: Path) -> None:
    _without_device_work(DATA / "demo", tmp_path, kept_percent)
    graph = hg.load(tmp_path)
    claims = hg.summarize(graph).claims
    assert Part.DEVICE in graph.ledger.lacks
    assert not _RESTING & {claim.says for claim in claims}
    assert claims[0].says == "incomplete"
    assert first_step(claims).startswith("Record again")


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL, ids=label)
def test_parts_are_missing_only_where_most_launches_or_steps_have_no_work(path: Path) -> None:
    graph = graph_of(path)
    for rank in graph.ledger.ranks:
        if Part.DEVICE in rank.lacks:
            shares = (
                (rank.launches_without_work, rank.launches),
                (rank.graph_launches_without_work, rank.graph_launches),
                (rank.steps_without_work, rank.steps),
            )
            assert any(2 * missing > total > 0 for missing, total in shares)
