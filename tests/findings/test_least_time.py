"""The least time of device work: kernels need some time, and bytes need the bandwidth of the device."""

from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.findings.changes import changes_of
from htagraph.findings.least_time import least_ns, least_share
from htagraph.findings.results import Results
from tests.reach import DATA, graph_of
from tests.strategies import kernel, launch, load, op


def short_and_long() -> hg.DependencyGraph:
    """Return a job of kernels that run one after the other: fifty of 2 µs, and five of 100 µs."""
    events = []
    for number in range(1, 51):
        events += [op("aten::relu", 10 * number, 5), launch(10 * number + 1, 3, number)]
        events.append(kernel("short_kernel", 1000 + 2 * number, 2, number))
    for number in range(51, 56):
        events += [op("aten::sort", 10 * number, 5), launch(10 * number + 1, 3, number)]
        events.append(kernel("long_kernel", 1102 + 100 * (number - 51), 100, number))
    return load(events)


def test_a_kernel_of_two_microseconds_cannot_be_twice_as_fast() -> None:
    graph = short_and_long()
    acts = graph.activities
    names = np.array(graph.names)[acts.name]
    assert least_share(graph, names == "short_kernel") == 1.0
    assert least_share(graph, names == "long_kernel") == 0.02
    assert least_share(graph, ~acts.on_device) == 0.0


def test_no_list_halves_what_is_at_its_limit() -> None:
    listed = changes_of(Results(short_and_long()))
    assert not [row for row in listed if "short_kernel" in " ".join(row.options)]


def test_no_activity_took_less_than_its_least_time() -> None:
    graph = graph_of(DATA / "demo")
    least = least_ns(graph)
    assert (least <= graph.activities.duration).all()
    assert (least[~graph.activities.on_device] == 0).all()
