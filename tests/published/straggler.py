"""ByteDance's straggler analysis (OSDI'25): their operations and model as a graph of ours, their questions as replays.

`read` takes a folder and the name of a trace; `Job` is the graph with what each of its edges stands for; `analyse`
gives every number they publish. Here is what their model says, in edges:

* every operation has a launch: dependencies → launch, whose launch delay is their lag. There the operation starts.
* computation: launch → start; BODY: its duration.
* communication: the launches of a group → JOIN → start = end of each operation, whose transfer is the lag. It is no
  body, for a transfer may be negative: an operation may end before it starts.
* a STEP per step and rank, from whose start the first operations hang, so that their launch delay is a lag as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from htagraph import DependencyGraph
from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.queries.replay import predict

__all__ = [
    "NS", "Job", "World", "analyse", "compared", "derive", "groups", "idealised", "published", "read", "read_recorded",
    "scenarios", "slowest_ranks",
]  # fmt: skip

NS = 1_000_000_000
_FAULTY_S = -0.010  # a delay or transfer of this or less is a fault of the clocks and counts as 0
_PP = {f"{way}-{end}": f"{way}-pp-comm" for way in ("forward", "backward") for end in ("send", "recv")}
_COMMUNICATION = r"-(?:send|recv|all-reduce|all-gather|reduce-scatter|all-to-all|clip-main-grad)$"
_COMPUTE = ("forward-compute", "backward-compute")
_DP = ("grads-reduce-scatter", "params-all-gather", "separate-grads-all-reduce")
_SLOWEST = 0.03  # the share of ranks whose influence M_W measures


# their files


def read(folder: Path, name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the operations, derived columns included, and the model of a trace.

    They come from ``ops-NAME.csv.gz`` or, where that is absent, from ``trace-NAME.parquet``.
    """
    model = dict(json.loads((folder / f"model-{name}.json").read_text()))
    table = folder / f"ops-{name}.csv.gz"
    return derive(pd.read_csv(table) if table.exists() else read_recorded(folder, name), model), model


def read_recorded(folder: Path, name: str) -> pd.DataFrame:
    """Return the operations as they were recorded; needs pyarrow."""
    return pd.read_parquet(folder / f"trace-{name}.parquet", engine="pyarrow")


def derive(recorded: pd.DataFrame, model: Mapping[str, Any]) -> pd.DataFrame:
    """Return recorded operations with the columns that their model derives from them.

    These are `op`, `is_comm`, `end_ts`, `launch_delay` and `transfer_duration`, and the last two as they were before
    faults of the clocks were made 0: `recorded_delay`, `recorded_transfer`. Seconds are float32, as there.
    """
    ops = recorded.reset_index(drop=True)
    optype = ops["optype"].astype(str)
    ops = ops.assign(optype=optype, op=optype + "_" + ops["seq_id"].astype(str) + "_" + ops["stage"].astype(str))
    start = ops["start_ts"].to_numpy(np.float32)
    end = start + ops["duration"].to_numpy(np.float32)
    before = predecessors(ops, model)
    ready = _latest(end[before["before"]], before["row"], len(ops))
    delay = start - np.where(np.isinf(ready), 0, ready)
    arrivals, departures = meetings(ops, model)
    arrived = _latest(start[arrivals["row"]], arrivals["join"], int(arrivals["join"].max(initial=-1)) + 1)
    transfer = np.full(len(ops), np.nan, np.float32)
    transfer[departures["row"]] = end[departures["row"]] - arrived[departures["join"]]
    return ops.assign(
        is_comm=ops["op"].isin([op for group in model["comm_groups"] for op in group]).astype(int), end_ts=end,
        recorded_delay=delay, launch_delay=_unless_faulty(delay),
        recorded_transfer=transfer, transfer_duration=_unless_faulty(transfer),
    )  # fmt: skip


def predecessors(ops: pd.DataFrame, model: Mapping[str, Any]) -> dict[str, Array]:
    """Return pairs of rows: `row` starts after the end of `before`, of the same step and data-parallel rank."""
    pairs = pd.DataFrame(
        [(op, before) for op, all_before in model["deps"].items() for before in all_before], columns=["op", "before"]
    )
    keys = ops[["step", "dp_rank", "op"]].assign(row=np.arange(len(ops)))
    twice = keys.duplicated(["step", "dp_rank", "op"])
    if twice.any():
        msg = f"operations: {keys[twice].iloc[0, :3].to_dict()} is there twice"
        raise ValueError(msg)
    earlier = keys.rename(columns={"op": "before", "row": "row_before"})
    found = keys.merge(pairs, on="op").merge(earlier, on=["step", "dp_rank", "before"])
    return {"row": found["row"].to_numpy(), "before": found["row_before"].to_numpy()}


def meetings(ops: pd.DataFrame, model: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return (arrivals, departures), each as pairs of `row` and `join`: who is waited for where, who waits where.

    A group meets once per step and data-parallel rank, or once per step for operations that synchronise across these.
    """
    groups = pd.DataFrame(
        [(op, number) for number, group in enumerate(model["comm_groups"]) for op in group], columns=["op", "group"]
    )
    members = ops[["step", "dp_rank", "op"]].assign(row=np.arange(len(ops))).merge(groups, on="op")
    across = members["op"].isin(model["need_dp_sync"])
    own = members.assign(scope=np.where(across, -1, members["dp_rank"]))
    where = ["step", "group", "scope"]
    joins = own[where].drop_duplicates().reset_index(drop=True).rename_axis("join").reset_index()
    either = pd.concat([members.assign(scope=-1), members.assign(scope=members["dp_rank"])])
    arriving = either.merge(joins, on=where)
    leaving = own.merge(joins, on=where)
    made = [{key: side[key].to_numpy() for key in ("row", "join")} for side in (arriving, leaving)]
    return made[0], made[1]


def _latest(values: Array, at: Array, count: int) -> Array:
    out = np.full(count, -np.inf, values.dtype)
    np.maximum.at(out, at, values)
    return out


def _unless_faulty(values: Array) -> Array:
    return np.where(values <= _FAULTY_S, 0, values)


# our graph


@dataclass(frozen=True, eq=False)
class World:
    """The weights of every operation, s: all that differs between the worlds that are compared."""

    delay: Array
    """Launch delay."""
    work: Array
    """Of a computation its duration, of a communication its transfer."""

    def scaled(self, which: Array, factor: float) -> World:
        """Return the world in which the work of some operations takes `factor` times as long."""
        return World(self.delay, np.where(which, factor * self.work, self.work))

    def where(self, which: Array, other: World) -> World:
        """Return the world in which some operations have the weights of another world."""
        return World(np.where(which, other.delay, self.delay), np.where(which, other.work, self.work))


@dataclass(frozen=True, eq=False)
class Job:
    """A trace's graph, and which operation's weight the lag of each edge is.

    Activities have numbers of their own here, with n operations: row r of `ops` is number r, its launch number n + r,
    JOINs and then STEPs follow.
    """

    ops: pd.DataFrame
    model: Mapping[str, Any]
    tick: int = NS
    """Ticks per second. The graph calls its ticks ns, but nothing in a replay depends on that."""

    @cached_property
    def comm(self) -> Array:
        """Which operations are communication."""
        return self.ops["is_comm"].to_numpy(bool)

    @cached_property
    def recorded(self) -> World:
        """The weights that give every recorded moment back, faults of the clocks included."""
        return self._world("recorded_delay", "recorded_transfer")

    @cached_property
    def undelayed(self) -> World:
        """The weights that were recorded, without faults and launch delays."""
        cleaned = self._world("launch_delay", "transfer_duration")
        return World(np.zeros(len(self.ops)), cleaned.work)

    def _world(self, delay: str, transfer: str) -> World:
        work = np.where(self.comm, self.ops[transfer], self.ops["duration"])
        return World(self.ops[delay].to_numpy(float), work.astype(float))

    @cached_property
    def activities(self) -> pd.DataFrame:
        """What `from_frames` takes, indexed by number, in the order of the graph: by rank, JOINs last."""
        ops, count = self.ops[["optype", "rank", "step"]].rename(columns={"optype": "name"}), len(self.ops)
        _, departures = self._meetings
        own = ops.assign(kind=np.where(self.comm, "communication", "computation"),
                         duration_ns=self.ticks(np.where(self.comm, 0, self.recorded.work)))  # fmt: skip
        launches = ops.assign(name="launch " + ops["name"], kind="launch", duration_ns=0).set_index(count + ops.index)
        numbers, first = np.unique(departures["join"], return_index=True)
        joins = ops.iloc[departures["row"][first]].assign(kind="join", duration_ns=0).set_index(2 * count + numbers)
        steps = self._steps.assign(name="step " + self._steps["step"].astype(str), kind="step", duration_ns=0)
        frame = pd.concat([own, launches, joins, steps.set_index("number")])
        return frame.iloc[np.lexsort((frame["rank"], frame["kind"] == "join"))]

    @cached_property
    def graph(self) -> DependencyGraph:
        """The recorded world, every activity as early as the model allows."""
        count, rows, recorded = len(self.ops), np.arange(len(self.ops)), self.recorded
        before, (arrivals, departures) = predecessors(self.ops, self.model), self._meetings
        alone, first = rows[~self.comm], np.setdiff1d(rows, before["row"])
        step = self.ops[["step", "rank"]].merge(self._steps, on=["step", "rank"])["number"].to_numpy()
        after, joined = before["row"], departures["row"]
        parts = [
            {"source": before["before"], "target": count + after, "lag_ns": self.ticks(recorded.delay[after]),
             "owner": count + after},
            {"source": step[first], "target": count + first, "lag_ns": self.ticks(recorded.delay[first]),
             "owner": count + first, "from_start": True},
            {"source": count + alone, "target": alone},
            {"source": count + arrivals["row"], "target": 2 * count + arrivals["join"], "kind": "collective"},
            {"source": 2 * count + departures["join"], "target": joined, "lag_ns": self.ticks(recorded.work[joined]),
             "owner": joined, "kind": "collective"},
            {"source": rows, "target": step, "to_end": True},
        ]  # fmt: skip
        usual: dict[str, Any] = {"lag_ns": 0, "from_start": False, "to_end": False, "kind": "user", "owner": None}
        links = pd.concat([pd.DataFrame(usual | part).astype({"owner": "Int64"}) for part in parts], ignore_index=True)
        return DependencyGraph.from_frames(self.activities, links)

    def ticks(self, seconds: Array) -> Array:
        """Return seconds as whole ticks."""
        return np.rint(seconds * self.tick).astype(np.int64)

    def lags(self, world: World) -> Array:
        """Return the lag of every edge of the graph in a world."""
        delayed, worked = self._weighted
        lag = self.graph.edges.lag.copy()
        lag[delayed >= 0] = self.ticks(world.delay)[delayed[delayed >= 0]]
        lag[worked >= 0] = self.ticks(world.work)[worked[worked >= 0]]
        return lag

    def replay(self, world: World) -> pd.DataFrame:
        """Return the `start` and `end`, s since the step's start, of every operation in a world."""
        return self.moments(predict(self.graph, lag=self.lags(world)))

    def moments(self, time: Array) -> pd.DataFrame:
        """Return the `start` and `end` of every operation, s, given the moment of each vertex."""
        number, seconds = np.arange(len(self.ops)), time / self.tick
        return pd.DataFrame(
            {"start": seconds[2 * self._row[len(number) + number]], "end": seconds[2 * self._row[number] + 1]}
        )

    def step_times(self, world: World) -> pd.Series[float]:
        """Return by step its time from the first start to the last end, s."""
        return self.spans(self.replay(world))

    def spans(self, moments: pd.DataFrame) -> pd.Series[float]:
        """Return by step the time from the first start to the last end, s."""
        steps = moments.groupby(self.ops["step"].to_numpy())
        return steps["end"].max() - steps["start"].min()

    def mean(self, world: World) -> float:
        """Return the mean step time, s."""
        return float(self.step_times(world).mean())

    @cached_property
    def _row(self) -> Array:
        """By number, the activity in the graph."""
        numbers = self.activities.index.to_numpy()
        out = np.full(numbers.max() + 1, -1)
        out[numbers] = np.arange(len(numbers))
        return out

    @cached_property
    def _weighted(self) -> tuple[Array, Array]:
        """By edge, the operations whose delay and whose work its lag is; -1 for none."""
        edges, count = self.graph.edges, len(self.ops)
        number = np.append(self.activities.index.to_numpy(), -1)[edges.activity]
        kind = np.append(self.graph.activities.kind, -1)[edges.activity]
        timed = (edges.kind != EdgeKind.BODY) | (kind == ActivityKind.COMPUTATION)  # the other bodies are empty
        launched = timed & (kind == ActivityKind.LAUNCH)
        works = timed & np.isin(kind, (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION))
        return np.where(launched, number - count, -1), np.where(works, number, -1)

    @cached_property
    def _meetings(self) -> tuple[dict[str, Array], dict[str, Array]]:
        return meetings(self.ops, self.model)

    @cached_property
    def _steps(self) -> pd.DataFrame:
        steps = self.ops[["step", "rank"]].drop_duplicates().reset_index(drop=True)
        joins = int(self._meetings[1]["join"].max(initial=-1)) + 1
        return steps.assign(number=2 * len(self.ops) + joins + np.arange(len(steps)))


# their questions


def idealised(job: Job) -> World:
    """Return the world without delays: each optype's computations take their mean, its communications their median.

    A communication that synchronises with nobody in their model (layernorm-grads-all-reduce) takes its median too.
    """
    optype = job.ops["optype"]
    by_optype = pd.Series(job.undelayed.work).groupby(optype.to_numpy())
    is_communication = job.comm | optype.str.contains(_COMMUNICATION).to_numpy()
    work = np.where(is_communication, by_optype.transform("median"), by_optype.transform("mean"))
    return World(np.zeros(len(work)), work)


def scenarios(job: Job) -> dict[str, World]:
    """Return the worlds of `whatif-NAME.json`, all without launch delays."""
    nodelay, optype = job.undelayed, job.ops["optype"]
    last = (job.ops["stage"] == job.ops["stage"].max()) & optype.isin(_COMPUTE)
    return {
        "nodelay": nodelay,
        "ideal": idealised(job),
        "pp_comm_zero": nodelay.scaled(optype.isin(_PP).to_numpy(), 0),
        "dp_comm_zero": nodelay.scaled(optype.isin(_DP).to_numpy(), 0),
        "fwd_compute_2x_faster": nodelay.scaled((optype == "forward-compute").to_numpy(), 0.5),
        "all_comm_transfer_2x_slower": nodelay.scaled(job.comm, 2),
        "last_stage_compute_0.9x": nodelay.scaled(last.to_numpy(), 0.9),
    }


def analyse(job: Job) -> dict[str, Any]:
    """Return what `result-NAME.json`, `ms-NAME.json`, `mw-NAME.json` and `whatif-NAME.json` hold, by file."""
    nodelay, ideal = job.undelayed, idealised(job)
    worlds = {name: job.step_times(world) for name, world in scenarios(job).items()}
    base, slow, fast = job.step_times(job.recorded), worlds["nodelay"], worlds["ideal"]
    result: dict[str, Any] = {
        "step_t_base": base, "step_t_nodelay": slow, "step_t_noblk": fast,
        "launch_slowdown": base.mean() / slow.mean(), "launch_step_slowdown": base / slow,
        "blocking_slowdown": slow.mean() / fast.mean(), "blocking_step_slowdown": slow / fast,
    }  # fmt: skip
    for name, labels in groups(job).items():
        own = {label: job.step_times(ideal.where(labels == label, nodelay)) for label in np.unique(labels).tolist()}
        result[f"blocking_decompose_by_{name}"] = {label: own[label].mean() / fast.mean() for label in own}
        result[f"blocking_decompose_by_{name}_per_step"] = {
            step: {label: own[label][step] / fast[step] for label in own} for step in fast.index
        }
    ms = influence(job, (job.ops["stage"] == job.ops["stage"].max()).to_numpy())
    mw = influence(job, slowest_ranks(job, result))
    measured = job.ops.groupby("step").agg({"start_ts": "min", "end_ts": "max"})
    whatif = {name: {"mean_step_time": time.mean(), "step_time": time} for name, time in worlds.items()}
    whatif["measured"] = {"mean_step_time": (measured["end_ts"] - measured["start_ts"]).mean()}
    return {"result": result, "ms": ms | {"Ms": ms["rem"]}, "mw": mw | {"Mw": mw["rem"]}, "whatif": whatif}


def groups(job: Job) -> dict[str, Array]:
    """Return by kind of group the label of each operation's."""
    ops = job.ops
    return {
        "dp_rank": ops["dp_rank"].to_numpy(),
        "stage": ops["stage"].to_numpy(),
        "optype": ops["optype"].replace(_PP).to_numpy(str),
    }


def slowest_ranks(job: Job, result: Mapping[str, Any]) -> Array:
    """Return which operations belong to the ranks that slow the job down most: 3 % of them, of equals the first."""
    ranks = job.ops[["rank", "dp_rank", "stage"]].drop_duplicates("rank").set_index("rank").sort_index()
    by_dp, by_stage = (ranks[name].map(result[f"blocking_decompose_by_{name}"]) for name in ("dp_rank", "stage"))
    score = pd.concat([by_dp, by_stage], axis=1).min(axis=1).sort_values(ascending=False, kind="stable")
    return job.ops["rank"].isin(score.index[: math.ceil(_SLOWEST * len(ranks))]).to_numpy()


def influence(job: Job, which: Array) -> dict[str, float]:
    """Return the mean step times with some operations idealised and with all others, and their shares of all waste."""
    nodelay, ideal = job.undelayed, idealised(job)
    without, alone = job.mean(nodelay.where(which, ideal)), job.mean(ideal.where(which, nodelay))
    slow, fast = job.mean(nodelay), job.mean(ideal)
    return {
        "trem": without, "tadd": alone, "tori": slow, "tideal": fast,
        "rem": (slow - without) / (slow - fast), "add": (alone - fast) / (slow - fast),
    }  # fmt: skip


# their answers


def published(folder: Path, name: str) -> dict[str, Any]:
    """Return the published files of a trace as `analyse` gives them."""
    files = {what: folder / f"{what}-{name}.json" for what in ("result", "ms", "mw", "whatif")}
    return {what: json.loads(file.read_text()) for what, file in files.items() if file.exists()}


def compared(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> pd.DataFrame:
    """Return `published`, `ours` (NaN for none) and `error` (relative) of every published number, by its path."""
    mine = dict(_leaves(ours))
    rows = {path: (value, mine.get(path, math.nan)) for path, value in _leaves(theirs) if "/job_meta/" not in path}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["published", "ours"], dtype=float)
    distance = (frame["ours"] - frame["published"]).abs()
    return frame.assign(error=np.where(distance == 0, 0, distance / frame["published"].abs()))


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Return the path and value of each number; what was left out (None) is none."""
    if isinstance(tree, Mapping | pd.Series):
        for key, value in tree.items():
            yield from _leaves(value, f"{path}/{key}")
    elif tree is not None:
        yield path, tree
