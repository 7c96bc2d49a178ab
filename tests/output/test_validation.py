"""The report of what is wrong with files, and of what they can answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.core.errors import TraceError
from htagraph.output.validation import device_setting, recorded_checks
from htagraph.queries.path_segments import bound_of
from tests.damage import END, document, healthy, kineto_text, op, written
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, write
from tests.strategies import op as plain_op
from tests.trace.profiler_files.made import allocation

COLUMNS = ["rank", "file", "what", "detail", "count"]


def test_healthy_files_are_usable_and_say_nothing_of_damage(tmp_path: Path) -> None:
    report = hg.validate(written(tmp_path / "a.json", document(healthy())))
    assert report.usable
    assert list(report.files.columns) == COLUMNS
    assert report.files[report.files["what"] != "launch_missing"].empty


def test_damage_is_a_row_with_rank_file_and_count(tmp_path: Path) -> None:
    bad = kineto_text(healthy()).replace("0.5\n", "inf\n")
    path = written(tmp_path / "a.json", bad)
    report = hg.validate(path)
    row = report.files[report.files["what"] == "non_finite"].iloc[0]
    assert report.usable
    assert (row["rank"], row["file"], row["count"]) == (0, str(path), 6)


def test_a_file_that_cannot_be_read_makes_the_job_unusable(tmp_path: Path) -> None:
    written(tmp_path / "rank-0.json", document(healthy()))
    written(tmp_path / "rank-1.json", "oops")
    report = hg.validate(tmp_path)
    skipped = report.files[report.files["what"] == "file_skipped"]
    assert not report.usable
    assert [Path(file).name for file in skipped["file"]] == ["rank-1.json"]
    assert skipped["rank"].tolist() == [-1]


def test_a_file_that_is_not_there_is_a_row_too(tmp_path: Path) -> None:
    report = hg.validate({0: written(tmp_path / "a.json", document(healthy())), 1: tmp_path / "b.json"})
    skipped = report.files[report.files["what"] == "file_skipped"]
    assert not report.usable
    assert skipped["file"].tolist() == [str(tmp_path / "b.json")]


def test_no_readable_file_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no file could be read"):
        hg.validate(written(tmp_path / "a.json", "oops"))


@pytest.mark.parametrize(
    ("events", "analysis", "supported"),
    [
        (healthy(), "temporal_breakdown", "yes"),
        (healthy(), "overlap", "no"),
        (healthy(), "launch_stats", "yes"),
        (healthy(), "step_times", "no"),
        (healthy(), "several ranks", "no"),
        ([op(1), END], "temporal_breakdown", "partly"),
        ([op(1), END], "idle_breakdown", "no"),
        ([END], "temporal_breakdown", "no"),
        (healthy(), "stragglers, collectives", "no"),
        (healthy(), "critical_path, what_if", "yes"),
        ([kernel("a", 0, 9), kernel("b", 999, 9)], "critical_path, what_if", "partly"),
        ([END], "critical_path, what_if", "no"),
    ],
)
def test_support_says_what_can_be_answered_and_why_not(
    events: list[dict[str, object]], analysis: str, supported: str, tmp_path: Path
) -> None:
    support = hg.validate(written(tmp_path / "a.json", document(events))).support.set_index("analysis")
    assert support.loc[analysis, "supported"] == supported
    assert bool(support.loc[analysis, "why"]) == (supported != "yes")


def test_unexplained_is_the_share_that_the_summary_has(tmp_path: Path) -> None:
    late = [launch(0, 2, 1), kernel(COMPUTE, 5, 40, 1), kernel(COMPUTE, 5000, 40)]  # its launch was not recorded
    path = write(late, tmp_path / "rank-0.json")
    unexplained = bound_of(hg.critical_path(hg.load(path))).unexplained_percent
    assert unexplained > 50
    why = hg.validate(path).support.set_index("analysis").loc["critical_path, what_if", "why"]
    assert f"are {unexplained:.0f} % of the critical path" in str(why)


def checks(events: Any) -> dict[str, tuple[bool, bool, str]]:
    return {each.analysis: (each.possible, each.full, each.setting) for each in recorded_checks(load(events))}


def shaped(name: str) -> dict[str, Any]:
    return {**plain_op(name, 0, 9), "args": {"Input Dims": [[4, 8]]}}


@pytest.mark.parametrize(
    ("analysis", "with_it", "setting"),
    [
        ("roofline, kernels by shape", shaped("aten::mm"), "record_shapes=True"),
        ("memory", allocation(1, 8), "profile_memory=True"),
        (
            "module_breakdown",
            {**plain_op("nn.Module: Linear_0", 0, 9), "cat": "python_function"},
            "with_stack=True",
        ),
    ],
)
def test_what_one_rank_lacks_is_partly_there(analysis: str, with_it: dict[str, Any], setting: str) -> None:
    plain = plain_op("aten::mm", 0, 9)
    assert checks({0: [plain], 1: [plain]})[analysis] == (False, False, setting)
    assert checks({0: [plain, with_it], 1: [plain]})[analysis] == (True, False, setting)
    assert checks({0: [plain, with_it], 1: [with_it]})[analysis] == (True, True, setting)


def test_a_job_without_a_device_lacks_no_setting_for_one() -> None:
    assert device_setting(load([plain_op("a", 0, 9)])) == ""
    assert device_setting(load([launch(0, 2, 1), kernel(COMPUTE, 5, 40, 1)])) == "activities=[CPU, CUDA]"


def test_the_demo_has_synchronization_and_neither_shapes_nor_modules(tmp_path: Path) -> None:
    found = {each.analysis: each for each in recorded_checks(graph_of(DATA / "demo"))}
    assert found["waits between streams"].full
    assert not found["roofline, kernels by shape"].possible
    assert not found["module_breakdown"].possible
    support = hg.validate(DATA / "gloo_ddp").support
    assert "waits between streams" not in set(support["analysis"])


def test_a_header_alone_answers_nothing(tmp_path: Path) -> None:
    header = {"schemaVersion": 1, "record_shapes": 1, "with_stack": 1, "traceEvents": []}
    path = tmp_path / "rank-0.json"
    path.write_text(json.dumps(header), encoding="utf-8")
    support = hg.validate({0: path}).support.set_index("analysis")["supported"]
    assert support[["roofline, kernels by shape", "critical_path, what_if"]].tolist() == ["no", "no"]


def test_rows_of_another_program_support_no_analysis_and_get_no_advice_for_pytorch(tmp_path: Path) -> None:
    rows = [{"ph": "X", "name": "gemm", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 9} for at in range(20)]
    path = tmp_path / "rank-0.json"
    path.write_text(json.dumps({"traceEvents": rows}), encoding="utf-8")
    support = hg.validate({0: path}).support
    assert set(support["supported"]) == {"no"}
    assert set(support["setting"][1:]) == {""}


def test_no_analysis_is_whole_that_rests_on_lost_device_work(tmp_path: Path) -> None:
    served = [launch(0, 5, 1), kernel(COMPUTE, 10, 20, 1)]
    path = write([*served, launch(100, 5, 2), launch(110, 5, 3)], tmp_path / "rank-0.json")
    validation = hg.validate({0: path})
    support = validation.support.set_index("analysis")["supported"]
    assert support[["the work of devices", "idle_breakdown", "critical_path, what_if"]].tolist() == [
        "no", "partly", "partly",
    ]  # fmt: skip
    assert validation.recording["lost_launches"].tolist() == [2]
