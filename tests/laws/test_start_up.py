"""Start-up put into steady jobs is found to the µs, every report names the same sum, and steady jobs have none."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.findings.device_idle import idle_times
from htagraph.findings.finding import claims_that_are, gain_in
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from htagraph.findings.start_up import NOTES, START_UP, StartUpClaim, start_up_text
from htagraph.findings.verbs.gains import CONCLUSIONS
from htagraph.findings.verdict import claims_of
from htagraph.output.report import CONTENTS, Report
from htagraph.output.reports.changes import what_if_report
from htagraph.output.reports.device_time import idle_report, phases_report
from htagraph.output.reports.queues import launches_report
from htagraph.output.reports.ranks import collectives_report, critical_path_report, plan_report, stragglers_report
from htagraph.output.reports.two_jobs import diff_report, names_report
from htagraph.queries.start_up import start_up_by_rank
from htagraph.queries.waited_for import waited_for
from htagraph.simulate import Job, SlowRank, simulate
from tests.reach import DATA, DATASETS, REAL, graph_of, label, raw_events
from tests.strategies import OTHER, Json, complete, kernel, launch, load, op, runtime

STEADY = [DATA / "demo", DATA / "gpu_demo" / "train"]
STARTED = (
    "resnet50_2021", "benchmark_result_924719", "mi250_minitoy_train", "benchmark_simple_add", "alexnet", "simple_add",
)  # fmt: skip
"""Real recordings in which a process starts: contexts, streams and libraries of 300 ms to 30 s, or a first launch of
6.5 ms in a recording of 9.6 ms. Read in the raw events."""
KERNELS = ("kernel",)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("rank*.json*"))


def first_launches(events: Sequence[Json]) -> list[Json]:
    """Return the calls that launch each kernel for the first time, by the raw events alone."""
    by_id = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") == "cuda_runtime" and "aunch" in event["name"]
    }
    first: dict[str, Json] = {}
    for event in events:
        call = by_id.get(event.get("args", {}).get("correlation")) if event.get("cat") in KERNELS else None
        if call is not None and (event["name"] not in first or call["ts"] < first[event["name"]]["ts"]):
            first[event["name"]] = call
    return list({id(call): call for call in first.values()}.values())


def warped(events: Sequence[Json], added: Mapping[float, float]) -> list[Json]:
    """Return events after time was added at some moments, µs: calls of hosts take so much longer, devices go on."""
    moments = np.array(sorted(added))
    total = np.concatenate(([0.0], np.cumsum([added[moment] for moment in sorted(added)])))

    def later(time: float) -> float:
        return float(time + total[np.searchsorted(moments, time, side="right")])

    moved = []
    for event in events:
        if "ts" not in event:
            moved.append(event)
            continue
        start = later(float(event["ts"]))
        is_host = event.get("cat", "") not in ("kernel", "gpu_memcpy", "gpu_memset")
        end = later(float(event["ts"]) + float(event.get("dur", 0)))
        moved.append({**event, "ts": start, **({"dur": end - start} if "dur" in event and is_host else {})})
    return moved


@cache
def started(folder: Path, load_us: int, seed: int) -> tuple[hg.DependencyGraph, dict[int, float]]:
    """Return a job that loads a module in the first launch of each kernel, and how long that takes by rank, µs."""
    job: dict[int, list[Json]] = {}
    added_us: dict[int, float] = {}
    for rank, path in enumerate(files(folder)):
        events = raw_events(path)
        draw = random.Random(seed)  # ranks load alike, so that collectives stay as they are
        added = {
            float(call["ts"]) + float(call["dur"]) / 2: float(draw.randint(load_us, 2 * load_us))
            for call in first_launches(events)
        }
        job[rank] = warped(events, added)
        added_us[rank] = sum(added.values())
    return load(job), added_us


@pytest.mark.parametrize("folder", STEADY, ids=label)
@pytest.mark.parametrize(("load_us", "seed"), [(2_000, 0), (9_000, 1)])
def test_time_that_first_launches_take_is_start_up_to_the_us(folder: Path, load_us: int, seed: int) -> None:
    graph, added_us = started(folder, load_us, seed)
    events = raw_events(files(folder)[0])
    longest_us = max(float(call["dur"]) for call in first_launches(events))  # a launch, before any time was added
    tolerance_us = longest_us + 2 * len(first_launches(events))
    assert {rank: ns / 1000 for rank, ns in start_up_by_rank(graph).items()} == pytest.approx(
        added_us, abs=tolerance_us, rel=0
    )
    assert hg.what_if(graph).run().saved_ns == 0
    graph.check()


LOAD_US = 8_000.0
JOBS = {
    "one step": Job(ranks=1, steps=1, layers=3, kernel_us=40.0),
    "one step of two ranks": Job(ranks=2, steps=1, layers=3, kernel_us=40.0),
    "bound by the host": Job(ranks=1, steps=5, layers=2, kernel_us=15.0),
    "bound by the device": Job(ranks=1, steps=5, layers=2, kernel_us=150.0),
    "two ranks": Job(ranks=2, steps=5, layers=2, kernel_us=40.0),
    "a straggler": Job(ranks=3, steps=5, layers=2, kernel_us=80.0, slow_ranks=(SlowRank(rank=1, factor=1.4),)),
    "that waits for its device in each step": Job(ranks=2, steps=5, layers=2, kernel_us=40.0, synchronize="step"),
}
"""Jobs whose simulator knows how long each kernel takes to load; all else of a job stays the same, to the ns."""


FILES = TemporaryDirectory()
"""Graphs read arguments of events again from their files."""


@cache
def simulated(name: str, load_us: float) -> hg.DependencyGraph:
    folder = Path(FILES.name, name, str(load_us))
    simulate(JOBS[name].model_copy(update={"load_us": load_us})).write(folder, truth=False)
    return hg.load(folder)


def loaded_ns(name: str) -> dict[int, int]:
    """Return by how much the launches of each rank take longer where kernels load, ns."""
    steady, starting = (simulated(name, load_us).activities for load_us in (0.0, LOAD_US))
    calls = steady.kind == ActivityKind.LAUNCH
    assert np.array_equal(steady.name[calls], starting.name[calls])
    longer = starting.duration[calls] - steady.duration[calls]
    loads = longer > LOAD_US * 500
    rank = steady.rank[calls][loads]
    return {one: int(longer[loads][rank == one].sum()) for one in np.unique(rank).tolist()}


@pytest.mark.parametrize("name", JOBS)
def test_loads_that_the_simulator_adds_are_start_up(name: str) -> None:
    expected = loaded_ns(name)
    tolerance_ns = 20 * 10_000  # a launch usually takes 5 µs, and some 20 kernels load
    assert start_up_by_rank(simulated(name, LOAD_US)) == pytest.approx(expected, abs=tolerance_ns)
    assert start_up_by_rank(simulated(name, 0.0)) == {}


@pytest.mark.parametrize("name", JOBS)
def test_the_job_without_start_up_takes_as_long_as_the_steady_job(name: str) -> None:
    steady, starting = (Results(simulated(name, load_us)) for load_us in (0.0, LOAD_US))
    steps = max(steady.steps, 1) / max(starting.steps, 1)
    assert starting.makespan_ns * steps == pytest.approx(steady.makespan_ns, rel=0.01)
    assert starting.bound.cause == steady.bound.cause
    for cause, gain_ns in steady.free.items():
        assert starting.free.get(cause, 0) * steps == pytest.approx(gain_ns, abs=0.02 * steady.makespan_ns)


BY_START_UP = {"start_up", "uneven_steps"}
"""What is said of a start: itself, and the step that has it."""
OF_PATH = {"bound", "host_pause", "recorded"}
"""Claims whose figure is a share of the critical path. Two paths of these jobs are as long but for a thousandth, by the
launches and by the kernels, and either is the critical one: only the bound itself has to be the same."""


@pytest.mark.parametrize("name", JOBS)
def test_all_else_that_is_claimed_is_claimed_of_the_steady_job(name: str) -> None:
    steady, starting = (Results(simulated(name, load_us)) for load_us in (0.0, LOAD_US))
    expected = {(claim.says, claim.about): claim for claim in claims_of(steady)}
    claims = {(claim.says, claim.about): claim for claim in claims_of(starting) if claim.says not in BY_START_UP}
    # of claims near a limit that is asked of a share, one may be missing
    differing = {key for key in expected.keys() ^ claims.keys() if key[0] != "host_pause"}
    assert len(differing) <= 2, differing
    makespan_us = steady.makespan_ns / 1000
    for key in (key for key in expected.keys() & claims.keys() if key[0] not in OF_PATH):
        scale = makespan_us if expected[key].unit == "us" else 100.0
        assert claims[key].figure == pytest.approx(expected[key].figure, abs=0.01 * scale), key


@pytest.mark.parametrize("name", JOBS)
def test_a_plan_and_interruptions_are_those_of_the_steady_job(name: str) -> None:
    steady, starting = (simulated(name, load_us) for load_us in (0.0, LOAD_US))
    assert len(hg.interruptions(starting)) == len(hg.interruptions(steady))
    step_us = Results(steady).makespan_ns / max(Results(steady).steps, 1) / 1000
    assert hg.plan(starting).saved_us == pytest.approx(hg.plan(steady).saved_us, abs=0.05 * step_us)


REPORTS: dict[str, Callable[[hg.DependencyGraph], Report]] = {
    "idle": lambda graph: idle_report(graph, ["job"]),
    "stragglers": lambda graph: stragglers_report(graph, ["job"]),
    "collectives": lambda graph: collectives_report(graph, ["job"]),
    "launches": lambda graph: launches_report(graph, ["job"]),
    "phases": lambda graph: phases_report(graph, ["job"]),
    "plan": lambda graph: plan_report(graph, ["job"]),
    "what-if": lambda graph: what_if_report([hg.what_if(graph).infinite_host().run()], ["--infinite-host"]),
    "diff": lambda graph: diff_report(hg.diff(graph, graph), hg.compare(graph, graph), ["a", "b"]),
    "diff --names": lambda graph: names_report([graph, graph], hg.compare(graph, graph), ["a", "b"]),
    "critical-path": lambda graph: critical_path_report(hg.critical_path(graph), ["job"]),
}
"""The reports that speak of idle devices, of waits, of time of the host, of what bounds a job or of what gains."""
COMMAND_OF = {"diff --names": "diff"}
"""The command of a report that an option asks for."""
OTHERS = {
    "summary": "a test of the verdict",
    "capacity": "its prediction notes what it leaves out",
    "kernels": "device work alone, which a start has only where kernels are tried out",
    "roofline": "device work alone",
    "counters": "device work alone",
    "patterns": "device work alone",
    "memory": "no times",
    "validate": "what was recorded",
    "select": "what was recorded",
    "event": "what was recorded",
    "execution-trace": "what was recorded",
    "jobs": "no job was read",
    "cache info": "no job was read",
    "cache clear": "no job was read",
    "summary --scheduler": "digests of ranks",
    "stragglers --scheduler": "digests of ranks",
}
"""The other commands, and why a law of reports leaves them out."""


def test_a_command_names_start_up_or_has_a_reason_not_to() -> None:
    assert not set(REPORTS) & set(OTHERS)
    assert set(REPORTS) | set(OTHERS) >= set(CONTENTS)


@pytest.mark.parametrize(
    "path", [path for path in REAL if path.name.startswith(STARTED) and path.stat().st_size < 400_000], ids=label
)
def test_all_reports_of_a_recorded_start_name_one_time(path: Path) -> None:
    graph = graph_of(path)
    text = start_up_text(graph)
    withheld = {report for report in REPORTS if CONTENTS[COMMAND_OF.get(report, report)].rests_on & graph.ledger.lacks}
    for command in REPORTS.keys() - withheld:
        about = [each for each in REPORTS[command](graph).sentences if "tart-up takes" in each or "tart-up is" in each]
        assert about, command
        assert all(text in each for each in about), (command, about)


@pytest.mark.parametrize("path", [path for path in REAL if path.name.startswith(STARTED)], ids=label)
def test_the_share_of_start_up_is_that_of_the_times_beside_it(path: Path) -> None:
    claims = claims_that_are(StartUpClaim, claims_of(Results(graph_of(path)), [START_UP]))
    for claim in claims:
        said = START_UP.whole(claim)
        part_us = gain_in(claim).value_us
        if not part_us:
            continue
        assert claim.figure == pytest.approx(100 * part_us / claim.path_us)
        assert said.endswith(f"is start-up, {time_text(part_us)}.") or f": {time_text(part_us)} " in said


@pytest.mark.parametrize("command", REPORTS)
def test_every_report_names_the_same_start_up(command: str) -> None:
    graph, _ = started(DATA / "demo", 9_000, 1)
    said = " ".join(REPORTS[command](graph).sentences)
    assert start_up_text(graph) in said
    steady = hg.load(DATA / "demo")
    assert "Start-up" not in " ".join(REPORTS[command](steady).sentences)


def test_every_note_belongs_to_a_report_that_is_checked() -> None:
    assert set(NOTES) <= {*REPORTS, "kernels"}


def test_the_verdict_names_start_up_and_never_calls_it_a_remedy() -> None:
    graph, _ = started(DATA / "demo", 9_000, 1)
    claims = claims_of(Results(graph))
    assert [claim for claim in claims if claim.says == "start_up"]
    assert not [claim for claim in claims if claim.says == "remedy" and claim.about == "allocator"]
    assert [claim for claim in claims_of(Results(graph), CONCLUSIONS) if claim.says == "start_up"]


@pytest.mark.parametrize("path", [*DATASETS, *REAL], ids=label)
@pytest.mark.slow
def test_recordings_of_steady_jobs_have_no_start_up(path: Path) -> None:
    graph = graph_of(path)
    assert bool(start_up_by_rank(graph)) == path.name.startswith(STARTED)


ROUNDS = 5
KERNELS_OF_ROUND = 6


def rounds(*, load_us: float, late_us: float, kernel_us: float) -> list[Json]:
    """Return rounds of the same kernels, whose first launches take longer and whose first runs start late."""
    events: list[Json] = []
    at = free = 0.0
    for number in range(ROUNDS * KERNELS_OF_ROUND):
        is_first = number < KERNELS_OF_ROUND
        call_us = 8 + is_first * load_us
        start = max(at + call_us + 4 + is_first * late_us, free + 1)
        events.append(op("aten::mul", at - 2, call_us + 6))
        events.append(launch(at, call_us, number + 1))
        events.append(kernel(f"kernel_{number % KERNELS_OF_ROUND}", start, kernel_us, number + 1))
        free = start + kernel_us
        at += call_us + 40
    return [*events, runtime("cudaDeviceSynchronize", at, max(free - at, 0) + 10)]


def stray_thread(until: float) -> list[Json]:
    """Return the frames of a thread that waits for messages from the start of the job to long after it."""
    frames = ("threading.py(973): _bootstrap", "loguru/_handler.py(267): _queued_writer", "connection.py(250): recv")
    return [
        complete("python_function", name, depth, until + 300_000 - 2 * depth, tid=OTHER)
        for depth, name in enumerate(frames)
    ]


@pytest.mark.parametrize("kernel_us", [30.0, 150.0])
@pytest.mark.parametrize("late_us", [0.0, 2_400.0])
@pytest.mark.parametrize("is_beside_thread", [False, True])
def test_the_rest_of_a_start_is_the_steady_job(kernel_us: float, late_us: float, *, is_beside_thread: bool) -> None:
    """Late first runs, and a thread that waits as long as the process lives, are no part of the rest."""
    steady = Results(load(rounds(load_us=0, late_us=0, kernel_us=kernel_us)))
    events = rounds(load_us=9_000, late_us=late_us, kernel_us=kernel_us)
    until = max(event["ts"] + event["dur"] for event in events)
    starting = Results(load([*events, *stray_thread(until) * is_beside_thread]))
    assert starting.makespan_ns == pytest.approx(steady.makespan_ns, rel=0.03)
    rest = idle_times(starting)
    usual = idle_times(steady)
    busy = [1 - table["idle_us"].sum() / table["window_us"].iloc[0] for table in (rest, usual)]
    assert busy[0] == pytest.approx(busy[1], abs=0.03)
    for cause, gain_ns in steady.free.items():
        assert starting.free.get(cause, 0) == pytest.approx(gain_ns, abs=0.03 * steady.makespan_ns)


def test_idle_time_before_a_late_first_run_is_that_of_its_launch() -> None:
    graph = load(rounds(load_us=9_000, late_us=2_400, kernel_us=30))
    table = waited_for(graph)
    assert "not known" not in set(table["waited_for"])
    assert table["what"].iloc[0] == "cudaLaunchKernel"
    assert table["inside"].iloc[0] == "aten::mul"


def test_start_up_is_a_row_of_its_own_name_and_no_share_of_the_rest() -> None:
    graph = load(rounds(load_us=9_000, late_us=2_400, kernel_us=150))
    table = hg.changes(graph).to_frame()
    of_start = table["finding"] == "start_up"
    assert table.loc[of_start, "change"].tolist() == ["start-up"]
    assert table.loc[of_start, "gain_percent"].isna().all()
    makespan_us = Results(graph).makespan_ns / 1000
    steps = max(Results(graph).steps, 1)
    rest = table[~of_start]
    assert (100 * rest["gain_us"] * steps / makespan_us).tolist() == pytest.approx(rest["gain_percent"].tolist())
