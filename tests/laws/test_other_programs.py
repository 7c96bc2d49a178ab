"""Programs without PyTorch, and files of other profilers, get no verdict and no advice that their rows do not carry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.core.naming import is_of_pytorch
from htagraph.graph.measures.ledger import Part
from tests.command_line import Ran
from tests.trace.nsys.made import (
    CALLS,
    COPIES,
    KERNELS,
    RANGES,
    SESSION,
    Strings,
    call,
    export,
    global_pid,
    kernel,
    ranged,
)

Json = dict[str, Any]
_OF_PYTORCH = re.compile(
    r"torch|DataLoader|pin_memory|autocast|non_blocking|with_stack|record_shapes|profile_memory", re.I
)
_VERDICT = re.compile(r"Bound by|saves|would take|[Dd]evices? waits?|activities=|CUDA graphs")
_VERBS: tuple[tuple[str, ...], ...] = (
    ("summary", "--full"), ("summary",), ("validate",), ("critical-path",), ("idle",), ("kernels",), ("launches",),
    ("kernels", "--by", "module"), ("kernels", "--by", "shape"), ("plan",), ("plan", "-k", "3"), ("phases",),
    ("memory",),    ("roofline",), ("stragglers",), ("collectives",), ("what-if", "--infinite-host"),
)  # fmt: skip


def _solver(path: Path, *, ranges: bool) -> Path:
    """Write what Nsight Systems records of a solver in C++: kernels and pageable copies, maybe named iterations."""
    strings = Strings()
    tables: dict[str, list[Json]] = {KERNELS: [], CALLS: [], COPIES: [], RANGES: []}
    number = at = 0
    for _ in range(40):
        begin = at
        for each in range(10):
            number += 1
            name = ("void jacobi<float>(float*, int)", "magma_sgemmEx_kernel<float, float>(int)")[each % 2]
            tables[CALLS].append(call(at, at + 4_000, strings("cudaLaunchKernel_v7000"), number))
            tables[KERNELS].append(kernel(at + 8_000, at + 14_000, strings(name), number))
            at += 20_000
        number += 1
        tables[CALLS].append(call(at, at + 300_000, strings("cudaMemcpyAsync_v3020"), number))
        tables[COPIES].append({
            "start": at + 20_000, "end": at + 290_000, "deviceId": 0, "contextId": 1, "streamId": 7, "copyKind": 2,
            "correlationId": number, "globalPid": global_pid(), "bytes": 10_000_000, "srcKind": 0, "dstKind": 2,
        })  # fmt: skip
        at += 1_310_000
        tables[RANGES].append(ranged(begin, at, "iteration"))
    if not ranges:
        del tables[RANGES]
    return export(path, {**tables, **SESSION}, strings)


@pytest.mark.slow
@pytest.mark.parametrize("ranges", [False, True], ids=["plain", "with_ranges"])
def test_a_program_without_pytorch_gets_no_advice_for_pytorch(*, ranges: bool, tmp_path: Path, run: Any) -> None:
    path = _solver(tmp_path / "solver.sqlite", ranges=ranges)
    assert not any(map(is_of_pytorch, hg.load(path).names))
    for words in _VERBS:
        for form in ("table", "json"):
            ran: Ran = run(words[0], path, *words[1:], "--format", form)
            said = ran.out.replace(str(path), "")
            assert ran.code == 0, (words, ran.err)
            assert not _OF_PYTORCH.search(said), (words, _OF_PYTORCH.search(said))


def _ascend(path: Path, *, operators: bool) -> Path:
    """Write a timeline as the profiler of Ascend's PyTorch does: rows of the device have no category."""
    python, cann, device, overlap = 11, 12, 13, 14
    names = {python: "Python", cann: "CANN", device: "Ascend Hardware", overlap: "Overlap Analysis"}
    events: list[Json] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}} for pid, name in names.items()
    ]

    def row(pid: int, tid: int, name: str, start: float, lasts: float, **more: Any) -> None:
        ts = f"{1_735_200_000_000_000 + start:.3f}"
        events.append({"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": lasts, "args": {}, **more})

    for step in range(5):
        at = 10_000.0 * step
        if operators:
            row(python, 77, f"ProfilerStep#{step}", at, 9_900, cat="user_annotation")
        for number in range(30):
            begin = at + 60 * number
            if operators:
                row(python, 77, "aten::mm", begin, 30, cat="cpu_op")
                row(python, 77, "Enqueue@MatMulV2", begin + 10, 5, cat="enqueue")
                row(python, 78, "Dequeue@MatMulV2", begin + 20, 15, cat="dequeue")
            row(cann, 78, "Node@launch", begin + 24, 6)
            row(device, 2, "aclnnMatmul_MatMulV2", at + 300 + 250 * number, 245)
            row(overlap, 0, "Computing", at + 300 + 250 * number, 245)
        row(cann, 77, "AscendCL@aclrtSynchronizeStreamWithTimeout", at + 1_850, 7_600)
    path.write_text(json.dumps(events))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("operators", [False, True], ids=["device", "with_operators"])
def test_a_timeline_of_ascend_gets_no_verdict_about_a_device_that_it_does_not_name(
    *, operators: bool, tmp_path: Path, run: Any
) -> None:
    path = _ascend(tmp_path / "trace_view.json", operators=operators)
    assert hg.load(path).ledger.lacks == {Part.MEANING}
    for words in _VERBS:
        ran: Ran = run(words[0], path, *words[1:])
        said = " ".join(ran.out.replace(str(path), "").split())
        assert ran.code == 0, (words, ran.err)
        assert not _VERDICT.search(said), (words, _VERDICT.search(said))
        assert not re.search(r"torch\.|DataLoader|autocast|with_stack|profile_memory", said), words
        if words[0] not in ("validate", "what-if"):
            assert "another program wrote the file" in said, words


def test_words_of_pytorch_are_known() -> None:
    for name in ("aten::mm", "void at::native::add<4>()", "torch/nn/modules/module.py(1): x", "triton_poi_fused_add_0"):
        assert is_of_pytorch(name) is (name != "torch/nn/modules/module.py(1): x"), name
    for name in ("jacobi", "MPI_Allreduce", "data::native", "cudaLaunchKernel", "ncclDevKernel_AllReduce"):
        assert not is_of_pytorch(name), name
