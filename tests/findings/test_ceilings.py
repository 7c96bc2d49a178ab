"""The most that overlap of transfers, or one rank alone, gains."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.ceilings import alone_of, overlap_text, overlap_us
from htagraph.findings.results import Results
from tests.findings.claims_by_hand import gained
from tests.reach import DATA, graph_of


def test_no_overlap_gains_more_than_free_transfers_or_than_the_work_beside_them() -> None:
    results = Results(graph_of(DATA / "demo"))
    work_us = float(results.busy["computation_us"].max())
    free = gained(1e9, 50.0, steps=3)
    assert overlap_us(results, free) == min(free.value_us, free.makespan_us - free.value_us, work_us)


def test_an_overlap_that_hides_all_is_no_news() -> None:
    free = gained(300.0, 10.0)
    assert overlap_text(free, 300.0) == ""
    assert overlap_text(free, 100.0) == "Overlap alone gains at most 100.0 µs, the ranks' own work."


def test_the_rank_alone_is_the_straggler_of_the_demo() -> None:
    results = Results(graph_of(DATA / "demo"))
    alone = alone_of(results.graph, results.bound)
    assert alone is not None
    without = hg.what_if(results.graph).scale(factor=0.0, rank=alone.rank).free_dataloader(rank=alone.rank).run()
    assert alone.percent == 100 * without.saved_ns / without.baseline_ns
