from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from htagraph import Stragglers
from htagraph.output.verdict import verdict

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


def path(category: Mapping[str, float], rank: Mapping[int, float] | None = None) -> pd.DataFrame:
    """Return the summary of a critical path: shares by category and rank, percent."""
    rows = [("category", key, share) for key, share in category.items()]
    rows += [("rank", str(key), share) for key, share in ({0: 100.0} if rank is None else rank).items()]
    return pd.DataFrame(rows, columns=["group", "key", "share_percent"])


def gains(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "name", "gain_us", "gain_percent"])


def gaps(kind: str = "stream_idle", percent: float = 0.0, *, explained: bool = False) -> pd.DataFrame:
    return pd.DataFrame({"gap": [kind], "critical_percent": [percent], "explained": [explained]})


def slow(rank: int | None = None, total_us: float = 0.0, ranks: int = 2, **row: str) -> Stragglers:
    table = pd.DataFrame({"rank": range(ranks), "share_percent": 90.0, "cause": "kernels", "cause_name": ""})
    return Stragglers(table.assign(**row), pd.DataFrame(), rank, total_us)


def sentences(
    table: pd.DataFrame | None = None, stragglers: Stragglers | None = None, inputs: pd.DataFrame | None = None,
    **tables: pd.DataFrame,
) -> list[str]:  # fmt: skip
    """Return the sentences of a job on whose critical path nothing stands out but what is given."""
    table = temporal({"computation": 1000}) if table is None else table
    launches = pd.DataFrame([{"rank": 0, "launches": 0, "short": 0}])
    given = {
        "temporal_breakdown": table, "rank_idle": idle(), "launches": launches, "critical_path": path({}, {}),
        "opportunities": gains(), "gaps": gaps(),
    } | tables  # fmt: skip
    ranks = table["rank"]
    known = pd.DataFrame({"rank": ranks, "span_us": table["window_us"], "world_size": len(ranks)})
    return verdict(given, known if inputs is None else inputs, stragglers or slow())


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("computation", "The job is bound by computation: 80 % of the critical path"),
        ("communication", "The job is bound by transfers between ranks: 80 %"),
        ("host", "The job is bound by host code (operators and Python): 80 %"),
        ("data_loading", "The job is bound by data loading: 80 %"),
        ("gap", "The job is bound by unexplained pauses: 80 %"),
    ],
)
def test_what_most_of_the_critical_path_is_bounds_the_job(part: str, words: str) -> None:
    (first,) = sentences(critical_path=path({part: 80.0, "launch": 19.0, "sync": 1.0}))
    assert first.startswith(words)
    assert first.endswith("Also on it: launch calls 19 %.")


def test_the_rank_that_the_path_lies_on_is_named() -> None:
    (first,) = sentences(critical_path=path({"computation": 100.0}, {0: 16.0, 3: 84.0}))
    assert "84 % of the path is on rank 3" in first


def test_what_gains_most_is_named_with_its_ceiling() -> None:
    rows = gains(
        ("kernel", "void gemm<4>(int)", 4200.0, 17.0), ("rank", "rank 2", 900.0, 3.0), ("group", "dp", 9.0, 0.1)
    )
    (said,) = sentences(opportunities=rows)
    assert "kernel gemm, up to 4.2 ms (17 %); the work of rank 2, up to 0.9 ms (3 %)" in said
    assert "dp" not in said


def test_the_rank_that_makes_the_others_wait_is_named_with_its_cause() -> None:
    (said,) = sentences(temporal({}, {}), slow(1, 500.0, cause="host", cause_name="aten::mm"))
    assert said.startswith("Rank 1 makes the others wait: it causes 90 % of the 0.5 ms spent waiting")
    assert "its host code takes longer, mainly in aten::mm" in said


def test_waiting_that_is_nobodys_doing_is_said_to_be_so() -> None:
    (said,) = sentences(temporal({}, {}), slow(None, 500.0))
    assert "no single rank" in said


def test_little_waiting_is_not_worth_a_sentence() -> None:
    assert not sentences(temporal({}, {}), slow(1, 50.0))
    assert not sentences(stragglers=slow(0, 500.0, ranks=1))


@pytest.mark.parametrize(
    ("cause", "words"),
    [("host_wait", "wait for the host 30 %"), ("kernel_wait", "pause between queued kernels 30 %"),
     ("other", "are idle 30 %")],
)  # fmt: skip
def test_a_long_idle_time_is_explained(cause: str, words: str) -> None:
    row = {"computation": 700, "idle": 300}
    (said,) = sentences(temporal(row), rank_idle=idle(cause, 300))
    assert words in said
    both = pd.concat([idle(cause, 250, 0), idle(cause, 350, 1)])
    (said,) = sentences(temporal(row, row), rank_idle=both)
    assert words in said
    assert "(rank 1: 35 %)" in said


def test_a_short_idle_time_is_not_worth_a_sentence() -> None:
    assert not sentences(temporal({"computation": 970, "idle": 30}), rank_idle=idle("host_wait", 30))


@pytest.mark.parametrize(("short", "said"), [(49, False), (50, True), (100, True)])
def test_launches_longer_than_their_work_are_named_where_they_are_half(short: int, *, said: bool) -> None:
    launches = pd.DataFrame([{"rank": 0, "launches": 100, "short": short}])
    table = temporal({"computation": 900, "idle": 100})
    found = sentences(table, rank_idle=idle("host_wait", 100), launches=launches)
    assert any("launches take longer than the work" in each for each in found) == said


def test_launches_hidden_behind_work_are_not_worth_a_sentence() -> None:
    assert not sentences(launches=pd.DataFrame([{"rank": 0, "launches": 1000, "short": 900}]))


def test_much_that_nothing_explains_is_a_warning() -> None:
    (said,) = sentences(gaps=gaps("launch_excess", 12.0))
    assert "12 % of the critical path (mostly launch excess)" in said
    assert not sentences(gaps=gaps("launch_excess", 3.0))
    assert not sentences(gaps=gaps("host_untraced", 60.0, explained=True))


def test_nothing_recorded_is_said_so() -> None:
    (sentence,) = sentences(temporal({}).assign(window_us=0.0))
    assert sentence.startswith("No work was recorded on any rank")


def test_device_work_in_part_of_the_recording_is_said_to_be_so() -> None:
    inputs = pd.DataFrame({"rank": [0], "span_us": [4000.0], "world_size": [0]})
    (sentence,) = sentences(inputs=inputs)
    assert "25 % of the recorded time" in sentence


def test_one_rank_of_many_is_said_to_be_alone() -> None:
    inputs = pd.DataFrame({"rank": [0], "span_us": [1000.0], "world_size": [8]})
    assert "Only rank 0 of 8 was read" in sentences(inputs=inputs)[-1]
