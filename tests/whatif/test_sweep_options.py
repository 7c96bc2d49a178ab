"""Sweeps as text."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.whatif.sweep_options import read_sweep
from tests.reach import DATA, graph_of


@pytest.mark.parametrize(
    ("text", "what", "factors"),
    [
        ("network=0.25..2", "network", (0.25, 0.3536, 0.5, 0.7071, 1.0, 1.414, 2.0)),
        ("network=1..2:2", "network", (1.0, 2.0)), ("name=*a=b*=1,0.5", "name=*a=b*", (1.0, 0.5)),
        ("kind=computation=0..1", "kind=computation", (0.0, 0.25, 0.5, 0.75, 1.0)),
    ],
)  # fmt: skip
def test_ranges_have_points_at_equal_ratios_and_lists_are_lists(
    text: str, what: str, factors: tuple[float, ...]
) -> None:
    assert (read_sweep(text).what, read_sweep(text).factors) == (what, factors)


@pytest.mark.parametrize(
    "text",
    ["", "network", "network=", "=1..2", "network=2..1", "network=1..1", "network=-1..1", "network=a..b", "network=nan",
     "network=1..inf", "size=1..2", "network=0..1:1", "network=1..2:5000"],
)  # fmt: skip
def test_what_is_no_sweep_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no sweep|no criterion"):
        read_sweep(text)


def test_it_is_the_change_of_its_name() -> None:
    job = hg.what_if(graph_of(DATA / "demo"))
    assert (
        read_sweep("network=1,2").apply(job, 0.5).run().makespan_ns == job.scale_network(factor=0.5).run().makespan_ns
    )
    halved = read_sweep("kind=computation=1,2").apply(job, 0.5).run()
    assert halved.makespan_ns == job.scale(factor=0.5, kind="computation").run().makespan_ns
