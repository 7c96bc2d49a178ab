"""``htagraph roofline``: peaks, units, and peaks that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, "error" in ran.err) == (0, False)
    tables: dict[str, Any] = json.loads(ran.out)["results"]
    return tables


HOST = str(REPOSITORY / "data" / "gloo_ddp")


def test_given_peaks_are_the_roof(run: Any) -> None:
    tables = results(run, "roofline", HOST, "--peak-tflops", "1", "--peak-gbs", "50")
    roof = [line for line in tables["conclusions"] if line.startswith("The roof")]
    assert roof == ["The roof: at most 1 TFLOP/s (given with --peak-tflops) and 50 GB/s (given with --peak-gbs)."]
    assert {row["peak_tflop_s"] for row in tables["roofline"]} == {1.0}


@pytest.mark.parametrize("peak", ["0", "-1", "inf", "nan"])
def test_a_peak_that_no_device_has_is_wrong_usage(peak: str, run: Any) -> None:
    ran = run("roofline", DEMO, "--peak-tflops", peak)
    assert (ran.code, ran.out) == (2, "")
    assert "--peak-tflops" in ran.err
