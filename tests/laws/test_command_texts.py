"""What a user stumbled over: units, names and sentences of reports."""

from __future__ import annotations

import gzip
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph import SelectionError
from htagraph.output.reports.device_time import kernels_report
from tests.analyses.test_kernel_patterns import linear
from tests.reach import REPOSITORY
from tests.strategies import COMPUTE, annotation, complete, kernel, launch, load, op, write

DEMO = str(REPOSITORY / "data" / "demo")
HOST = str(REPOSITORY / "data" / "gloo_ddp")


def test_a_selection_has_positions() -> None:
    found = load([op("a", 0, 9), op("b", 10, 5), op("c", 20, 5)]).select(kind="op")
    assert (list(found[2]), list(found[-1]), list(found[0:2]), list(found[::-1])) == ([2], [2], [0, 1], [0, 1, 2])
    with pytest.raises(IndexError, match="has 3 activities"):
        found[3]


def test_a_criterion_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(SelectionError, match="'nam' is no criterion: choose from kind, category, name"):
        load([op("a", 0, 9)]).select(**{"nam": "a"})  # type: ignore[arg-type]


def test_work_without_launch_is_called_so() -> None:
    events = [complete("python_function", "nn.Module: Net_0", 0, 50), launch(2, 1, 1), kernel(COMPUTE, 5, 5, 1),
              kernel("lost", 20, 50)]  # fmt: skip
    found = kernels_report(load(events), [], by="module")
    assert found.brief is not None
    assert found.brief["device_time"]["name"].iloc[0] == "launch not recorded"
    assert found.sentences[0].startswith(
        "nn.Module: Net takes the most device time (not counting work outside all modules"
    )
    assert "The launch of 1 kernel or copy was not recorded" in found.sentences[-1]


@pytest.mark.slow
def test_units_are_in_headings(run: Any) -> None:
    out = run("roofline", HOST, "--peak-tflops", "1", "--peak-gbs", "50").out
    assert "TFLOP/s" in out
    assert "at most 1 TFLOP/s (given with --peak-tflops) and 50 GB/s (given with --peak-gbs)" in " ".join(out.split())
    assert "GB/s" in run("counters", DEMO).out


def test_shorter_sequences_are_counted(run: Any, tmp_path: Path) -> None:
    path = write([*linear(0, 1, "a", "b", "c"), op("aten::linear", 900, 5)], tmp_path / "t.json")
    out = " ".join(run("patterns", path).out.split())
    assert "1: aten::linear: a → b → c" in out
    assert "1 other occurrence launched fewer kernels or none" in out


def test_a_folder_of_snapshots_says_to_give_one(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.pickle.gz").write_bytes(gzip.compress(pickle.dumps({"segments": []})))
    ran = run("memory", tmp_path)
    assert ran.code == 2
    assert "a.pickle.gz" in re.sub(r"[\s│]", "", ran.err)  # wherever the frame around it broke the line
    assert len(repr(hg.memory.read_snapshot(tmp_path / "a.pickle.gz"))) < 200


def test_phases_are_found_by_their_name() -> None:
    graph = load([annotation("execute_context_0(0)_generation_8(8)", 0, 20), op("x", 30, 5)])
    assert hg.phases(graph, annotation="decode")["phase"].tolist() == ["decode"]


def test_unknown_columns_are_left_out(run: Any, tmp_path: Path) -> None:
    path = write([annotation("forward", 0, 20), launch(5, 1, 1), kernel(COMPUTE, 10, 5, 1)], tmp_path / "t.json")
    assert "tokens" not in run("launches", path).out


def test_idle_time_of_devices_is_what_has_a_cause(run: Any) -> None:
    assert "Of all waiting, " in " ".join(run("idle", DEMO).out.split())
