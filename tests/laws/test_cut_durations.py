"""A duration that was cut at the next start is an upper bound in every table, and leads none as a value."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.core.naming import short_name
from htagraph.graph.measures.own_time import bound_times
from htagraph.output.reports.device_time import idle_report, kernels_report
from tests.command_line import Ran
from tests.reach import DATA, label

Json = dict[str, Any]
JOBS = [DATA / "demo", DATA / "gpu_demo" / "train", DATA / "gpu_demo" / "generate"]
_IMPOSSIBLE_US = 1_500_000


def _copy_with_an_impossible_duration(folder: Path, into: Path) -> list[str]:
    """Copy a job in which one kernel of each rank lasts 1.5 s; return the names of these kernels."""
    names = []
    for path in sorted(folder.glob("*.json.gz")):
        document = json.loads(gzip.decompress(path.read_bytes()))
        kernels = [event for event in document["traceEvents"] if event.get("cat") == "kernel"]
        computes = [event for event in kernels if "nccl" not in event["name"]]
        computes.sort(key=lambda event: float(event["ts"]))
        chosen = computes[len(computes) // 2]
        chosen["dur"] = _IMPOSSIBLE_US
        names.append(chosen["name"])
        (into / path.name).write_bytes(gzip.compress(json.dumps(document).encode()))
    return names


@pytest.mark.slow
@pytest.mark.parametrize("folder", JOBS, ids=label)
def test_each_table_of_device_time_has_the_cut_time_as_an_upper_bound(folder: Path, tmp_path: Path) -> None:
    _copy_with_an_impossible_duration(folder, tmp_path)
    graph = hg.load(tmp_path)
    cut_us = float(bound_times(graph).sum()) / 1000
    assert cut_us > 0
    tables = {
        "kernels": hg.kernel_breakdown(graph),
        "kernels of the job": hg.kernel_breakdown(graph, by="job"),
        "operators": hg.operator_breakdown(graph),
        "operators of the job": hg.operator_breakdown(graph, by="job"),
        "modules": hg.module_breakdown(graph),
        "classes": hg.module_breakdown(graph, by="class"),
        "annotations": hg.annotated_kernels(graph, by="annotation"),
        "ranks": hg.temporal_breakdown(graph),
    }
    for name, table in tables.items():
        assert table["at_most_us"].sum() == pytest.approx(cut_us), name
    for name in ("kernels of the job", "operators of the job", "classes"):
        table = tables[name]
        total_us = table["device_us"] if "device_us" in table else table["total_us"]
        assert (total_us - table["at_most_us"]).is_monotonic_decreasing, name
    shares = tables["kernels of the job"]["share_percent"]
    assert shares.sum() == pytest.approx(100)


@pytest.mark.slow
@pytest.mark.parametrize("folder", JOBS, ids=label)
def test_what_is_printed_marks_each_cut_duration(folder: Path, tmp_path: Path, run: Any) -> None:
    (name, *_) = _copy_with_an_impossible_duration(folder, tmp_path)
    graph = hg.load(tmp_path)
    for report in (kernels_report(graph, []), idle_report(graph, [])):
        assert "cut at the next start" in report.sentences[-1]
    ran: Ran = run("summary", tmp_path, "--full")
    text = re.sub(r"\s+", " ", ran.out)
    assert " busy at most " in text
    assert re.search(r"≤ [\d.,]+ \(\d+ %\)", text)
    assert re.search(r"≥ [\d.,]+ \(\d+ %\)", text)
    for verb, *options in (("kernels",), ("kernels", "--by", "operator"), ("kernels", "--by", "annotation")):
        assert "≤" in run(verb, tmp_path, *options).out
    listed = run("kernels", tmp_path, "--top", "1000").out
    marked = [line for line in listed.splitlines() if "≤" in line]
    first_word = re.split(r"[^\w]", short_name(name))[0]
    assert any(first_word[:8] in line for line in marked)
