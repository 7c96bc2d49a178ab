"""Where it is said that the recorded host is slower than an unrecorded one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import htagraph as hg
from htagraph.findings.finding import claims_that_are
from htagraph.findings.recorded import RECORDED, RecordedClaim
from htagraph.findings.results import Results
from htagraph.graph.measures.steps import mean_step_ns
from tests.reach import DATA, graph_of

TRUTH = json.loads((DATA / "gpu_demo" / "truth.json").read_text())


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("gpu_demo/after", True),
        ("gpu_demo/before", False),
        ("gpu_demo/train", True),
        ("gloo_ddp", False),
        ("demo", False),
    ],
)
def test_it_is_said_of_a_host_that_launches_and_bounds_the_job(job: str, *, said: bool) -> None:
    graph = graph_of(DATA / job)
    claims = claims_that_are(RecordedClaim, RECORDED.when(Results(graph)))
    assert bool(claims) == said
    assert [claim.has_stacks for claim in claims] == [job.endswith("train")] * said


def test_recorded_jobs_that_their_host_bounds_are_slower_than_unrecorded_ones() -> None:
    times = {"after": TRUTH["loop"]["after"], "compiled": TRUTH["compiled"]}
    ratios = []
    for name, truth in times.items():
        graph = graph_of(DATA / "gpu_demo" / name)
        ratios.append(mean_step_ns(graph, graph.time) / 1e6 / truth["step_ms"]["median"])
    phases = hg.phases(graph_of(DATA / "gpu_demo" / "generate")).set_index("phase")
    eager = phases.loc["decode_eager toks=*"]
    ratios.append(eager["wall_us"] / eager["count"] / 1000 / TRUTH["generate"]["decode_eager_ms"]["median"])
    plain = TRUTH["settings"]["no profiler"]["median"]
    ratios += [
        sorted(found["step_ms"])[len(found["step_ms"]) // 2] / plain
        for name, found in TRUTH["settings"].items()
        if name != "no profiler"
    ]
    assert (round(min(ratios), 1), round(max(ratios), 1)) == (1.2, 1.6)  # as the sentence says


def test_the_head_says_it_where_stacks_are_many_of_the_events_of_the_host() -> None:
    claim = RecordedClaim("recorded", "", 90.0, "percent", has_stacks=True, stacks_percent=60.0)
    assert RECORDED.why(claim) == "how much recorded Python stacks slow the host: record without them before acting"
    assert not RECORDED.why(replace(claim, stacks_percent=5.0))
