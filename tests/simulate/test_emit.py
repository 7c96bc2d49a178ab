"""The files are Kineto's: they parse, their times are exact, and their ids link what they should."""

import ast
import gzip
import hashlib
import json
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import htagraph.simulate as package
from htagraph.simulate import Category, Era, Job, Simulated, demo_job, read_truth, scale_job, simulate, write_stream
from htagraph.simulate.formats import STYLES
from tests.patience import PATIENCE_S

ERAS: tuple[Era, ...] = get_args(Era)
JOB = Job(
    ranks=2,
    steps=2,
    layers=1,
    clock_offsets_us=(0.0, -321.5),
    clock_drift_ppm=(0.0, 40.0),
    with_stack=True,
    record_shapes=True,
)
RELATIVE = ("2024", "2026")


def run(era: Era) -> Simulated:
    return simulate(JOB.model_copy(update={"era": era}))


def events(job: Simulated, rank: int) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(job.text(rank))["traceEvents"]
    return loaded


def nanoseconds(era: Era, text: str) -> int:
    """Read a timestamp as the era wrote it."""
    if era == "2024-03":
        whole, _, fraction = text.partition(".")
        return int(whole) * 1000 + int(fraction)
    return round(Decimal(text) * 1000)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("rank", [0, 1])
def test_times_survive(era: Era, rank: int) -> None:
    job = run(era)
    trace = json.loads(job.text(rank), parse_float=str, parse_int=str)
    columns = job.ranks[rank]
    assert (len(trace["traceEvents"]) > columns.position).all()
    assert ("baseTimeNanoseconds" in trace) == (era in RELATIVE)
    clock = job.truth.clocks[rank]
    whole = era in ("2021", "2022")
    for i, position in enumerate(columns.position.tolist()):
        event = trace["traceEvents"][position]
        assert event["name"].startswith(columns.name[i])
        moments = [int(columns.start_ns[i]), int(columns.end_ns[i])]
        start, end = (t + round(t * clock.drift_ppm * 1e-6) + clock.offset_ns + clock.start_ns for t in moments)
        assert nanoseconds(era, event["ts"]) == (start // 1000 * 1000 if whole else start)
        assert nanoseconds(era, event["dur"]) == ((end - start) // 1000 * 1000 if whole else end - start)


def test_the_base_is_on_kinetos_grid() -> None:
    for era in RELATIVE:
        base = json.loads(run(era).text(0))["baseTimeNanoseconds"]  # type: ignore[arg-type]
        assert base % (7_889_238 * 10**9) == 0
        assert 0 < STYLES[era].start_ns < 7_889_238 * 10**9  # type: ignore[index]


@pytest.mark.parametrize("era", ERAS)
def test_links_are_complete(era: Era) -> None:
    trace = events(run(era), 0)
    complete = [event for event in trace if event["ph"] == "X" and event["cat"] != "Trace"]
    device = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
    calls = {e["args"]["correlation"]: e for e in complete if e["cat"] in ("cuda_runtime", "cuda_driver", "Runtime")}
    ops = {e["args"]["External id"]: e for e in complete if e["cat"] in ("cpu_op", "Operator")}
    works = [e for e in complete if e["cat"] in device]
    assert works
    assert len(ops) == sum(e["cat"] in ("cpu_op", "Operator") for e in complete)
    for work in works:
        call = calls[work["args"]["correlation"]]
        assert call["ts"] <= work["ts"]
        if era in ("2021", "2022"):
            assert work["args"]["External id"] == work["args"]["correlation"]
        else:
            op = ops[work["args"]["External id"]]
            assert op["ts"] <= call["ts"] <= op["ts"] + op["dur"]
            assert op["tid"] == call["tid"]


def test_flows_start_once_and_end_at_their_work() -> None:
    trace = events(run("2026"), 0)
    starts = {(e["cat"], e["id"]): e for e in trace if e["ph"] == "s"}
    ends = [e for e in trace if e["ph"] == "f"]
    assert len(starts) == sum(e["ph"] == "s" for e in trace)
    backward = [e for e in ends if e["cat"] == "fwdbwd"]
    assert backward
    assert all(starts["fwdbwd", e["id"]]["ts"] <= e["ts"] for e in backward)
    launched = [e for e in ends if e["cat"] == "ac2g" and e["pid"] == 0 and ("ac2g", e["id"]) in starts]
    assert len({e["id"] for e in launched}) > 50


@pytest.mark.parametrize("part", ["forward", "optimizer"])
def test_a_cuda_graph_is_one_call_with_many_works_and_no_operators(part: str) -> None:
    job = Job(ranks=1, steps=2, layers=1, cuda_graph=part)
    rows = [row for row in events(simulate(job), 0) if row["ph"] == "X"]
    calls = [row["args"]["correlation"] for row in rows if row["name"] == "cudaGraphLaunch"]
    assert len(calls) == len(set(calls)) == 2
    works = [row["args"] for row in rows if row["cat"] == "kernel" and row["args"]["correlation"] == calls[1]]
    assert [work["graph node id"] for work in works] == list(range(1, len(works) + 1))
    assert {work["graph id"] for work in works} == {1}
    assert len(works) > 4
    left = {"forward": "aten::addmm", "optimizer": "aten::_foreach_mul_"}[part]
    assert left not in {row["name"] for row in rows}


def test_sequence_numbers_pair_forward_with_backward() -> None:
    trace = events(run("2026"), 0)
    forward: Counter[int] = Counter()
    backward: Counter[int] = Counter()
    for event in trace:
        args = event.get("args", {})
        if "Sequence number" in args:
            (backward if args["Fwd thread id"] else forward)[args["Sequence number"]] += 1
    assert forward.keys() == backward.keys()


def test_sync_rows_name_their_record() -> None:
    trace = events(run("2026"), 0)
    rows = [e for e in trace if e.get("cat") == "cuda_sync"]
    calls = {e["args"]["correlation"]: e for e in trace if e.get("cat") == "cuda_runtime"}
    assert {e["name"] for e in rows} == {"Stream Wait Event", "Stream Sync", "Context Sync"}
    for row in rows:
        call = calls[row["args"]["correlation"]]
        assert call["ts"] <= row["ts"] <= row["ts"] + row["dur"] <= call["ts"] + call["dur"] + 1e-3
        if row["name"] == "Stream Wait Event":
            record = calls[row["args"]["wait_on_cuda_event_record_corr_id"]]
            assert record["name"] == "cudaEventRecord"
            assert record["ts"] <= call["ts"]


def test_collectives_carry_the_same_ids_on_all_ranks() -> None:
    job = simulate(Job(ranks=4, steps=2, layers=2, tp=2, microbatches=2))
    traces = [events(job, rank) for rank in range(4)]
    seen: dict[int, set[int]] = {}
    for collective in job.truth.collectives:
        for member in collective.members:
            args = traces[member.rank][member.event]["args"]
            assert args["Process Group Ranks"] == str(list(collective.ranks))
            assert args["Process Group Name"] == collective.group
            seen.setdefault(collective.id, set()).add(args["Comms Id"])
    assert all(len(ids) == 1 for ids in seen.values())
    assert len(set.union(*seen.values())) == len(seen)
    assert any(value > 2**63 for value in set.union(*seen.values()))


def test_what_is_switched_off_is_absent() -> None:
    off = {"cuda_sync": False, "group_args": False, "flows": False, "with_stack": False, "record_shapes": False}
    job = simulate(JOB.model_copy(update=off))
    text = job.text(0)
    for part in ("cuda_sync", "Process Group", "Collective name", '"ph": "s"', "python_function", "Input Dims"):
        assert part not in text
    assert same_times(job, run("2026"))


def same_times(one: Simulated, other: Simulated) -> bool:
    ops = [rank.end_ns[rank.select(Category.CPU_OP, Category.KERNEL)] for rank in (*one.ranks, *other.ranks)]
    half = len(ops) // 2
    return all(np.array_equal(a, b) for a, b in zip(ops[:half], ops[half:], strict=True))


def test_rocm_has_stream_0_and_hip_calls() -> None:
    job = simulate(JOB.model_copy(update={"device": "rocm"}))
    trace = events(job, 0)
    kernels = [e for e in trace if e.get("cat") == "kernel"]
    assert {e["args"]["stream"] for e in kernels} == {0, 13}
    assert {e["args"]["kind"] for e in kernels} == {"Dispatch Kernel"}
    assert any(e["name"] == "hipLaunchKernel" for e in trace)
    assert not any(e.get("cat") == "cuda_sync" for e in trace)
    assert not any(e["name"].startswith("cuda") for e in trace)


def test_files_and_truth_are_written(tmp_path: Path) -> None:
    job = run("2026")
    paths = job.write(tmp_path)
    assert [path.name for path in paths] == ["rank-0.json.gz", "rank-1.json.gz"]
    assert gzip.decompress(paths[1].read_bytes()).decode() == job.text(1)
    assert read_truth(tmp_path / "truth" / "truth.json.gz") == job.truth
    assert Job.model_validate(job.truth.job) == job.job
    plain = job.write(tmp_path / "plain", suffix=".json")
    assert plain[0].read_text() == job.text(0)


def test_a_stream_of_steps_holds_the_same_events(tmp_path: Path) -> None:
    write_stream(JOB, tmp_path)
    job = simulate(JOB)
    for rank in range(JOB.ranks):
        text = gzip.decompress((tmp_path / f"rank-{rank}.json.gz").read_bytes())
        streamed = json.loads(text)["traceEvents"]
        key = [json.dumps(event, sort_keys=True) for event in streamed]
        assert sorted(key) == sorted(json.dumps(event, sort_keys=True) for event in events(job, rank))


@pytest.mark.parametrize("count", [10_000, 60_000])
def test_scale_jobs_have_the_size_asked_for(count: int, tmp_path: Path) -> None:
    write_stream(scale_job(count), tmp_path)
    text = gzip.decompress((tmp_path / "rank-0.json.gz").read_bytes())
    assert text.count(b'"ph": "X"') == pytest.approx(count, rel=0.05)


def test_another_process_writes_the_same_bytes() -> None:
    code = (
        "import hashlib; from htagraph.simulate import *;"
        "s = simulate(Job(ranks=2, steps=1, layers=1));"
        "print(hashlib.sha256((s.text(0) + s.text(1)).encode()).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    job = simulate(Job(ranks=2, steps=1, layers=1))
    assert other.stdout.strip() == hashlib.sha256((job.text(0) + job.text(1)).encode()).hexdigest()


def test_the_demo_is_small_and_has_a_straggler(tmp_path: Path) -> None:
    job = simulate(demo_job())
    job.write(tmp_path, level=9)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.gz")) < 300_000
    assert [slow["rank"] for slow in job.truth.stragglers] == [2]


def test_the_simulator_shares_no_code_with_the_rest() -> None:
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("htagraph") or name.startswith("htagraph.simulate"), (path, name)


def test_public_names_are_declared() -> None:
    assert set(package.__all__) <= set(dir(package))
    assert len(set(package.__all__)) == len(package.__all__)
