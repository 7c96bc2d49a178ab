"""Judge questions of capacity by measurements: ``python -m benchmarks.capacity batch [FOLDER ...]``.

``batch`` predicts a job with another batch. Two kinds of cases: NeuSight's tables of operators (each row is an operator
with shapes and its time; one model at two batch sizes, either from the other), whose summed time is compared; and
folders of recordings named ``NAME-BATCH.json``, each predicted from each other one of its name, whose kernel
(or operator) time and mean step time are compared. Half of the cases, by name, are for the last run
(`benchmarks.halves`).
"""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import htagraph as hg
from benchmarks.halves import add_half, half_of
from htagraph.core.devices import peak_of
from htagraph.core.errors import SelectionError
from htagraph.core.naming import kernel_kind
from htagraph.queries.kernel_costs import Call, cost_of_call
from htagraph.whatif.batch_sizes import layout_of, recorded_batch, resized_calls
from htagraph.whatif.changes import batch as change
from htagraph.whatif.kernel_times import KernelWork, resized

SHARED = Path(os.environ.get("HTAGRAPH_SHARED", "../shared")) / "capacity"


@dataclass
class Case:
    """One prediction; times are in ms."""

    name: str
    what: str
    """``kernels`` or ``step``."""
    times: float
    """The new batch over the recorded one."""
    recorded: float
    truth: float
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of the truth."""
        return self.predicted / self.truth - 1

    @property
    def linear(self) -> float:
        """The same of a prediction in proportion to the batch."""
        return self.recorded * self.times / self.truth - 1


_LINEAR = re.compile(r"(query|key|value|dense|proj|fc\d*|lm_head|classifier|c_attn|score)$")


def _call(row: pd.Series) -> Call | None:  # noqa: PLR0911 - a return per kind of operator
    """Return a row of NeuSight's tables as an operator, None for one that computes nothing."""
    shapes = [list(each) for each in ast.literal_eval(row["input_shapes"]) if len(each) > 1]
    out = list(ast.literal_eval(row["output_shape"])) if isinstance(row["output_shape"], str) else []
    target = row["target"].split(" at 0x")[0].lower()
    name = target.rsplit(".", 1)[-1] if row["op"] == "call_module" else target
    if (
        not shapes
        or len(out) < 2
        or re.search(r"view|permute|size|getitem|transpose|getattr|expand|reshape|split", name)
    ):
        return None
    if re.search("layer_?norm|ln_", name):
        return _made("aten::native_layer_norm", shapes[0], [], shapes[0][-1:], shapes[0][-1:])
    if re.search("embed|wte|wpe", name):
        return _made("aten::embedding", [50_000, out[-1]], shapes[0])
    if "addmm" in name:
        return _made("aten::addmm", out[-1:], *shapes[-2:])
    if "matmul" in name or "bmm" in name:
        return _made("aten::bmm", *([prod(each[:-2]), *each[-2:]] for each in shapes[:2]))
    if _LINEAR.search(name):
        return _made("aten::linear", shapes[0], [out[-1], shapes[0][-1]], out[-1:])
    if "softmax" in name:
        return _made("aten::_softmax", shapes[0])
    return _made("aten::clone" if "contiguous" in name else "aten::add", *shapes)


def _made(name: str, *dims: list[int]) -> Call:
    return Call(name, list(dims), ["float"] * len(dims), None)


def _table(path: Path) -> pd.DataFrame:
    rows = pd.read_csv(path).fillna({"fw_latency": 0, "bw_latency": 0})
    rows["ms"] = rows["fw_latency"] + rows["bw_latency"]
    calls: Any = [_call(row) for _, row in rows.iterrows()]
    rows["call"] = calls
    return rows


def neusight(half: str | None) -> Iterator[Case]:
    """Yield the predictions of NeuSight's models at another batch."""
    by_job: dict[str, dict[int, Path]] = {}
    for path in sorted((SHARED / "neusight").glob("*/*.csv.gz")):
        job, size = path.name.removesuffix(".csv.gz").rsplit("-", 1)
        by_job.setdefault(f"{path.parent.name}/{job}", {})[int(size)] = path
    for job, paths in by_job.items():
        if half is None or half_of(job) == half:
            tables = {size: _table(path) for size, path in paths.items()} if len(paths) > 1 else {}
            for before, after in permutations(tables, 2):
                if len(tables[before]):
                    yield _of_tables(f"{job} {before}:{after}", tables[before], tables[after], (before, after))


def _of_tables(name: str, table: pd.DataFrame, other: pd.DataFrame, sizes: tuple[int, int]) -> Case:
    calls, time = table["call"].tolist(), table["ms"].to_numpy() * 1000
    known = [(call, float(each)) for call, each in zip(calls, time, strict=True) if call is not None]
    found = recorded_batch(known)
    if found[:1] != [sizes[0]]:
        print(f"{name}: the batch was taken for {found}")
    layout = layout_of([call for call, _ in known], sizes[0])
    peak = peak_of(name.split("/")[0].replace("_", " "))
    assert peak is not None, name
    rates = peak.tflop_s(4) * 1e6, peak.gb_s * 1e3
    wave = 2 * 64**2 * (peak.units or 100) / rates[0]

    def work(calls: list[Call | None]) -> KernelWork:
        costs = [None if call is None else cost_of_call(call) for call in calls]
        roofs = [max(np.nan_to_num(c.flop) / rates[0], c.bytes / rates[1]) if c else np.nan for c in costs]
        return KernelWork(np.array(roofs), np.array([c.depth * wave if c else 0.0 for c in costs]))

    kind = np.array([0 if call is None else kernel_kind(call.name) for call in calls])
    blocks = [
        (c.flop / (2 * c.depth) if c and c.depth else np.nan) for c in (call and cost_of_call(call) for call in calls)
    ]
    fill = np.array(blocks) / 128**2 / (peak.units or 100)
    alike = pd.factorize(table["target"].str.replace(r"\d+", "", regex=True) + pd.Series(map(str, calls)))[0]
    then = [None if call is None else resized_calls(call, layout, sizes[1])[0] for call in calls]
    mid, low, high = (each.sum() / 1000 for each in resized(kind, time, work(calls), work(then), fill, alike))
    return Case(name, "kernels", sizes[1] / sizes[0], time.sum() / 1000, other["ms"].sum(), mid, low, high)


def recorded(folder: Path, half: str | None) -> Iterator[Case]:
    """Yield the predictions of recordings of one job at several batches."""
    by_job: dict[str, dict[int, Path]] = {}
    for path in sorted(folder.glob("*.json*")):
        job, size = path.name.split(".")[0].rsplit("-", 1)
        by_job.setdefault(job, {})[int(size)] = path
    for job, paths in by_job.items():
        if half is None or half_of(job) == half:
            graphs = {size: hg.load({0: path}) for size, path in paths.items()}
            for before, after in permutations(graphs, 2):
                yield from _of_graphs(f"{job} {before}:{after}", graphs[before], graphs[after], (before, after))


def _of_graphs(
    name: str, graph: hg.DependencyGraph, other: hg.DependencyGraph, sizes: tuple[int, int]
) -> Iterator[Case]:
    try:
        outcome = hg.what_if(graph).batch(sizes[1], sizes[0]).run()
        truth = change._job_of(other, sizes[1]).time.sum() / 1000
    except SelectionError as error:
        print(f"{name}: {error}")
        return
    job = change._job_of(graph, sizes[0])
    mid, low, high = (each.sum() / 1000 for each in change._predicted(job, sizes[1]))
    times = sizes[1] / sizes[0]
    yield Case(name, "kernels", times, job.time.sum() / 1000, truth, mid, low, high)
    step = hg.what_if(other).run().baseline_mean_step_ns / 1e6
    was, now = outcome.baseline_mean_step_ns / 1e6, outcome.mean_step_ns / 1e6
    scale = now * outcome.speedup
    yield Case(name, "step", times, was, step, now, scale / outcome.high, scale / outcome.low)


def report(cases: list[Case]) -> pd.DataFrame:
    """Return the spread of the errors, percent, by what is predicted and how much larger the batch is."""
    rows = []
    for what, chosen in _groups(cases):
        off = np.abs([100 * case.error for case in chosen])
        linear = np.abs([100 * case.linear for case in chosen])
        holds = [case.low <= case.truth <= case.high for case in chosen]
        width = [100 * (case.high / case.low - 1) for case in chosen]
        rows.append((what, len(chosen), np.median(off), np.quantile(off, 0.95), off.max(), 100 * np.mean(holds),
                     np.median(width), np.median(linear), np.quantile(linear, 0.95), linear.max()))  # fmt: skip
    columns = "what n median p95 worst holds width linear_median linear_p95 linear_worst"
    return pd.DataFrame(rows, columns=columns.split()).round(1)


def _groups(cases: list[Case]) -> Iterator[tuple[str, list[Case]]]:
    for what in dict.fromkeys(case.what for case in cases):
        own = [case for case in cases if case.what == what]
        tests: dict[str, Callable[[Case], bool]] = {
            "all": lambda _: True, "x 1/8 to 8": lambda case: 1 / 8 <= case.times <= 8,
            "x 1/2": lambda case: case.times == 0.5,
            "x 2": lambda case: case.times == 2,
            "x 4": lambda case: case.times == 4, "x 8": lambda case: case.times == 8,
        }  # fmt: skip
        for text, fits in tests.items():
            chosen = [case for case in own if fits(case)]
            if chosen:
                yield f"{what} {text}", chosen


def main() -> None:
    """Print the errors of each case that is asked for, and their spread."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("question", choices=["batch"])
    command.add_argument("folders", nargs="*", type=Path, help="recordings; NeuSight's tables if none is given")
    command.add_argument("--each", action="store_true", help="print each case")
    add_half(command)
    asked = command.parse_args()
    cases = [case for folder in asked.folders for case in recorded(folder, asked.half)]
    cases = cases if asked.folders else list(neusight(asked.half))
    if asked.each:
        for case in cases:
            print(f"{case.name:70} {case.what:8} {100 * case.error:+6.1f} % [{100 * (case.low / case.truth - 1):+.0f}, "
                  f"{100 * (case.high / case.truth - 1):+.0f}] linear {100 * case.linear:+.1f} %")  # fmt: skip
    print(report(cases).to_string(index=False))


if __name__ == "__main__":
    main()
