from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.plot.classes import CLASS_LABELS, counts_of, used_classes


@given(st.lists(st.floats(-5, 1e8)))
def test_each_time_is_in_one_class(times: list[float]) -> None:
    assert counts_of(np.array(times)).sum() == len(times)


def test_a_class_begins_with_its_label() -> None:
    for label in CLASS_LABELS[2:]:
        number, unit = label.split()
        us = float(number) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]
        assert CLASS_LABELS[int(counts_of(np.array([us])).argmax())] == label
        assert CLASS_LABELS[int(counts_of(np.array([us * 0.999])).argmax())] != label


def test_only_classes_between_the_least_and_the_largest_are_shown() -> None:
    assert CLASS_LABELS[used_classes([counts_of(np.array([5.0, 200.0])), counts_of(np.array([50.0]))])] == [
        "3 µs", "10 µs", "30 µs", "100 µs",
    ]  # fmt: skip
    assert used_classes([]) == slice(0, 0)
