"""What benchmarks/run.py makes of measurements: traces, rounds, ratios, history and page."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from benchmarks.measure import load, numbers, plain
from benchmarks.speed import history, rounds
from benchmarks.speed.figures import figure, growth, ratios, ratios_of
from benchmarks.speed.page import page, sparkline, table
from benchmarks.speed.rounds import Runs, in_rounds, sides
from benchmarks.speed.traces import BenchTrace, repeat
from tests.reach import REPOSITORY

TRACE = BenchTrace("simulated", 1000, Path("t.json"), 400_000)
LARGER = BenchTrace("simulated", 10_000, Path("u.json"), 4_000_000)
DEMO = REPOSITORY / "data" / "demo" / "rank-0.json.gz"


def run_of(side: str, cpu: float, events: int = 1000) -> dict[str, Any]:
    """Return what a process of a side prints that took so many CPU seconds; questions take a tenth."""
    memory = {"rss_before_mb": 100.0, "peak_mb": 101.0, "rss_after_import_mb": 200.0, "peak_rss_mb": 204.0}
    found: dict[str, Any] = {"seconds": 2 * cpu, "cpu_seconds": cpu, **memory}
    if side == "load":
        found |= {"events": events, "save": {"seconds": 0.1, "cpu_seconds": 0.1}, "saved_bytes": 100 * events}
    if side in ("questions", "hta"):
        times = {"seconds": cpu / 10, "cpu_seconds": cpu / 10, "above_mb": 5.0}
        found["questions"] = {"idle": times, "critical-path": None if side == "hta" else times}
    return found


def runs_of(trace: BenchTrace, factor: float = 1.0) -> Runs:
    cpu = {"load": 1.0, "json": 2.0, "questions": 0.1, "hta": 10.0}
    return {trace: {side: [run_of(side, factor * each, trace.size)] * 3 for side, each in cpu.items()}}


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=9))
def test_a_median_lies_within_its_spread(values: list[float]) -> None:
    found = figure(values)
    assert found.low <= found.median <= found.high
    assert (found.low, found.high, found.runs) == (min(values), max(values), len(values))


def test_ratios_are_those_of_one_round() -> None:
    assert ratios([10, 100], [1, 10]) == figure([10, 10])  # the second round was ten times as slow for both


def test_growth_is_the_exponent_of_a_power() -> None:
    assert growth((10, 3 * 10**1.5), (1000, 3 * 1000**1.5)) == pytest.approx(1.5)


def test_every_side_is_compared_with_load_or_with_the_question_that_both_answer() -> None:
    found = {name.split(": ")[1]: ratio.median for name, ratio in ratios_of(runs_of(TRACE)).items()}
    assert found == pytest.approx(
        {"json / load": 2, "HTA's load / load": 10, "load / open": 10, "HTA / idle": 100, "load / critical-path": 100}
    )


def test_ratios_do_not_depend_on_the_speed_of_the_machine() -> None:
    fast, slow = ratios_of(runs_of(TRACE)), ratios_of(runs_of(TRACE, 7.0))
    assert {name: each.median for name, each in fast.items()} == pytest.approx(
        {name: each.median for name, each in slow.items()}
    )


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, made = tmp_path / "history.jsonl", [history.entry({"a": figure([x, 2 * x])}, tmp_path) for x in (1.23456, 3)]
    assert history.read(path) == []
    for each in made:
        history.append(path, each)
    assert history.read(path) == made
    assert made[0]["ratios"] == {"a": [1.852, 1.235, 2.469, 2]}
    assert made[0]["commit"] == ""  # no repository is there


def test_numbers_are_those_of_modules_and_of_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "graph").mkdir()
    (tmp_path / "whatif").mkdir()
    code = "_A = 1 << 3\n_B: float = -2.0\n_C = _A\nd = 4\n@dataclass\nclass E:\n    f: int = 5\n    g: str = ''\n"
    (tmp_path / "graph" / "a.py").write_text(code, encoding="utf-8")
    assert numbers(tmp_path) == {"graph": 3}


def test_a_series_has_a_hole_where_a_run_lacks_the_ratio() -> None:
    entries = [{"ratios": {"a": [1, 1, 1, 1]}}, {"ratios": {"b": [5, 5, 5, 1]}}, {"ratios": {"a": [2, 2, 2, 1]}}]
    assert history.series(entries) == {"a": [1, None, 2], "b": [None, 5, None]}


def test_the_commit_is_the_one_checked_out() -> None:
    if (REPOSITORY / ".git").exists():
        assert history.commit(REPOSITORY).rstrip("+")


@given(st.lists(st.none() | st.floats(-100, 100), max_size=20))
def test_a_sparkline_has_a_bar_per_value(values: list[float | None]) -> None:
    bars = sparkline(values)
    assert [bar == "·" for bar in bars] == [value is None for value in values]
    known = [(value, bar) for value, bar in zip(values, bars, strict=True) if value is not None]
    assert all(a[1] <= b[1] for a in known for b in known if a[0] <= b[0])


def test_a_page_has_a_column_per_size_and_a_row_per_question() -> None:
    runs = runs_of(TRACE) | runs_of(LARGER, 10.0)
    entries = [history.entry(ratios_of(runs_of(TRACE) | runs_of(LARGER, factor)), REPOSITORY) for factor in (1.0, 10.0)]
    text = page(runs, entries)
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "| load: CPU s | 1 [1–1] | 10 [10–10] |" in text
    assert lines["exponent of time, from the size before"].endswith("|  | 1.00 |")
    assert lines["HTA's load / load"] == "| HTA's load / load | 10 ▁▁ | 10 ▁▁ |"
    assert "HTA's load: bytes per event" in lines
    assert "orjson ÷ load" not in lines  # it was not measured
    assert lines["idle"].count("100 [100–100]") >= 2
    assert " – " in lines["critical-path"]  # which HTA did not answer


def test_cells_are_in_the_order_of_the_head() -> None:
    assert table(["a", "b"], [[1, 2]]).splitlines() == ["| a | b |", "|---|---:|", "| 1 | 2 |"]


@pytest.fixture(name="said")
def _said() -> list[str]:
    return []


def printing(text: str) -> list[str]:
    return [sys.executable, "-c", f"print({text!r})"]


@pytest.fixture(name="ran")
def _ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by each command that runs, which takes the seconds that it names."""
    order: list[str] = []

    def run(command: list[str], results: list[dict[str, Any]], say: Any) -> bool:
        order.append(command[0])
        results.append({})
        return command[0] != "0"

    monkeypatch.setattr(rounds, "_run", run)
    monkeypatch.setattr("benchmarks.speed.rounds.time.monotonic", lambda: sum(map(float, order)))
    return order


def test_sides_alternate_and_one_that_fails_runs_no_more(ran: list[str], said: list[str]) -> None:
    in_rounds({TRACE: {"a": ["1"], "bad": ["0"], "b": ["2"]}}, 3, 60, said.append)
    assert ran == ["1", "0", "2", "1", "2", "1", "2"]
    assert said[0] == "round 1, simulated, 1,000 events, a: 1.0 s"


@pytest.mark.parametrize(("allowed", "long", "short"), [(0, 1, 1), (105, 5, 5), (62, 2, 5), (25, 1, 5), (24, 1, 4)])
def test_long_processes_run_only_where_there_is_time(
    allowed: float, long: int, short: int, ran: list[str], said: list[str]
) -> None:
    in_rounds({TRACE: {"long": ["20"]}, LARGER: {"short": ["1"]}}, 5, allowed, said.append)
    assert (ran.count("20"), ran.count("1")) == (long, short)


def test_what_a_process_prints_is_kept_and_its_failure_is_said(said: list[str]) -> None:
    results: list[dict[str, Any]] = []
    assert rounds._run(printing('a line before\n{"seconds": 1}'), results, said.append)
    assert results == [{"seconds": 1}]
    assert not rounds._run([sys.executable, "-c", "raise ValueError('why')"], results, said.append)
    assert said[-1].endswith("ValueError: why")


def test_of_what_hangs_is_kept_what_it_printed(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setattr(rounds, "_PATIENCE_S", 2)
    results: list[dict[str, Any]] = []
    script = "import time; print('{\"seconds\": 1}', flush=True); time.sleep(60)"
    assert not rounds._run([sys.executable, "-I", "-S", "-c", script], results, said.append)
    assert results == [{"seconds": 1}]
    assert said[-1].endswith("not over in 2 s")


def test_hta_is_a_side_only_where_it_is_there() -> None:
    assert "hta" not in sides(TRACE, Path("saved"), None)
    assert sides(TRACE, Path("saved"), "/x/python")["hta"][0] == "/x/python"


def test_a_repeated_trace_has_all_work_as_often(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.json"
    with path.open("w") as file:
        repeat(json.loads(gzip.decompress(DEMO.read_bytes())), 3, file)
    once, thrice = hg.load(DEMO), hg.load(path)
    thrice.check()
    assert len(thrice.select(kind="device")) == 3 * len(once.select(kind="device"))
    assert len(thrice.steps) == 3 * len(once.steps)
    launched = [int((graph.activities.cause >= 0).sum()) for graph in (once, thrice)]
    assert launched[1] == 3 * launched[0]  # ids of one repeat are not those of another


def test_load_and_a_decoder_say_their_times_and_memory(tmp_path: Path) -> None:
    found = load(DEMO, tmp_path / "saved")
    assert found["events"] > 0
    assert found["cpu_seconds"] > 0
    assert found["peak_mb"] >= found["rss_before_mb"] > 0
    assert found["saved_bytes"] == (tmp_path / "saved" / "graph.htagraph").stat().st_size
    assert plain(DEMO, "json")["cpu_seconds"] > 0
