from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from htagraph.verdict import verdict as all_sentences

PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")


def temporal(*rows: Mapping[str, float], executor: str = "device") -> pd.DataFrame:
    """Return a temporal breakdown: one rank per row, parts in µs, window 1000 µs."""
    made = []
    for rank, parts in enumerate(rows):
        row: dict[str, Any] = {"rank": rank, "executor": executor, "window_us": 1000.0}
        for part in PARTS:
            row |= {f"{part}_us": float(parts.get(part, 0)), f"{part}_percent": parts.get(part, 0) / 10}
        made.append(row)
    return pd.DataFrame(made)


def idle(cause: str = "host_wait", us: float = 0, rank: int = 0) -> pd.DataFrame:
    return pd.DataFrame([{"rank": rank, "cause": cause, "idle_us": float(us), "count": 1, "share_percent": us / 10}])


def launches(total: int = 0, short: int = 0) -> pd.DataFrame:
    return pd.DataFrame([{"rank": 0, "launches": total, "short": short}])


def verdict(temporal: pd.DataFrame, rank_idle: pd.DataFrame, launches: pd.DataFrame) -> list[str]:
    """Return the sentences of a job whose devices were at work all the time, each rank of which was read."""
    ranks = temporal["rank"]
    overlap = pd.DataFrame({"rank": ranks, "communication_us": temporal["exposed_communication_us"]})
    inputs = pd.DataFrame({"rank": ranks, "span_us": temporal["window_us"], "world_size": len(ranks)})
    return all_sentences(temporal, overlap, rank_idle, launches, inputs)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("computation", "Bound by computation: 80 %"),
        ("exposed_communication", "Bound by communication that nothing hides: 80 %"),
        ("exposed_memory", "Bound by memory copies that nothing hides: 80 %"),
        ("idle", "Bound by idle time: 80 %"),
    ],
)
def test_the_largest_part_bounds_the_job(part: str, words: str) -> None:
    rest = "idle" if part != "idle" else "computation"
    first, *_ = verdict(temporal({part: 800, rest: 200}), idle(), launches())
    assert first.startswith(words)


def test_the_rank_where_it_is_largest_is_named() -> None:
    first, *_ = verdict(
        temporal({"computation": 900, "idle": 100}, {"computation": 980, "idle": 20}), idle(), launches()
    )
    assert "most on rank 1 (98 %)" in first


@pytest.mark.parametrize(
    ("cause", "words"),
    [("host_wait", "wait for the host for 30 %"), ("kernel_wait", "pause between queued kernels for 30 %"),
     ("other", "are idle for 30 %")],
)  # fmt: skip
def test_a_long_idle_time_is_explained(cause: str, words: str) -> None:
    row = {"computation": 700, "idle": 300}
    sentences = verdict(temporal(row), idle(cause, 300), launches())
    assert words in sentences[1]
    sentences = verdict(temporal(row, row), pd.concat([idle(cause, 250, 0), idle(cause, 350, 1)]), launches())
    assert words in sentences[1]
    assert "(rank 1: 35 %)" in sentences[1]


def test_a_short_idle_time_is_not_worth_a_sentence() -> None:
    assert len(verdict(temporal({"computation": 970, "idle": 30}), idle("host_wait", 30), launches())) == 1


def test_the_rank_that_waits_least_in_collectives_is_the_one_the_others_wait_for() -> None:
    waiting = {"computation": 600, "exposed_communication": 400}
    table = temporal(waiting, waiting, {"computation": 950, "exposed_communication": 50})
    (sentence,) = [each for each in verdict(table, idle(), launches()) if "wait for rank" in each]
    assert sentence.startswith("The others seem to wait for rank 2")
    assert "its kernels take longer" in sentence


def test_even_ranks_wait_for_nobody() -> None:
    table = temporal(*({"computation": 600, "exposed_communication": 400} for _ in range(3)))
    assert not [each for each in verdict(table, idle(), launches()) if "wait for rank" in each]


@pytest.mark.parametrize(("short", "said"), [(49, False), (50, True), (100, True)])
def test_launches_longer_than_their_work_are_named_where_they_are_half(short: int, *, said: bool) -> None:
    sentences = verdict(temporal({"computation": 900, "idle": 100}), idle("host_wait", 100), launches(100, short))
    assert any("launches take longer than the work" in each for each in sentences) == said


def test_nothing_recorded_is_said_so() -> None:
    (sentence,) = verdict(temporal({}).assign(window_us=0.0), idle(), launches())
    assert sentence.startswith("No work was recorded on any rank")


def test_a_job_without_devices_is_judged_by_its_threads() -> None:
    first, *_ = verdict(temporal({"computation": 1000}, executor="host"), idle(), launches())
    assert "threads' time (no device work was recorded)" in first


def test_launches_hidden_behind_work_are_not_worth_a_sentence() -> None:
    assert len(verdict(temporal({"computation": 1000}), idle(), launches(1000, 900))) == 1


def test_device_work_in_part_of_the_recording_is_said_to_be_so() -> None:
    table = temporal({"computation": 1000})
    overlap = pd.DataFrame({"rank": [0], "communication_us": [0.0]})
    inputs = pd.DataFrame({"rank": [0], "span_us": [4000.0], "world_size": [0]})
    (sentence,) = all_sentences(table, overlap, idle(), launches(), inputs)[1:]
    assert "25 % of what was recorded" in sentence


def test_one_rank_of_many_is_said_to_be_alone() -> None:
    table = temporal({"computation": 400, "exposed_communication": 600})
    overlap = pd.DataFrame({"rank": [0], "communication_us": [600.0]})
    inputs = pd.DataFrame({"rank": [0], "span_us": [1000.0], "world_size": [8]})
    assert "Only rank 0 of 8 was read" in all_sentences(table, overlap, idle(), launches(), inputs)[-1]


def test_several_late_ranks_are_named_together() -> None:
    waiting, late = {"exposed_communication": 800, "idle": 200}, {"exposed_communication": 200, "idle": 800}
    sentences = verdict(temporal(late, waiting, waiting, late, waiting), idle(), launches())
    assert any("wait for ranks 0, 3" in sentence for sentence in sentences)
