"""HTA's frequent kernel sequences; the numbers are the output of HTA 0.6.1 (traceinsight), run with its defaults.

HTA counts `cuda_sync` events as kernels, which we do not: in these two traces no operator asked for here has any.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from htagraph.hta.shapes.job import HtaJob, open_job
from htagraph.hta.shapes.patterns import frequent_cuda_kernel_sequences
from tests.analyses.test_kernel_patterns import linear
from tests.reach import SHARED, raw_events
from tests.strategies import COMPUTE, annotation, complete, kernel, launch, op, step, write

COLUMNS = ["pattern", "count", "GPU kernel duration (us)", "CPU op duration (us)"]
FILES = {"control": 3, "test": 1}
HTA = {
    ("control", "aten::linear"): [(4, 10, 986.0, 1123.0)],
    ("control", "aten::mm"): [],
    ("control", "## forward"): [(437, 5, 122164.0, 100283.0)],
    ("control", "## backward"): [
        (1024, 1, 43347.0, 34552.0),
        (1024, 1, 37699.0, 35253.0),
        (1024, 1, 36239.0, 34160.0),
        (1024, 1, 43316.0, 34551.0),
        (1024, 1, 44242.0, 32120.0),
    ],
    ("control", "aten::lin"): [(4, 10, 986.0, 1123.0)],
    ("test", "aten::linear"): [(4, 70, 2913.0, 6084.0), (4, 10, 2850.0, 1311.0)],
    ("test", "aten::mm"): [],
    ("test", "## forward"): [(920, 3, 131201.0, 80408.0), (920, 2, 89187.0, 44738.0)],
    ("test", "## backward"): [(1468, 3, 255427.0, 107000.0), (1468, 1, 87682.0, 40673.0), (1468, 1, 85193.0, 36075.0)],
    ("test", "aten::lin"): [(4, 70, 2913.0, 6084.0), (4, 10, 2850.0, 1311.0)],
}
"""By trace and operator: names in the pattern, and the other columns."""


@cache
def job_of(name: str) -> HtaJob:
    return open_job({FILES[name]: str(SHARED / f"hta/trace_diff/{name}/{name}.json.gz")})


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared traces")
@pytest.mark.parametrize(("name", "operator"), HTA)
@pytest.mark.filterwarnings("ignore:no frequent kernel sequences")
def test_the_numbers_are_htas(name: str, operator: str, tmp_path: Path) -> None:
    table = frequent_cuda_kernel_sequences(job_of(name), operator, str(tmp_path), rank=FILES[name])
    found = [(len(row[0].split("|")), *row[1:]) for row in table.itertuples(index=False, name=None)]
    assert found == HTA[name, operator]
    assert table.columns.tolist() == COLUMNS
    assert [table[column].dtype.kind for column in COLUMNS[1:]] == ["i", "f", "f"]
    assert [path.name for path in tmp_path.iterdir()] == ([f"overlaid_{name}.json.gz"] if found else [])


def job(tmp_path: Path, *events: object) -> HtaJob:
    return open_job({0: str(write(list(events), tmp_path / "trace.json"))})  # type: ignore[arg-type]


def test_only_operators_at_the_least_depth_count(tmp_path: Path) -> None:
    deep = [op("outer", 0, 40), *linear(2, 1, "a", "b", "c")]
    found = frequent_cuda_kernel_sequences(
        job(tmp_path, *deep, *linear(100, 9, "x", "y", "z")), "aten::linear", str(tmp_path)
    )
    assert found["pattern"].tolist() == ["aten::linear|x|y|z"]


def test_backward_operators_lie_in_the_main_threads_annotation(tmp_path: Path) -> None:
    events = [
        step(1, 0, 90), annotation("## backward ##", 5, 80),
        op("autograd::engine::evaluate_function: MmBackward0", 10, 20, tid=2),
        complete("cuda_runtime", "cudaLaunchKernel", 12, 1, 2, correlation=1), kernel(COMPUTE, 40, 6, 1),
        op("autograd::engine::evaluate_function: MmBackward0", 88, 20, tid=2),  # ends behind it
        complete("cuda_runtime", "cudaLaunchKernel", 90, 1, 2, correlation=2), kernel(COMPUTE, 95, 6, 2),
    ]  # fmt: skip
    found = frequent_cuda_kernel_sequences(job(tmp_path, *events), "## backward", str(tmp_path), min_pattern_len=1)
    assert found.to_dict("records") == [dict(zip(COLUMNS, (f"## backward ##|{COMPUTE}", 1, 6.0, 80.0), strict=True))]


def test_annotations_as_the_device_saw_them_hide_no_operator(tmp_path: Path) -> None:
    seen = complete("gpu_user_annotation", "## forward ##", 20, 9, 7, stream=7)
    events = [annotation("## forward ##", 0, 30), *linear(5, 1, "a", "b", "c"), seen]
    found = frequent_cuda_kernel_sequences(job(tmp_path, *events), "forward", str(tmp_path))
    assert found["count"].tolist() == [1]


@pytest.mark.parametrize(
    ("operator", "folder", "why"),
    [("", ".", "must be part"), ("aten::linear", "absent", "no folder"), ("nothing", ".", "no operator")],
)
def test_what_gives_nothing_says_why(operator: str, folder: str, why: str, tmp_path: Path) -> None:
    made = job(tmp_path, *linear(0, 1, "a", "b", "c"))
    with pytest.warns(UserWarning, match=why):
        found = frequent_cuda_kernel_sequences(made, operator, str(tmp_path / folder))
    assert found.columns.tolist() == COLUMNS
    assert found.empty
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_a_plain_trace_gives_a_plain_file(tmp_path: Path) -> None:
    made = job(tmp_path, *linear(0, 1, "a", "b", "c"), launch(70, 1, 9))
    frequent_cuda_kernel_sequences(made, "aten::linear", str(tmp_path), compress_other_kernels=False)
    events = raw_events(tmp_path / "overlaid_trace.json")
    assert sum("Patterns" in event["args"] for event in events) == 7
