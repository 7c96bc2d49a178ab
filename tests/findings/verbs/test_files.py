"""Whether files, the cache and execution traces are told with their numbers."""

from __future__ import annotations

import math

import pandas as pd

from htagraph.findings.verbs.files import (
    cache_cleared,
    cache_contents,
    device_sentences,
    execution_trace_sentences,
    no_cache,
    peak_sentences,
    timeline_sentence,
    validation_sentences,
)
from htagraph.trace.readers import Recorder

NODES = pd.DataFrame({"name": ["a", "a", "b"], "op_schema": ["a()", "", ""], "input_shapes": [[[2]], [], []]})


def test_sizes_are_gigabytes_and_one_graph_is_no_plural() -> None:
    assert "1 graph, 0.50 of at most 10 GB" in cache_contents("here", 1, 500_000_000, 10_000_000_000)[0]
    assert "2 graphs" in cache_contents("here", 2, 0, 1)[0]
    assert cache_cleared("here", 1, 2_000_000_000) == ["1 graph removed from here, 2.00 GB."]
    assert cache_cleared("here", 3, 0)[0].startswith("3 graphs removed")


def test_a_user_without_a_cache_is_told_why() -> None:
    assert "HTAGRAPH_NO_CACHE" in no_cache()[0]


def test_only_clean_files_are_said_to_be_clean() -> None:
    assert validation_sentences(0, 0) == ["Nothing had to be repaired or dropped."]
    assert validation_sentences(3, 0)[0].startswith("Every file can be read;")
    support = pd.DataFrame({"analysis": ["idle", "path"], "supported": ["partly", "yes"], "why": ["few launches", ""]})
    partly = validation_sentences(3, 0, support, ["x"])
    assert partly[0] == "Every file can be read, but these answers are partial: idle (few launches)."
    assert partly[-1].endswith("htagraph summary x")
    assert validation_sentences(3, 1)[0].startswith("1 file cannot be read, and")


def test_nodes_schemas_and_links_are_counted() -> None:
    first, second = execution_trace_sentences(NODES, pd.DataFrame({"et_node": [1, 1, 2]}))
    assert first == "3 nodes of 2 names; 1 are operators with a schema, 1 have input shapes."
    assert second == "3 activities of the trace belong to 2 nodes."
    assert "Give the trace" in execution_trace_sentences(NODES, None)[1]


GB = 10**9


def peaks(reserved: float, last: float) -> pd.DataFrame:
    row = {"rank": 0, "device": "cuda:0", "name": "", "peak_us": 5.0, "peak_bytes": 4 * GB, "reserved_bytes": reserved}
    return pd.DataFrame([row | {"first_bytes": 0, "last_bytes": last}])


def test_unused_memory_is_named_from_a_fifth_on() -> None:
    assert "33 % of it unused" in peak_sentences(peaks(6 * GB, 0), Recorder())[0]
    assert "unused" not in peak_sentences(peaks(4.5 * GB, 0), Recorder())[0]


def test_growth_is_named_beyond_a_hundredth_of_the_peak() -> None:
    grown = peak_sentences(peaks(0, GB), Recorder())[1]
    assert grown == "At the end, 1.00 GB more is in use than before the first event."
    assert len(peak_sentences(peaks(0, 0.04 * GB), Recorder())) == 1


def test_a_timeline_and_a_device_are_told_with_their_sizes() -> None:
    assert timeline_sentence(GB, 3.0, "parameter", GB / 2).endswith("500.0 MB of it was parameter.")
    row = {"device": 0, "reserved_bytes": GB, "segments": 2, "allocated_bytes": GB / 4, "inactive_bytes": 3 * GB / 4}
    full_at_peak = row | {"peak_bytes": 0.95 * GB, "peak_reserved_bytes": GB}
    assert device_sentences(full_at_peak) == [
        "Device 0 holds 1.00 GB in 2 segments; 250.0 MB is in use, 950.0 MB at most in the recorded history."
    ]
    fragmented = device_sentences(row | {"peak_bytes": 0.9 * GB, "peak_reserved_bytes": 1.5 * GB})
    assert fragmented[1].startswith("At that peak, 600.0 MB (40 %) of 1.50 GB was held but not in use.")
    assert "expandable_segments" in fragmented[1]


def test_without_a_history_nothing_is_said_of_a_peak() -> None:
    row = {"device": 0, "reserved_bytes": GB, "segments": 2, "allocated_bytes": GB, "inactive_bytes": 0}
    without_peak: dict[str, float] = {**row, "peak_bytes": math.nan, "peak_reserved_bytes": math.nan}
    (only,) = device_sentences(without_peak)
    assert "1.00 GB is in use. The most that was in use is unknown: no history was recorded" in only
    said = " ".join(device_sentences(without_peak | {"inactive_bytes": GB / 2}))
    assert "500.0 MB (50 %) is held but not in use now; whether the peak needs this memory is unknown" in said
    assert "fragmented" not in said


def test_what_held_the_peak_and_what_to_do_next_are_said() -> None:
    held = pd.DataFrame({
        "rank": 0, "device": "cuda:0", "name": ["", "aten::add", "aten::mm"], "bytes": [2 * GB, GB, 0.5 * GB],
    })  # fmt: skip
    *_, share, batch, figure = peak_sentences(peaks(0, 0), Recorder(), held, ["x"])
    assert "50 % was allocated before the recording" in share
    assert "aten::add holds most of the rest: 1.00 GB" in share
    assert batch.endswith("htagraph capacity x")
    assert figure.endswith("htagraph plot memory_timeline x -o memory.html")
