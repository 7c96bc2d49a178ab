"""Kineto traces as lists of JSON events, by hand and by Hypothesis; DAGs as frames; and how tests load them.

Times of hand-made events are µs, as in files. Generated events begin and end at whole µs, so that an oracle can look
at every µs of a window.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pandas as pd
from hypothesis import HealthCheck, currently_in_test_context, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph

Json: TypeAlias = dict[str, Any]
Job: TypeAlias = Mapping[int, Sequence[Json]]
Number: TypeAlias = int | float
Drawn = TypeVar("Drawn")

_FOLDER = tempfile.TemporaryDirectory()
BASE_NS = 1_700_000_000_000_000_000
PID, MAIN, OTHER = 100, 1, 2

_KEPT_GRAPHS = 200
"""Graphs of drawn jobs kept at once. Chosen: the laws of one folder draw about 150 jobs from three strategies.
Doubled, the graphs of two folders are kept, which takes memory and saves nothing."""

COMPUTE, COMMUNICATE, COPY = "ampere_sgemm_128x64_nn", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "Memcpy DtoD"
KIND_OF = {COMPUTE: "computation", "elementwise": "computation", COMMUNICATE: "communication", COPY: "memory"}
"""The kind of each name that generated device work has."""
LAUNCH = "cudaLaunchKernel"


# events by hand


def complete(category: str, name: str, start: Number, duration: Number, tid: int | str = MAIN, **args: Any) -> Json:
    where = {"pid": PID, "tid": tid, "ts": start, "dur": duration}
    return {"ph": "X", "cat": category, "name": name, **where, "args": args}


def op(name: str, start: Number, duration: Number, tid: int = MAIN, **args: Any) -> Json:
    return complete("cpu_op", name, start, duration, tid, **args)


def annotation(name: str, start: Number, duration: Number, tid: int = MAIN) -> Json:
    return complete("user_annotation", name, start, duration, tid)


def step(number: int, start: Number, duration: Number) -> Json:
    return annotation(f"ProfilerStep#{number}", start, duration)


def runtime(name: str, start: Number, duration: Number, correlation: int = 0, tid: int = MAIN) -> Json:
    return complete("cuda_runtime", name, start, duration, tid, correlation=correlation)


def launch(start: Number, duration: Number, correlation: int, tid: int = MAIN) -> Json:
    return runtime(LAUNCH, start, duration, correlation, tid)


def kernel(name: str, start: Number, duration: Number, correlation: int = 0, stream: int = 7) -> Json:
    category = "gpu_memcpy" if name == COPY else "kernel"
    event = complete(category, name, start, duration, stream, stream=stream, device=0, correlation=correlation)
    return event | {"pid": 0}


def arrow(number: int, forward: Json, backward: Json) -> list[Json]:
    """Return the two halves of a forward-to-backward flow."""
    common = {"cat": "fwdbwd", "name": "fwdbwd", "id": number}
    first, last = ({key: event[key] for key in ("pid", "tid", "ts")} for event in (forward, backward))
    return [{"ph": "s", **common, **first}, {"ph": "f", "bp": "e", **common, **last}]


# files


def write(events: Sequence[Json], path: Path, rank: int = 0) -> Path:
    header = {"schemaVersion": 1, "distributedInfo": {"rank": rank}, "baseTimeNanoseconds": BASE_NS}
    path.write_text(json.dumps({**header, "traceEvents": list(events)}), encoding="utf-8")
    return path


def load(events: Sequence[Json] | Job, folder: Path | None = None, **options: Any) -> DependencyGraph:
    """Return the graph of one rank's events or of several ranks', read from files in a folder.

    A job that Hypothesis draws is read once: all laws of a folder get the same jobs (`tests/conftest.py`).
    """
    job = events if isinstance(events, Mapping) else {0: events}
    if folder is None and not options and currently_in_test_context():
        return _drawn(json.dumps(list(job.items())))
    if folder is None:  # the files stay as long as the tests run: some analyses read arguments from them
        return load(job, Path(tempfile.mkdtemp(dir=_FOLDER.name)), **options)
    return hg.load({rank: write(each, folder / f"rank-{rank}.json", rank) for rank, each in job.items()}, **options)


@lru_cache(maxsize=_KEPT_GRAPHS)
def _drawn(job: str) -> DependencyGraph:
    """Return the graph of a job as JSON: pairs of rank and events, in the order of files."""
    return load(dict(json.loads(job)), Path(tempfile.mkdtemp(dir=_FOLDER.name)))


# generated traces

_moments, _durations = st.integers(0, 40), st.integers(0, 12)
_HOST = (
    ("cpu_op", "aten::mm"), ("cpu_op", "aten::add"), ("python_function", "model.py(7): forward"),
    ("user_annotation", "## forward ##"), ("cuda_runtime", "cudaMalloc"), ("cuda_runtime", "cudaStreamSynchronize"),
    ("cuda_runtime", "cudaEventRecord"), ("cuda_driver", "cuStreamWaitEvent"),
)  # fmt: skip


@st.composite
def host_events(draw: st.DrawFn, tid: int) -> list[Json]:
    """Return activities of one thread: nested, side by side, empty, equal, or overlapping in part."""
    made = []
    for _ in range(draw(st.integers(0, 8))):
        category, name = draw(st.sampled_from(_HOST))
        made.append(complete(category, name, draw(_moments), draw(_durations), tid))
        if category == "cpu_op" and draw(st.booleans()):
            made[-1]["args"] = {
                "Sequence number": draw(st.integers(0, 3)),
                "Fwd thread id": draw(st.integers(0, 1)),
                "External id": len(made),
            }
    return made


@st.composite
def device_events(draw: st.DrawFn, correlation: int, start: int) -> list[Json]:
    """Return the work of one launch: none, one, or as many as of a graph launch; it may even start before it."""
    count = draw(st.sampled_from((0, 1, 1, 1, 3)))
    latency = st.integers(-3, 15)
    return [
        kernel(
            draw(st.sampled_from(sorted(KIND_OF))), max(0, start + draw(latency)), draw(_durations), correlation,
            draw(st.sampled_from((7, 20))),
        )
        for _ in range(count)
    ]  # fmt: skip


def nested(events: list[Json]) -> list[Json]:
    """Return a thread's events, cut so that each lies wholly inside or outside every other."""
    made: list[Json] = []
    open_until: list[int] = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        end = min([event["ts"] + event["dur"], *open_until[-1:]])
        open_until.append(end)
        made.append(event | {"dur": end - event["ts"]})
    return made


@st.composite
def traces(draw: st.DrawFn, *, tidy: bool | None = None, device: bool = True) -> list[Json]:
    """Return the events of one rank in no particular order.

    Args:
        draw: given by Hypothesis.
        tidy: whether host activities nest properly; None for either.
        device: whether there may be device work.
    """
    by_thread = {tid: draw(host_events(tid)) for tid in (MAIN, OTHER)}
    cuts = sorted(draw(st.sets(_moments, max_size=3)))
    by_thread[MAIN] += [step(5 + i, cut, end - cut) for i, (cut, end) in enumerate(itertools.pairwise(cuts))]
    work: list[Json] = []
    for correlation in range(1, 1 + draw(st.integers(0, 6))) if device else ():
        call = launch(draw(_moments), draw(st.integers(0, 3)), correlation, draw(st.sampled_from((MAIN, OTHER))))
        by_thread[call["tid"]].append(call)
        work += draw(device_events(correlation, call["ts"]))
    if device and draw(st.booleans()):  # launched before the window began
        work += draw(device_events(999, 0))
    if draw(st.booleans()) if tidy is None else tidy:
        by_thread = {tid: nested(events) for tid, events in by_thread.items()}
    events = [*by_thread[MAIN], *by_thread[OTHER], *work]
    operators = [event for event in events if event["cat"] == "cpu_op"]
    for number in range(draw(st.integers(0, 2)) if operators else 0):
        events += arrow(number, draw(st.sampled_from(operators)), draw(st.sampled_from(operators)))
    return draw(st.permutations(events + draw(st.sampled_from(_ASIDE if device else [[]]))))


_ASIDE: list[list[Json]] = [
    [],
    [
        complete("gpu_user_annotation", "## forward ##", 3, 20, 7, stream=7),
        complete("cuda_sync", "Stream Sync", 1, 30, 20, stream=20, correlation=3, cuda_sync_kind="Stream Sync"),
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PID, "tid": MAIN, "ts": 4,
         "args": {"Bytes": 8, "Addr": 1, "Device Type": 1, "Device Id": 0}},
    ],
]  # fmt: skip
"""What real files have beside the activities, and what no result may depend on."""


def jobs(*, min_size: int = 1, **options: bool) -> st.SearchStrategy[dict[int, list[Json]]]:
    """Return traces of one to three ranks, or of at least `min_size`."""
    return st.dictionaries(st.integers(0, 9), traces(**options), min_size=min_size, max_size=3)


def examples(strategy: st.SearchStrategy[Drawn], count: int) -> list[Drawn]:
    """Return the first `count` examples of a strategy, for laws that several tests check on the same examples.

    They follow the active profile: the same in every run, or new ones.
    """
    drawn: list[Drawn] = []

    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(example: Drawn) -> None:
        drawn.append(example)

    draw()
    return drawn[:count]


# generated DAGs


@dataclass(frozen=True)
class Frames:
    """What `DependencyGraph.from_frames` takes."""

    activities: pd.DataFrame
    dependencies: pd.DataFrame

    @property
    def graph(self) -> DependencyGraph:
        return DependencyGraph.from_frames(self.activities, self.dependencies)


@st.composite
def frames(draw: st.DrawFn, *, max_size: int = 7, timed: bool | None = None) -> Frames:
    """Return a DAG whose vertices are numbered in no topological order; with starts that leave gaps, or without."""
    count = draw(st.integers(1, max_size))
    duration = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    pairs = [(i, j) for j in range(count) for i in range(j)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=2 * count)) if pairs else []
    edges = [(i, j, draw(st.integers(-2, 9)), draw(st.booleans()), draw(st.booleans())) for i, j in chosen]
    columns = ["source", "target", "lag_ns", "from_start", "to_end"]
    activities = pd.DataFrame({"duration_ns": duration}, index=pd.Index(range(count)))
    if draw(st.booleans()) if timed is None else timed:
        activities["start_ns"] = _starts(duration, edges, draw(st.lists(st.integers(0, 3), min_size=count)))
    kinds = dict.fromkeys(columns[:3], "int64") | dict.fromkeys(columns[3:], "bool")
    shuffled = activities.loc[draw(st.permutations(range(count)))]
    return Frames(shuffled, pd.DataFrame(edges, columns=columns).astype(kinds))


def _starts(duration: list[int], edges: list[tuple[int, int, int, bool, bool]], late: list[int]) -> list[int]:
    start: list[int] = []
    for target, took in enumerate(duration):
        allowed = [
            start[i] + (0 if from_start else duration[i]) + lag - (took if to_end else 0)
            for i, j, lag, from_start, to_end in edges
            if j == target
        ]
        start.append(max(allowed, default=0) + late[target])
    return start
