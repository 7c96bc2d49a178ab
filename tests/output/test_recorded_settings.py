"""What a recording lacks, and the setting that records it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.recorded_settings import device_setting, recorded_checks
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, op
from tests.trace.profiler_files.made import allocation


def checks(events: Any) -> dict[str, tuple[bool, bool, str]]:
    return {each.analysis: (each.possible, each.full, each.setting) for each in recorded_checks(load(events))}


def shaped(name: str) -> dict[str, Any]:
    return {**op(name, 0, 9), "args": {"Input Dims": [[4, 8]]}}


@pytest.mark.parametrize(
    ("analysis", "with_it", "setting"),
    [
        ("roofline, kernels by shape", shaped("aten::mm"), "record_shapes=True"),
        ("memory", allocation(1, 8), "profile_memory=True"),
        (
            "module_breakdown",
            {**op("nn.Module: Linear_0", 0, 9), "cat": "python_function"},
            "with_stack=True",
        ),
    ],
)
def test_what_one_rank_lacks_is_partly_there(analysis: str, with_it: dict[str, Any], setting: str) -> None:
    plain = op("aten::mm", 0, 9)
    assert checks({0: [plain], 1: [plain]})[analysis] == (False, False, setting)
    assert checks({0: [plain, with_it], 1: [plain]})[analysis] == (True, False, setting)
    assert checks({0: [plain, with_it], 1: [with_it]})[analysis] == (True, True, setting)


def test_a_job_without_a_device_lacks_no_setting_for_one() -> None:
    assert device_setting(load([op("a", 0, 9)])) == ""
    assert device_setting(load([launch(0, 2, 1), kernel(COMPUTE, 5, 40, 1)])) == "activities=[CPU, CUDA]"


def test_the_demo_has_synchronization_and_neither_shapes_nor_modules(tmp_path: Path) -> None:
    found = {each.analysis: each for each in recorded_checks(graph_of(DATA / "demo"))}
    assert found["waits between streams"].full
    assert not found["roofline, kernels by shape"].possible
    assert not found["module_breakdown"].possible
    support = hg.validate(DATA / "gloo_ddp").support
    assert "waits between streams" not in set(support["analysis"])
