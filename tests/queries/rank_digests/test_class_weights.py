from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htagraph.queries.rank_digests.class_weights import skeleton_of
from htagraph.queries.rank_digests.joined import joined_graph
from htagraph.queries.weighted_paths import END, LAST
from tests.digests import digests_of
from tests.reach import DATASETS, label


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_the_skeleton_has_every_moment_of_the_graph_as_recorded(folder: Path) -> None:
    digests = digests_of(folder)
    joined = joined_graph(digests)
    skeleton = skeleton_of(joined, digests[0].criteria, digests[0].classes.limits)
    graph = joined.graph
    known = skeleton.vertex >= 0
    assert np.array_equal(np.sort(skeleton.vertex[known]), np.arange(graph.vertex_count))
    assert (skeleton.times()[known] == graph.time[skeleton.vertex[known]]).all()
    assert (skeleton.source < skeleton.target).all()
    end, last = skeleton.times()[skeleton.positions(np.array([END, LAST]))]
    assert end == graph.time[1::2][graph.awake].max()
    assert last == graph.time.max()


def test_transfers_are_time_of_the_class_of_communication() -> None:
    digests = digests_of(DATASETS[0])
    skeleton = skeleton_of(joined_graph(digests), digests[0].criteria, digests[0].classes.limits)
    number = skeleton.classes.names.index("communication")
    columns = [1 + at for at, part in enumerate(skeleton.classes.parts) if number in part]
    assert skeleton.weight[:, columns].sum() > 0
