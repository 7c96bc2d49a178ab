"""ByteDance's published straggler analysis, reproduced on our graph; its model on random jobs, against plain loops."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.whatif.scenario import Scenario
from tests.published.straggler import (
    NS,
    Job,
    World,
    analyse,
    compared,
    derive,
    groups,
    idealised,
    published,
    read,
    read_recorded,
    scenarios,
    slowest_ranks,
)
from tests.reach import REPOSITORY, SHARED

FOLDER = SHARED.parent / "straggler"
NAMES = [path.stem.removeprefix("model-") for path in sorted(FOLDER.glob("model-*.json"))]
FILES = ("result", "ms", "mw", "whatif")
PS = 1000 * NS
every_trace = pytest.mark.parametrize("name", NAMES or [pytest.param("none", marks=pytest.mark.skip("no shared data"))])


@cache
def job_of(name: str, tick: int = NS) -> Job:
    return Job(*read(FOLDER, name), tick)


@cache
def errors_of(name: str, tick: int = NS) -> pd.DataFrame:
    return compared(analyse(job_of(name, tick)), published(FOLDER, name))


def given_table(name: str) -> pd.DataFrame:
    path = FOLDER / f"ops-{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    return pd.read_csv(path)


# their numbers


@every_trace
@pytest.mark.parametrize("file", FILES)
def test_every_published_number_is_reproduced_to_a_millionth(name: str, file: str) -> None:
    if not (FOLDER / f"{file}-{name}.json").exists():
        pytest.skip(f"{file}-{name}.json is not there")
    frame = errors_of(name)
    frame = frame[frame.index.str.startswith(f"/{file}/")]
    wrong = frame[~(frame["error"] <= 1e-6)]
    assert len(frame) >= 6
    assert wrong.empty, wrong.to_string()


def test_no_published_number_of_st_is_left_out() -> None:
    if "ST" not in NAMES:
        pytest.skip("no shared data")
    assert errors_of("ST").groupby(lambda path: path.split("/")[1]).size().to_dict() == {
        "result": 723, "ms": 7, "mw": 7, "whatif": 168,
    }  # fmt: skip


@every_trace
@pytest.mark.parametrize("world", ["base", "nodelay", "ideal"])
def test_every_moment_lies_within_20_us(name: str, world: str) -> None:
    job, table = job_of(name), given_table(name)
    weights, columns = {
        "base": (job.recorded, ("start_ts", "end_ts")),
        "nodelay": (job.undelayed, ("nodelay_start", "nodelay_end")),
        "ideal": (idealised(job), ("ideal_start", "ideal_end")),
    }[world]
    ours = job.replay(weights)
    for mine, theirs in zip(("start", "end"), columns, strict=True):
        assert np.abs(ours[mine] - table[theirs]).max() < 20e-6


@every_trace
def test_the_graph_holds_the_recorded_world_and_its_replay_is_exact(name: str) -> None:
    job = job_of(name)
    job.graph.check()
    assert job.graph.gap.max() == 0
    pd.testing.assert_frame_equal(job.replay(job.recorded), job.moments(job.graph.time))


@every_trace
def test_rounding_to_ns_changes_no_number_by_a_millionth(name: str) -> None:
    fine, coarse = errors_of(name, PS)["ours"], errors_of(name)["ours"]
    assert ((fine - coarse).abs() <= 1e-6 * fine.abs()).all()


# the same questions, asked through what-if


def without_delays(job: Job) -> Scenario:
    return hg.what_if(job.graph).set_duration(ns=0, kind="launch")


def with_ideal(scenario: Scenario, job: Job, which: npt.NDArray[np.bool_]) -> Scenario:
    """Give the operations their ideal time, optype by optype; `which` holds all or none of a rank's of one optype."""
    ops, work = job.ops[which], idealised(job).work * job.tick
    for optype, ranks in ops.groupby("optype")["rank"].unique().items():
        row = ops.index[ops["optype"] == optype][0]
        kind = "communication" if job.comm[row] else "computation"
        scenario = scenario.set_duration(ns=work[row], kind=kind, name=optype, rank=ranks.tolist())
    return scenario


def without_transfers(scenario: Scenario, job: Job, *names: str) -> Scenario:
    for glob in names:
        if len(job.graph.select(kind="communication", name=glob)):
            scenario = scenario.set_duration(ns=0, kind="communication", name=glob)
    return scenario


def seconds(job: Job, scenario: Scenario) -> float:
    return float(job.spans(job.moments(scenario.run().time)).mean())


@every_trace
@pytest.mark.parametrize("by", ["dp_rank", "stage", "optype"])
def test_what_if_gives_the_slowdown_of_every_group(name: str, by: str) -> None:
    job, known = job_of(name), published(FOLDER, name)
    ideal = known["whatif"]["ideal"]["mean_step_time"]
    labels = groups(job)[by]
    for label, slowdown in (known["result"][f"blocking_decompose_by_{by}"] or {}).items():
        scenario = with_ideal(without_delays(job), job, labels.astype(str) != label)
        assert seconds(job, scenario) / ideal == pytest.approx(slowdown, rel=1e-6)


@every_trace
@pytest.mark.parametrize("file", ["ms", "mw"])
def test_what_if_gives_the_share_of_the_last_stage_and_of_the_slowest_ranks(name: str, file: str) -> None:
    job, known = job_of(name), published(FOLDER, name)[file]
    last = (job.ops["stage"] == job.ops["stage"].max()).to_numpy()
    which = last if file == "ms" else slowest_ranks(job, analyse(job)["result"])
    everything = np.ones(len(job.ops), np.bool_)
    slow, without, alone, ideal = (
        seconds(job, scenario)
        for scenario in (without_delays(job), *(with_ideal(without_delays(job), job, some)
                                                for some in (which, ~which, everything)))
    )  # fmt: skip
    assert (slow, without, alone, ideal) == pytest.approx(
        [known[key] for key in ("tori", "trem", "tadd", "tideal")], rel=1e-6
    )
    assert (slow - without) / (slow - ideal) == pytest.approx(known["rem"], rel=1e-6)


@every_trace
def test_what_if_gives_the_step_times_of_the_further_scenarios(name: str) -> None:
    job, known = job_of(name), published(FOLDER, name)["whatif"]
    start, last = without_delays(job), job.ops.loc[job.ops["stage"] == job.ops["stage"].max(), "rank"].unique().tolist()
    asked = {
        "pp_comm_zero": without_transfers(start, job, "*-send", "*-recv"),
        "dp_comm_zero": without_transfers(start, job, "grads-reduce-scatter", "params-all-gather", "separate-grads-*"),
        "fwd_compute_2x_faster": start.scale(factor=0.5, name="forward-compute"),
        "all_comm_transfer_2x_slower": start.scale_network(factor=2),
        "last_stage_compute_0.9x": start.scale(factor=0.9, name="*ward-compute", kind="computation", rank=last),
    }
    for scenario, change in asked.items():
        times = job.spans(job.moments(change.run().time))
        errors = compared({"": times}, {"": known[scenario]["step_time"]})["error"]
        assert len(errors) == job.ops["step"].nunique()
        assert errors.max() < 1e-6, scenario
        assert times.mean() == pytest.approx(known[scenario]["mean_step_time"], rel=1e-6)


# their files


@every_trace
def test_derived_columns_equal_the_given_ones(name: str) -> None:
    table, (ops, model) = given_table(name), read(FOLDER, name)
    assert (ops["op"] == table["op"]).all()
    assert (ops["is_comm"] == table["is_comm"]).all()
    for column in ("end_ts", "launch_delay", "transfer_duration"):
        np.testing.assert_allclose(ops[column], table[column], rtol=0, atol=1e-8)  # they were written with 9 digits
    assert sorted(ops["op"].unique()) == sorted(model["deps"])


@every_trace
def test_the_raw_trace_gives_the_same_operations(name: str) -> None:
    pytest.importorskip("pyarrow")
    ops, model = read(FOLDER, name)
    raw = derive(read_recorded(FOLDER, name), model)
    order = ["step", "rank", "optype", "seq_id"]
    raw, ops = (frame.sort_values(order).reset_index(drop=True) for frame in (raw, ops))
    assert (raw["op"] == ops["op"]).all()
    for column in ("start_ts", "duration", "end_ts", "launch_delay", "transfer_duration"):
        np.testing.assert_allclose(raw[column], ops[column], rtol=0, atol=1e-8)


@every_trace
def test_the_raw_trace_alone_gives_the_published_numbers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for file in FOLDER.glob(f"*-{name}.*"):
        if not file.name.startswith("ops-"):
            shutil.copy(file, tmp_path)
    assert not compared(analyse(Job(*read(tmp_path, name))), published(tmp_path, name))["error"].gt(1e-6).any()


def test_an_operation_that_is_there_twice_is_refused() -> None:
    ops = pd.DataFrame({"step": [0, 0], "dp_rank": 0, "stage": 0, "rank": 0, "optype": "gc", "seq_id": 0,
                        "start_ts": 0.0, "duration": 1.0})  # fmt: skip
    with pytest.raises(ValueError, match=r"'op': 'gc_0_0'} is there twice"):
        derive(ops, {"deps": {"gc_0_0": []}, "comm_groups": [], "need_dp_sync": []})


@every_trace
def test_the_benchmark_prints_every_quantity(name: str) -> None:
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "published.py"), str(FOLDER), name]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for quantity in ("step_t_base", "blocking_slowdown", "decompose_by_stage/0", "Ms", "Mw", "dp_comm_zero", "waste"):
        assert quantity in printed


# their model, on random jobs


@st.composite
def jobs(draw: st.DrawFn) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Levels of operations on several stages: an operation depends on lower levels, groups lie within a level.

    Moments are drawn without regard to the model, so that delays and transfers are of any sign and size.
    """
    stages, levels, dps, steps = (draw(st.integers(1, most)) for most in (3, 4, 3, 2))
    optypes = draw(st.lists(st.sampled_from(["forward-compute", "forward-send", "grads-reduce-scatter"]),
                            min_size=levels, max_size=levels))  # fmt: skip
    names = [[f"{optype}_{level}_{stage}" for stage in range(stages)] for level, optype in enumerate(optypes)]
    deps: dict[str, list[str]] = {}
    groups, synced = [], []
    for level, ops in enumerate(names):
        lower = [op for below in names[:level] for op in below]
        for op in ops:
            deps[op] = draw(st.lists(st.sampled_from(lower), max_size=3, unique=True)) if lower else []
        if not optypes[level].endswith("compute"):
            cut = draw(st.integers(0, stages))
            made = [group for group in (ops[:cut], ops[cut:]) if group]
            groups += made
            synced += [op for group in made if draw(st.booleans()) for op in group]
    rows = [
        {"step": step, "dp_rank": dp, "stage": stage, "rank": stage * dps + dp, "optype": optype, "seq_id": level,
         "start_ts": draw(_SECONDS), "duration": draw(_SECONDS)}
        for step in range(steps) for dp in range(dps) for level, optype in enumerate(optypes) for stage in range(stages)
        if draw(st.integers(0, 9)) or (step, dp, stage) == (0, 0, 0)  # a few are missing
    ]  # fmt: skip
    return pd.DataFrame(rows), {"deps": deps, "comm_groups": groups, "need_dp_sync": synced}


_SECONDS = st.sampled_from([k / 256 for k in (0, 1, 2, 3, 5, 8, 100, 300)])  # exact as float32 and in sums


def by_hand(job: Job, world: World) -> dict[int, tuple[float, float]]:
    """Return start and end of each row, from the words of the README, level by level."""
    keys = list(zip(job.ops["step"], job.ops["dp_rank"], job.ops["op"], strict=True))
    row_of = {key: row for row, key in enumerate(keys)}
    group_of = {op: group for group in job.model["comm_groups"] for op in group}
    start: dict[int, float] = {}
    end: dict[int, float] = {}
    for level in sorted(job.ops["seq_id"].unique()):
        rows = np.flatnonzero(job.ops["seq_id"] == level).tolist()
        for row in rows:
            step, dp, op = keys[row]
            before = [row_of[step, dp, u] for u in job.model["deps"][op] if (step, dp, u) in row_of]
            start[row] = max((end[u] for u in before), default=0.0) + world.delay[row]
        for row in rows:
            step, dp, op = keys[row]
            everyone = range(9) if op in job.model["need_dp_sync"] else [dp]
            members = [(step, d, u) for d in everyone for u in group_of.get(op, [op])]
            end[row] = max(start[row_of[key]] for key in members if key in row_of) + world.work[row]
    return {row: (start[row], end[row]) for row in start}


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_any_job_replays_as_by_hand_in_every_world(made: tuple[pd.DataFrame, dict[str, Any]]) -> None:
    job = Job(derive(*made), made[1])
    worlds = scenarios(job) | {"recorded": job.recorded, "mixed": idealised(job).where(job.comm, job.recorded)}
    for name, world in worlds.items():
        want = by_hand(job, world)
        got = job.replay(world).to_numpy()
        distance = [np.abs(got[row] - moments).max() for row, moments in want.items()]
        assert max(distance) < 1e-7, name


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_recorded_world_gives_every_recorded_moment_back(made: tuple[pd.DataFrame, dict[str, Any]]) -> None:
    job = Job(derive(*made), made[1])
    moments = job.replay(job.recorded)
    np.testing.assert_allclose(moments["start"], job.ops["start_ts"], rtol=0, atol=1e-7)
    np.testing.assert_allclose(moments["end"], job.ops["end_ts"], rtol=0, atol=1e-7)
    assert ((job.ops["launch_delay"] > -0.010) & ~(job.ops["transfer_duration"] <= -0.010)).all()
