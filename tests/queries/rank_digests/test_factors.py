from __future__ import annotations

import numpy as np

from htagraph.queries.rank_digests.factors import with_classes_of_ranks
from tests.digests import job_of
from tests.reach import DATASETS


def test_time_keeps_its_classes_and_gets_new_ones() -> None:
    skeleton = job_of(DATASETS[0]).skeleton
    half = np.arange(len(skeleton.source)) % 2 == 0
    split, names = with_classes_of_ranks(skeleton, half, ("host", "computation"))
    assert (split.weight.sum(axis=1) == skeleton.weight.sum(axis=1)).all()
    assert (split.times() == skeleton.times()).all()
    assert (split.times({"host": 0.5}) == skeleton.times({"host": 0.5})).all()
    every, _ = with_classes_of_ranks(skeleton, np.ones(len(half), np.bool_), ("host",))
    new = every.classes.names[-1]
    assert (every.times({new: 0.5}) == skeleton.times({"host": 0.5})).all()
    assert set(names) == {"host", "computation"}


def test_no_edges_have_no_time_of_their_own() -> None:
    skeleton = job_of(DATASETS[0]).skeleton
    split, names = with_classes_of_ranks(skeleton, np.zeros(len(skeleton.source), np.bool_), ("host",))
    assert (split.times({names["host"]: 0.0}) == skeleton.times()).all()
