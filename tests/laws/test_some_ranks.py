"""Laws of jobs of which only some ranks are read: nothing is called a transfer that may be waiting for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.verbs.ranks import collectives_sentences
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import ranks_not_read
from tests.reach import DATA, SHARED

FOLDERS = ("megatron_tp8_a100", "torchrec_v100_equal", "gloo4_cpu")


def jobs() -> list[Path]:
    return [DATA / "demo", *(SHARED / name for name in FOLDERS if (SHARED / name).exists())]


def transfers_us(graph: DependencyGraph, ranks: list[int]) -> float:
    parts = hg.collectives(graph)
    own = parts[parts["rank"].isin(ranks) & parts["matched"]]
    return float((own["transfer_us"] + own["excess_us"]).sum())


@pytest.mark.slow
@pytest.mark.parametrize("path", jobs(), ids=lambda path: path.name)
def test_two_ranks_show_no_more_transfer_than_all_ranks_do(path: Path) -> None:
    whole = hg.load(path)
    some = list(whole.ranks)[1:3]
    assert transfers_us(hg.load(path, ranks=some), some) <= 1.05 * transfers_us(whole, some) + 1


@pytest.mark.slow
@pytest.mark.parametrize("path", jobs(), ids=lambda path: path.name)
def test_most_of_the_time_is_not_called_transfer_where_ranks_are_missing(path: Path) -> None:
    whole = hg.load(path)
    graph = hg.load(path, ranks=list(whole.ranks)[1:3])
    parts = hg.collectives(graph)
    said = " ".join(collectives_sentences(parts, parts[:0], ["job"]))
    assert "Most of the time is transfer" not in said or not ranks_not_read(graph)
    if ranks_not_read(graph):
        assert "load all ranks to split" in said
