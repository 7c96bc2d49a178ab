"""A recording tells the age of PyTorch by names and by how its times count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.queries.pytorch_version import has_version, versions_of
from tests.reach import DATA, SHARED, graph_of
from tests.strategies import Json, op


def old_file(folder: Path, *names: str) -> hg.DependencyGraph:
    """Return the graph of a file whose times count from 1970, as PyTorch before 2.4 wrote them."""
    events: list[Json] = []
    for number, name in enumerate(names):
        event = op(name, 100 * number, 90)
        event["ts"] = 1_600_000_000_000_000 + 100 * number
        events.append(event)
    path = folder / "old.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return hg.load(path)


@pytest.mark.parametrize(
    ("name", "has_fused"),
    [
        ("aten::cudnn_convolution_backward", False),
        ("AddmmBackward", False),
        ("MyOwnFunctionBackward", None),
        ("aten::_scaled_dot_product_flash_attention", None),
    ],
)
def test_names_tell_old_versions(name: str, has_fused: bool | None, tmp_path: Path) -> None:  # noqa: FBT001
    assert has_version(old_file(tmp_path, "aten::mm", name), (2, 3)) is has_fused


def test_fused_attention_tells_version_2(tmp_path: Path) -> None:
    assert has_version(old_file(tmp_path, "aten::_scaled_dot_product_efficient_attention"), (2, 0)) is True
    assert has_version(old_file(tmp_path, "aten::mm"), (2, 0)) is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="real traces are not in reach")
def test_recorded_jobs_have_the_versions_of_their_time() -> None:
    assert versions_of(graph_of(SHARED / "kineto" / "resnet50_2021.pt.trace.json.gz")).before == (1, 11)
    assert versions_of(graph_of(SHARED / "tracelens" / "h100_qwen.json.gz")).least <= (2, 6)


def test_a_recording_that_says_its_version_is_believed() -> None:
    graph = hg.load(DATA / "demo", ranks=[0])
    facts = replace(graph.traces[0].facts, settings={"torch": "2.6.0+cu124"})
    said = replace(graph, traces={0: replace(graph.traces[0], facts=facts)})
    assert (has_version(said, (2, 6)), has_version(said, (2, 7))) == (True, False)
