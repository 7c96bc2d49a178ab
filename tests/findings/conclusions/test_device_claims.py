"""What is said of devices: idle time, and time in which they look busy but wait."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.claim_sentences import sentences
from htagraph.findings.conclusions.findings import findings
from htagraph.graph.measures.waits import waiting_devices
from tests.reach import DATA, graph_of


def idle(waits: float) -> Claim:
    facts = {"rank": 2, "rank_percent": 37.0, "several": True, "host": "pauses", "in_collectives_percent": waits}
    return Claim(Says.DEVICE_IDLE, "host_wait", 11.0, "percent", facts=facts)


def test_waiting_in_collectives_stands_beside_waiting_for_the_host() -> None:
    (short,), _ = findings([idle(57.0)])
    assert "devices wait 57 % in collectives for late ranks and 11 % for the host (rank 2: 37 %): a few long" in short
    (long,) = sentences([idle(57.0)])
    assert "Another 57 % of the time their collective kernels, which look busy, only wait" in long
    (short,), _ = findings([idle(1.0)])
    assert "collectives" not in short + sentences([idle(1.0)])[0]


def test_its_share_is_that_of_the_same_windows() -> None:
    graph = graph_of(DATA / "demo")
    summary = hg.summarize(graph)
    (claim,) = [one for one in summary.claims if one.says is Says.DEVICE_IDLE]
    window = summary.tables["temporal_breakdown"]["window_us"].sum()
    share = 100 * sum(waiting_devices(graph).values()) / 1000 / window
    assert claim.facts["in_collectives_percent"] == pytest.approx(share)
