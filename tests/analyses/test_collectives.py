from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htagraph.analyses.collectives import collectives
from tests.graph.measures.test_waits import MADE, made
from tests.host_jobs import host_job
from tests.reach import DATASETS, SHARED, graph_of, label
from tests.strategies import COMMUNICATE, annotation, kernel, launch, load, op

PARTS = ["beside_us", "wait_us", "transfer_us", "excess_us", "wait_or_transfer_us"]


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_parts_sum_to_the_duration_to_the_ns(path: Path) -> None:
    graph = graph_of(path)
    table = collectives(graph)
    ns = (table[[*PARTS, "duration_us"]] * 1000).round().astype(np.int64)
    assert ns[PARTS].sum(axis=1).equals(ns["duration_us"])
    assert (table[PARTS] >= 0).all().all()


def test_two_ranks_that_meet() -> None:
    def rank(first: float, second: float) -> list[dict[str, object]]:
        """Return two collectives with the same ends on both ranks."""
        return [
            launch(0, 1, 1), kernel(COMMUNICATE, first, 100 - first, 1),
            launch(150, 1, 2), kernel(COMMUNICATE, second, 300 - second, 2),
        ]  # fmt: skip

    table = collectives(load({0: rank(10, 250), 1: rank(40, 200)}))
    assert table["matched"].all()
    assert table["collective"].tolist() == [0, 0, 1, 1]
    assert table["rank"].tolist() == [0, 1, 0, 1]
    assert table["start_us"].tolist() == [10, 40, 250, 200]
    assert table["wait_us"].tolist() == [30, 0, 0, 50]
    assert table["last_rank"].tolist() == [1, 1, 0, 0]
    assert table["transfer_us"].tolist() == [50] * 4  # the shorter transfer of the class
    assert table["excess_us"].tolist() == [10, 10, 0, 0]
    assert (table["size"] == 2).all()
    assert table["bytes"].isna().all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["straggler", "fsdp", "pipeline"])
def test_bandwidths_are_bytes_over_time(name: str) -> None:
    done, graph = made(name)
    table = collectives(graph)
    assert len(table) == sum(len(each.members) for each in done.truth.collectives)
    known = table[table["bytes"].notna()]
    assert len(known) == len(table)
    assert np.allclose(known["algbw_gb_s"], known["bytes"] / 1e3 / (known["transfer_us"] + known["excess_us"]))
    size = known["size"]
    factor = known["op"].map({"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0}) * (size - 1) / size
    assert np.allclose(known["busbw_gb_s"], known["algbw_gb_s"] * factor.fillna(1.0))
    fastest = MADE[name].network_gb_s * 1.2  # and jitter
    assert known["busbw_gb_s"].max() < fastest


@pytest.mark.parametrize(
    ("name", "count"),
    [("megatron_tp8_a100", 84), ("torchrec_v100_equal", 30), ("gloo4_cpu", 6)],
)
def test_real_jobs(name: str, count: int) -> None:
    path = SHARED / name
    if not path.is_dir():
        pytest.skip("not in reach")
    table = collectives(graph_of(path))
    matched = table[table["matched"]]
    assert matched["collective"].nunique() == count
    full = matched[matched["op"] != "all_to_all"].groupby("collective")["wait_us"].min()
    assert (full == 0).all()  # whoever comes last waits for nobody


def test_members_without_a_recording_are_counted() -> None:
    def rank(late: float) -> list[dict[str, object]]:
        made: list[dict[str, object]] = []
        for i in range(3):
            at = 1_000 * i
            made += [op("c10d::allreduce_", at, 5), annotation("gloo:all_reduce", at + 50 + late, 500 - late, 2)]
        return made

    table = collectives(host_job({0: rank(0), 2: rank(90)}, groups=[[0, 1, 2, 3]]))
    assert table["matched"].all()
    assert table["size"].tolist() == [2] * 6
    assert table["absent"].tolist() == [2] * 6
    assert not table[["transfer_us", "excess_us"]].any(axis=None), "what looks like transfer may be waiting"
    assert table["wait_or_transfer_us"].tolist() == [410] * 6
    assert collectives(host_job({0: rank(0), 1: rank(90)}))["absent"].tolist() == [0] * 6
