"""Whether unused memory and growth are named where they are large."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.memory import device_sentences, peak_sentences, timeline_sentence

GB = 10**9


def peaks(reserved: float, last: float) -> pd.DataFrame:
    row = {"rank": 0, "device": "cuda:0", "name": "", "peak_us": 5.0, "peak_bytes": 4 * GB, "reserved_bytes": reserved}
    return pd.DataFrame([row | {"first_bytes": 0, "last_bytes": last}])


def test_unused_memory_is_named_from_a_fifth_on() -> None:
    assert "33 % of it unused" in peak_sentences(peaks(6 * GB, 0))[0]
    assert "unused" not in peak_sentences(peaks(4.5 * GB, 0))[0]


def test_growth_is_named_beyond_a_hundredth_of_the_peak() -> None:
    assert peak_sentences(peaks(0, GB))[1] == "At the end, 1.00 GB more is in use than before the first event."
    assert len(peak_sentences(peaks(0, 0.04 * GB))) == 1


def test_a_timeline_and_a_device_are_told_with_their_sizes() -> None:
    assert timeline_sentence(GB, 3.0, "parameter", GB / 2).endswith("500.0 MB of it was parameter.")
    row = {"device": 0, "reserved_bytes": GB, "segments": 2, "allocated_bytes": GB, "peak_bytes": GB}
    assert len(device_sentences(row | {"inactive_bytes": 0, "largest_free_bytes": 0})) == 1
    assert len(device_sentences(row | {"inactive_bytes": GB / 2, "largest_free_bytes": 0})) == 2
