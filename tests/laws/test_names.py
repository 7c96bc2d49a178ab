"""Laws of names: no mangled name is shown, no two rows look alike, and each predicted change selects the rows meant."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.analyses.differences import compare, diff
from htagraph.core.arrays import Mask
from htagraph.core.kinds import ActivityKind
from htagraph.findings.remedy import REMEDY
from htagraph.findings.results import Results
from htagraph.graph.selection import Criteria, mask_of
from htagraph.output import render
from htagraph.output.html import page
from htagraph.output.report import Column, Wording, columns_of, fitted
from htagraph.output.reports.device_time import kernels_report
from htagraph.whatif.options import criteria
from tests.reach import DATASETS, REAL, SHARED, graph_of, label
from tests.strategies import kernel, launch, load, op, step

MANGLED = re.compile(r"\b_Z\w{4,}")
OTHERS = sorted((SHARED.parent / "cases").glob("*/*.json*"))
JOBS = [*DATASETS, *REAL, *OTHERS]


def _label(path: object) -> str:
    return label(path) if not isinstance(path, Path) or path not in OTHERS else f"{path.parent.name}-{path.name}"


@cache
def _kernel_names(path: Path) -> list[str]:
    graph = graph_of(path)
    used = np.unique(graph.activities.name[graph.activities.on_device])
    return [graph.names[name] for name in used.tolist()]


# what a reader sees


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 120, 400])
@pytest.mark.parametrize("path", JOBS, ids=_label)
def test_rows_of_different_kernels_look_different_and_none_is_mangled(path: Path, width: int) -> None:
    frame = pd.DataFrame({"name": _kernel_names(path), "count": 1})
    shown = fitted(columns_of(frame, Wording()), width).cells[0] if len(frame) else []
    assert len(set(shown)) == len(shown)
    assert not [name for name in shown if MANGLED.search(name)]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["kernels", "summary", "plan", "critical-path", "idle", "launches"])
@pytest.mark.parametrize("path", JOBS, ids=_label)
def test_no_report_has_a_mangled_name_and_each_suggested_prediction_runs(path: Path, verb: str, run: Any) -> None:
    ran = run(verb, str(path))
    assert ran.code == 0
    assert not MANGLED.search(ran.out)
    for line in dict.fromkeys(re.findall(r"htagraph what-if .*", ran.out)):
        assert run(*shlex.split(line)[1:]).code == 0, line


# what a reader of two recordings sees, and of a page

CASE = SHARED.parent / "cases"
PAIRS = [
    pair
    for pair in (
        (DATASETS[0], DATASETS[0]),
        (SHARED / "hta/trace_diff/control/control.json.gz", SHARED / "hta/trace_diff/test/test.json.gz"),
        (SHARED / "tracelens/h100_qwen.json.gz", SHARED / "tracelens/b200_eager.json.gz"),
        (SHARED / "tracelens/mi300_vllm_decode_graphs.json.gz", SHARED / "tracelens/b200_eager.json.gz"),
        (CASE / "K12_mangled_names/trace.json.gz", CASE / "recordings/legacy_autograd.json.gz"),
        (CASE / "recordings/b200_moe_ref_rank0of2.json.gz", CASE / "recordings/b200_moe_syncless_rank0of2.json.gz"),
        (CASE / "recordings/vit_bf16.json.gz", CASE / "recordings/vit_quant.json.gz"),
        (CASE / "recordings/vit_large_bf16.json.gz", CASE / "recordings/vit_large_int8.json.gz"),
    )
    if all(path.exists() for path in pair)
]
"""Recordings with many names, some mangled, some with addresses, some that differ in a few letters only."""
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
NUMBERED = re.compile(r" #\d+$|<#\d+>$")
of_each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].stem}-{pair[1].stem}")


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[pd.DataFrame]:
    """The tables that are shown to a reader while a test runs."""
    shown = list[pd.DataFrame]()

    def noted(frame: pd.DataFrame, wording: Wording) -> list[Column]:
        shown.append(frame)
        return columns_of(frame, wording)

    for module in (render, page):
        monkeypatch.setattr(module, "columns_of", noted)
    return shown


def _hold(frame: pd.DataFrame, width: int) -> None:
    """Check that rows with different texts look different at a width, and by the texts rather than by a number."""
    table = fitted(columns_of(frame, Wording()), width)
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if not {"name", "kernel", "key", "path"} & set(texts):
        return
    meant = frame[texts].astype(str).itertuples(index=False, name=None)
    columns = [cells for column, cells in zip(table.columns, table.cells, strict=True) if not column.is_number]
    looks: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row, whole in zip(zip(*columns, strict=True), meant, strict=True):
        assert looks.setdefault(row, whole) == whole
        for cell in row:
            assert not MANGLED.search(cell)
            assert not ADDRESS.search(cell)
            assert not NUMBERED.search(cell)


@pytest.mark.slow
@of_each_pair
@pytest.mark.parametrize("verb", ["diff", "diff --names", "diff --names --by path"])
def test_a_comparison_shows_no_mangled_name_no_address_and_no_two_rows_alike(
    pair: tuple[Path, Path], verb: str, run: Any, frames: list[pd.DataFrame]
) -> None:
    ran = run(*verb.split(), *map(str, pair))
    assert ran.code == 0
    assert not MANGLED.search(ran.out)
    assert not ADDRESS.search(ran.out)
    for frame in frames:
        for width in (80, 120, 400):
            _hold(frame, width)


@pytest.mark.slow
@of_each_pair
@pytest.mark.parametrize("count", [1, 2])
def test_a_page_shows_no_mangled_name_no_address_and_no_two_rows_alike(
    pair: tuple[Path, Path], count: int, run: Any, frames: list[pd.DataFrame], tmp_path: Path
) -> None:
    compared = ["--compare"] if count == 2 else []
    assert run("report", *map(str, pair[:count]), *compared, "-o", tmp_path / "page.html").code == 0
    text = re.sub(r"<script.*?</script>", "", (tmp_path / "page.html").read_text(), flags=re.DOTALL)
    without_links = re.sub(r'\shref="[^"]*"', "", text)
    assert not MANGLED.search(without_links)
    assert not ADDRESS.search(without_links)
    assert frames
    for frame in frames:
        _hold(frame, 400)


# what a prediction selects

HOSTILE = (
    "f,name=g", "f", "f:2", 'a"b', "[memory]", "a*", "void f<1>(int)", "void f<2>(int)", "f?",
    "at::(anonymous namespace)::f", "at::f", "_Z1fi", "_Z1ff", "a b", "regex=x", "sgemm",
    "void sgemm<__nv_bfloat16>(int)", "void dgrad_engine<float>(a,op=b)",
)  # fmt: skip


@given(st.lists(st.sampled_from(HOSTILE), min_size=1, unique=True))
def test_the_suggested_prediction_of_kernels_selects_the_first_row_alone(names: list[str]) -> None:
    graph = load([step(1, 0, 50), *_work(names)])
    report = kernels_report(graph, ["job"])
    line = next(text for text in report.sentences if "htagraph what-if" in text)
    words = shlex.split(line[line.index("htagraph") :])
    chosen = _chosen(graph, words[words.index("--scale") + 1])
    first_row = next(iter(report.tables.values())).iloc[0]
    assert {graph.names[name] for name in graph.activities.name[chosen]} == {first_row["name"]}


@given(st.lists(st.sampled_from(HOSTILE), min_size=1, unique=True))
def test_the_changes_of_a_remedy_select_what_it_is_about(names: list[str]) -> None:
    graph = load([step(1, 0, 50), *_work(names)])
    for claim in REMEDY.when(Results(graph)):
        if claim.about == "single precision":
            assert claim.change is not None
            texts = claim.change.options[1::2]
            chosen = np.logical_or.reduce([_chosen(graph, text) for text in texts])
            assert set(claim.rows) <= set(np.flatnonzero(chosen).tolist())
            assert not [name for name in graph.activities.name[chosen] if "bfloat16" in graph.names[name]]


def _chosen(graph: hg.DependencyGraph, change: str) -> Mask:
    """Return a mask of the activities that the criteria of a change ``CRITERIA:FACTOR`` select."""
    return mask_of(graph, cast("Criteria", criteria(change.rpartition(":")[0])))


def _work(names: list[str]) -> list[dict[str, Any]]:
    launches = [launch(at, 1, at + 1) for at in range(len(names))]
    return launches + [kernel(name, 100 + 1000 * at, 900 - at, at + 1) for at, name in enumerate(names)]


# names of two runs

ADDRESSES = st.lists(st.integers(1 << 24, (1 << 48) - 1), min_size=4, max_size=4, unique=True)


def _run(addresses: list[int], line: int, count: int) -> hg.DependencyGraph:
    first, second, third, fourth = (f"0x{address:x}" for address in addresses)
    events = [op(f"<built-in method mm of Tensor object at {first}>", 0, 40), op(f"model.py({line}): forward", 50, 40)]
    names = [
        f"kernel_gemm_object_at_{second}_tile", f"void f<(int*){third}>(int)", f"g at {fourth}",
        f"void at::_GLOBAL__N__{addresses[0] & 0xFFFFFFFF:08x}_4_a_cu_{addresses[1] & 0xFFFFFFFF:08x}::h(int)",
    ]  # fmt: skip
    for at in range(count):
        events += [launch(1 + at, 1, at + 1), kernel(names[at % len(names)], 100 + 10 * at, 5, at + 1)]
    return load(events)


@given(ADDRESSES, ADDRESSES, st.integers(1, 99), st.integers(1, 99), st.integers(1, 9))
def test_addresses_hashes_and_lines_make_no_name_added_or_removed(
    before: list[int], after: list[int], first: int, second: int, count: int
) -> None:
    jobs = _run(before, first, count), _run(after, second, count)
    for by in ("name", "short_name", "path"):
        assert set(compare(*jobs, by=by)["change"]) == {"same"}, by
    change = diff(*jobs)
    assert (len(change.added), len(change.removed), len(change.renamed)) == (0, 0, 0)


def test_a_mangled_name_is_the_readable_name_of_another_recording() -> None:
    pytest.importorskip("demangle")
    jobs = [load([launch(0, 1, 1), kernel(name, 10, 5, 1)]) for name in ("_Z4gemmIfEvPT_", "void gemm<float>(float*)")]
    table = compare(*jobs, device="device")
    assert table["change"].tolist() == ["same"]
    assert jobs[0].activities.kind[-1] == ActivityKind.COMPUTATION
