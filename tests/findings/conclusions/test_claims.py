"""Whether the claims of a report are what the tables and replays say, and contradict nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.analyses.stragglers import Stragglers
from htagraph.findings.claim import Claim, RestsOn, Says, contradictions
from htagraph.findings.conclusions.claims import _waiting, bound_claims, consistent, doubts_of, gain_claims, path_claims
from htagraph.queries.path_segments import HOST_CATEGORIES, bound_of
from htagraph.whatif.options import criteria
from tests.reach import DATA, DATASETS, REAL, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load, op, runtime

JOBS = [*DATASETS, *(path for path in REAL if path.stat().st_size < 400_000)]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name[:30])
def test_claims_of_a_summary_agree_with_its_tables(path: Path) -> None:
    graph = graph_of(path)
    summary = hg.summarize(graph)
    assert contradictions(summary.claims) == []
    table = summary.tables["critical_path"]
    shares = table[table["group"] == "category"].set_index("key")["share_percent"]
    for claim in summary.claims:
        if claim.says is Says.BOUND:
            of_host = shares[shares.index.isin(HOST_CATEGORIES)].sum()
            others = shares.drop(["head", *HOST_CATEGORIES], errors="ignore")
            assert claim.figure == pytest.approx(of_host if claim.about == "host" else shares[claim.about])
            assert claim.figure == pytest.approx(max(of_host, others.max())) or claim.facts["by_workers"]
        if claim.says is Says.UNEXPLAINED:
            assert claim.figure == pytest.approx(shares["gap"])
        if claim.says is Says.GAIN and claim.facts["target"]:
            outcome = hg.what_if(graph).scale(factor=0.0, **criteria(claim.facts["target"])).run()
            assert claim.figure == pytest.approx(outcome.saved_ns / 1000)
            assert claim.facts["half_us"] <= claim.figure


def test_of_a_rank_only_what_exceeds_its_peers_is_named() -> None:
    """All work of a rank takes some time on any device; `rank 2` is a row of the table, and no advice."""
    graph = graph_of(DATA / "demo")
    table, bound = hg.opportunities(graph), bound_of(hg.critical_path(graph))
    assert "rank 2" in set(table["name"])
    claims = {claim.about: claim for claim in gain_claims(graph, table, bound=bound)}
    assert "rank 2" not in claims
    fixed = hg.what_if(graph).fix_straggler(rank=2).run()
    assert claims["rank 2 beyond its peers'"].figure == pytest.approx(fixed.saved_ns / 1000)


def test_a_row_that_no_replay_confirms_is_left_out() -> None:
    graph = graph_of(DATA / "demo")
    table, bound = hg.opportunities(graph, top=4), bound_of(hg.critical_path(graph))
    wrong = table.assign(gain_us=table["gain_us"] * 2)
    assert gain_claims(graph, wrong, bound=bound) == []


def test_unknown_clocks_and_missing_partners_are_doubts() -> None:
    alone = [op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMMUNICATE, 20, 90, 1)]
    doubts = doubts_of(load({0: alone, 1: [op("aten::mm", 0, 50)]}))
    assert doubts[RestsOn.MATCHES].figure == doubts[RestsOn.MATCHES].facts["total"] == 1
    assert doubts_of(load(alone)) == {}
    assert doubts_of(graph_of(DATA / "demo")) == {}


def test_of_claims_that_contradict_the_first_stays() -> None:
    graph = load([op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMPUTE, 20, 1000, 1)])
    path = hg.critical_path(graph)
    claims = bound_claims(path, bound_of(path), {})
    other = Claim(Says.BOUND, "host", 50.0, "percent")
    assert consistent([*claims, other]) == claims
    assert path_claims(path)[0] == claims[0]


def test_nothing_recorded_is_said_so() -> None:
    summary = hg.summarize(load([]))
    assert [claim.says for claim in summary.claims] == [Says.NOTHING_RECORDED]
    assert isinstance(summary.tables["opportunities"], pd.DataFrame)


def test_graphs_are_no_advice_where_they_are_used() -> None:
    """Devices wait for launches of graphs: the sentence is about these, not advice to make graphs."""

    def job(name: str, pieces: int) -> list[Json]:
        events = []
        for number in range(40):
            at = 300 * number
            events.append(runtime(name, at, 200, number + 1))
            events += [kernel("work", at + 210 + 20 * i, 10, number + 1) for i in range(pieces)]
        return events

    for name, pieces, host in (("cudaGraphLaunch", 4, "graphs"), ("cudaLaunchKernel", 1, "launches")):
        claims = hg.summarize(load(job(name, pieces))).claims
        (idle,) = [claim for claim in claims if claim.says == Says.DEVICE_IDLE and claim.about == "host_wait"]
        assert idle.facts["host"] == host


@pytest.mark.parametrize(("pause", "named"), [(3000, True), (1000, False), (900, False)])
def test_a_long_pause_is_named_though_the_device_bounds_the_job(pause: int, *, named: bool) -> None:
    events = [
        launch(0, 5, 1), kernel(COMPUTE, 10, 6000, 1), runtime("cudaDeviceSynchronize", 6, 6010),
        op("aten::mul", 6016 + pause, 20), launch(6020 + pause, 5, 2), kernel(COMPUTE, 6030 + pause, 3000, 2),
    ]  # fmt: skip
    path = hg.critical_path(load(events))
    claims = bound_claims(path, bound_of(path), {})
    assert claims[0].about == "computation"
    assert [claim.facts["after"] for claim in claims if claim.says is Says.HOST_PAUSE] == (
        ["cudaDeviceSynchronize"] if named else []
    )


@pytest.mark.parametrize(("excess_us", "said"), [(300.0, ""), (30_000.0, "1")])
def test_a_rank_that_is_slower_by_next_to_nothing_is_not_named_beside_the_waiting(excess_us: float, said: str) -> None:
    """0.3 ms in each of 10 steps are 0.7 % of 458 ms of waiting."""
    table = pd.DataFrame({
        "rank": [0, 1], "slow": [False, True], "slow_excess_us": [np.nan, excess_us], "slow_steps": [0, 10],
        "blamed_us": [458e3, 0.0], "share_percent": [100.0, 0.0], "step_excess_us": [-excess_us, excess_us],
    })  # fmt: skip
    (claim,) = _waiting(Stragglers(table, pd.DataFrame(), None, 458e3, steps=10), 2e6, {})
    assert (claim.says, claim.about, claim.facts["compared"]) == (Says.WAITING, said, True)
