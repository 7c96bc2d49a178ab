"""The recorder of real pairs, as far as it needs no PyTorch: its list of pairs, its files, its command line."""

from __future__ import annotations

import ast
import gzip
import inspect
import json
import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks import record_pairs
from benchmarks.halves import HALVES, of_half
from benchmarks.recorded import interpreter_pairs, mechanism_pairs, second_grid_pairs, third_grid
from benchmarks.recorded.catalogue import PAIRS
from benchmarks.recorded.cuda_pairs import CUDA_PAIRS
from benchmarks.recorded.grid_pairs import GRID_PAIRS
from benchmarks.recorded.host_pairs import HOST_PAIRS
from benchmarks.recorded.interpreter_pairs import INTERPRETER_PAIRS
from benchmarks.recorded.mechanism_pairs import MECHANISM_PAIRS
from benchmarks.recorded.pair import Pair
from benchmarks.recorded.real_work_pairs import REAL_WORK_PAIRS
from benchmarks.recorded.second_grid_pairs import SECOND_GRID_PAIRS
from benchmarks.recorded.third_grid import THIRD_GRID_PAIRS
from benchmarks.recorded.waiting_pairs import WAITING_PAIRS
from htagraph.whatif.scenario import Scenario

JOBS = Path(record_pairs.__file__).parent / "recorded"
STEP = '{{"name": "ProfilerStep#{number}", "ph": "X", "ts": {ts}}}'


def test_names_of_pairs_are_folders_and_changes_are_told() -> None:
    assert len(PAIRS) >= 40
    for name, pair in PAIRS.items():
        assert name.isidentifier()
        assert pair.change
        assert pair.b
        assert {**pair.a, **pair.b} != pair.a
        assert pair.blame
        assert set(pair.more) <= {"straggler", "bound", "why"}
        assert (pair.ask is None) == ("why" in pair.more)


def test_no_two_pairs_have_one_name_or_the_same_jobs() -> None:
    tables = (
        HOST_PAIRS,
        CUDA_PAIRS,
        WAITING_PAIRS,
        REAL_WORK_PAIRS,
        GRID_PAIRS,
        MECHANISM_PAIRS,
        SECOND_GRID_PAIRS,
        THIRD_GRID_PAIRS,
        INTERPRETER_PAIRS,
    )
    assert len(PAIRS) == sum(map(len, tables))
    jobs = [json.dumps([pair.job, pair.a, {**pair.a, **pair.b}], sort_keys=True) for pair in PAIRS.values()]
    assert len(set(jobs)) == len(jobs)


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_asked_is_a_method_of_what_if(name: str) -> None:
    for method, arguments in PAIRS[name].ask or []:
        inspect.signature(getattr(Scenario, method)).bind(None, **arguments)


@pytest.mark.parametrize("job", sorted({pair.job for pair in PAIRS.values()}))
def test_every_job_is_a_function_of_one_argument(job: str) -> None:
    module, function = job.split(".")
    tree = ast.parse((JOBS / f"{module}.py").read_text(encoding="utf-8"))
    (found,) = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function]
    assert [each.arg for each in found.args.args] == ["job"]


def test_truth_is_json_with_the_settings_of_both_sides() -> None:
    truth = json.loads(json.dumps(PAIRS["ddp8_straggler"].truth("ddp8_straggler")))
    assert truth["A"]["slow"] == {"5": 1.3}
    assert truth["B"] == {**truth["A"], "slow": {}}
    assert truth["ask"] == [["fix_straggler", {"rank": "auto"}]]
    assert truth["straggler"] == 5
    assert truth["bound"] == "Bound by host code"
    alone = PAIRS["cuda_streams_beside_half"].truth("cuda_streams_beside_half")
    assert alone["ask"] is None
    assert alone["why"]
    assert alone["straggler"] is None


def test_step_starts_are_in_the_order_of_their_numbers() -> None:
    trace = ", ".join(STEP.format(number=number, ts=ts) for number, ts in ((10, 5.5), (9, 1.25)))
    assert record_pairs.step_starts(trace) == [1.25, 5.5]


def test_pairs_for_devices_that_are_not_there_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    cuda = [name for name in PAIRS if name.startswith("cuda")]
    assert record_pairs.runnable([*cuda, "pool_half"], 0) == ["pool_half"]
    assert capsys.readouterr().out.count("left out") == len(cuda)
    assert "cuda_ddp_straggler" in record_pairs.runnable(cuda, 2)


def test_the_command_lists_pairs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["record_pairs", "--list", "--only", "gpipe*"])
    record_pairs.main()
    assert capsys.readouterr().out.splitlines() == [f"{'gpipe4_stage_half':30}{PAIRS['gpipe4_stage_half'].change}"]
    options = record_pairs.parser().parse_args(["out", "--runs", "1"])
    assert (options.output, options.runs, options.only) == (Path("out"), 1, "*")
    assert (options.keep_all, options.half) == (False, None)


class Process:
    """A recorded process that writes what a job would have written, or fails where settings say so."""

    def __init__(self, target: Any, args: tuple[str, dict[str, Any], Path]) -> None:
        self.settings, self.folder = args[1], args[2]
        self.exitcode = int(self.settings.get("fails", False))

    def start(self) -> None:
        trace = f'{{"host_name": "box", "traceName": "{self.folder}/rank-0.json", "traceEvents": ['
        (self.folder / "rank-0.json").write_text(trace + STEP.format(number=1, ts=self.settings["ts"]) + "]}")

    def join(self) -> None:
        """Do nothing: it is over."""


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_pairs, "_FORK", SimpleNamespace(Process=Process))


@pytest.mark.usefixtures("forked")
def test_a_pair_is_written_in_the_layout_that_the_judge_reads(tmp_path: Path) -> None:
    pair = Pair("x.x", {"ts": 1.5}, {"ts": 2.5}, "another time", None, "*", {"why": "no reason"})
    assert record_pairs.record_pair(tmp_path / "new", pair, "new", runs=2)
    written = sorted(str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*.*"))
    traces = ["A1/rank-0.json.gz", "B1/rank-0.json.gz"]
    assert written == sorted([*traces, *(f"{side}{run}.steps.json" for side in "AB" for run in (1, 2)), "truth.json"])
    assert json.loads((tmp_path / "new" / "B2.steps.json").read_text()) == {"step_starts_us": {"0": [2.5]}}
    trace = json.loads(gzip.decompress((tmp_path / "new" / "A1" / "rank-0.json.gz").read_bytes()))
    assert (trace["host_name"], trace["traceName"]) == ("localhost", "rank-0.json")


@pytest.mark.usefixtures("forked")
def test_traces_of_every_run_are_kept_where_asked_for(tmp_path: Path) -> None:
    pair = Pair("x.x", {"ts": 1.5}, {"ts": 2.5}, "another time", None, "*", {"why": "no reason"})
    assert record_pairs.record_pair(tmp_path / "new", pair, "new", runs=2, keep_all=True)
    kept = sorted(str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*.json.gz"))
    assert kept == [f"{side}{run}/rank-0.json.gz" for side in "AB" for run in (1, 2)]


def test_jobs_that_share_cores_are_scheduled_as_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group, asked = tmp_path / "autogroup", []
    monkeypatch.setattr(record_pairs, "_GROUP", group)
    for name in ("setsid", "setpriority", "sched_setscheduler"):
        monkeypatch.setattr(os, name, lambda *_, name=name: asked.append(name), raising=False)
    record_pairs.before_other_work(fair=False)
    assert asked == ["sched_setscheduler"]
    assert not group.exists()
    record_pairs.before_other_work(fair=True)
    assert asked[1:] == ["setsid", "setpriority"]
    assert group.read_text() == str(record_pairs.FIRST)


@pytest.mark.parametrize(
    ("grid", "pairs"),
    [
        (mechanism_pairs, MECHANISM_PAIRS),
        (second_grid_pairs, SECOND_GRID_PAIRS),
        (third_grid, THIRD_GRID_PAIRS),
        (interpreter_pairs, INTERPRETER_PAIRS),
    ],
)
def test_a_grid_of_mechanisms_names_every_pair_of_it(grid: ModuleType, pairs: dict[str, Pair]) -> None:
    rows = [line.split(" | ")[0] for line in (grid.__doc__ or "").splitlines() if line.startswith("| ")]
    assert sorted(row.removeprefix("| ") for row in rows[1:]) == sorted(pairs)


@pytest.mark.parametrize(
    ("jobs", "pairs", "kinds"), [("second_grid", SECOND_GRID_PAIRS, 18), ("third_grid", THIRD_GRID_PAIRS, 16)]
)
def test_a_later_grid_has_jobs_of_its_own_in_both_halves(jobs: str, pairs: dict[str, Pair], kinds: int) -> None:
    names = [name for name, pair in PAIRS.items() if pair.job.startswith(jobs)]
    assert names == list(pairs)
    assert len({pair.job for pair in pairs.values()}) >= kinds
    assert all(len(of_half(names, half)) >= 10 for half in HALVES)


@pytest.mark.usefixtures("forked")
def test_a_pair_of_which_a_run_fails_is_not_there(tmp_path: Path) -> None:
    pair = Pair("x.x", {"ts": 1.5}, {"fails": True}, "it fails", None, "*")
    assert not record_pairs.record_pair(tmp_path / "new", pair, "new", runs=1)
    assert not (tmp_path / "new").exists()
