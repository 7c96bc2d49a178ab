"""Judge questions of capacity: ``python -m benchmarks.capacity batch [FOLDER ...]``, or ``device FOLDER``.

``batch`` predicts a job with another batch. Two kinds of cases: NeuSight's tables of operators (each row is an operator
with shapes and its time; one model at two batch sizes, either from the other), whose summed time is compared; and
folders of recordings named ``NAME-BATCH.json``, each predicted from each other one of its name, whose kernel
(or operator) time and mean step time are compared. In folders of a job's runs, ``bBATCH-RUN/rank-0.json.gz`` beside
``bBATCH-RUN.steps.json``, the step is that of all runs. Half of the cases, by name, are for the last run
(`benchmarks.halves`).

``device`` predicts a job on another device. The folder holds NeuSight's labels by device
(``neusight/<device>/<case>.json`` and ``.csv.gz``), and recordings of the same models on two devices
(``device_swap``). The operators of a case become a graph by `DependencyGraph.from_frames` (one lane, operators in
order, those of the one labelled layer as often as the model has layers). Predicted is the speedup on each other device;
the truth is that of the whole model (``e2e_latency``). With ``--left-out``, nothing of the predicted device but its
data sheet is known; with ``--no-shapes``, operators have names and times alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import htagraph as hg
from benchmarks.halves import add_half, half_of
from htagraph.core.devices import PEAKS, known_device, peak_of
from htagraph.core.errors import SelectionError
from htagraph.core.kernels import kernel_kind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.kernel_costs import Call, cost_of_call
from htagraph.whatif.batch_sizes import layout_of, recorded_batch, resized_calls
from htagraph.whatif.changes import batch as change
from htagraph.whatif.kernel_times import KernelWork, resized
from htagraph.whatif.rates import TILE

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
    known = [(call, 1) for call in calls if call is not None]
    found = recorded_batch(known)
    if found[:1] != [sizes[0]]:
        print(f"{name}: the batch was taken for {found}")
    layout = layout_of([call for call, _ in known], sizes[0])
    peak = peak_of(name.split("/")[0].replace("_", " "))
    assert peak is not None, name
    rates = peak.tflop_s(4) * 1e6, peak.gb_s * 1e3
    wave = 2 * TILE * (peak.units or 100) / rates[0]

    def work(calls: list[Call | None]) -> KernelWork:
        costs = [None if call is None else cost_of_call(call) for call in calls]
        roofs = [max(np.nan_to_num(c.flop) / rates[0], c.bytes / rates[1]) if c else np.nan for c in costs]
        depths = np.array([c.depth * wave if c else 0.0 for c in costs])
        return KernelWork(np.array(roofs), depths, np.zeros(len(costs), np.bool_), np.full(len(costs), np.nan))

    kind = np.array([0 if call is None else kernel_kind(call.name) for call in calls])
    blocks = [
        (c.flop / (2 * c.depth) if c and c.depth else np.nan) for c in (call and cost_of_call(call) for call in calls)
    ]
    fill = np.array(blocks) / TILE / (peak.units or 100)
    alike = pd.factorize(table["target"].str.replace(r"\d+", "", regex=True) + pd.Series(map(str, calls)))[0]
    then = [None if call is None else resized_calls(call, layout, sizes[1])[0] for call in calls]
    mid, low, high = (each.sum() / 1000 for each in resized(kind, time, work(calls), work(then), fill, alike))
    return Case(name, "kernels", sizes[1] / sizes[0], time.sum() / 1000, other["ms"].sum(), mid, low, high)


def recorded(folder: Path, half: str | None) -> Iterator[Case]:
    """Yield the predictions of recordings of one job at several batches."""
    steps = _steps_of_runs(folder)
    by_job: dict[str, dict[int, Path]] = {}
    for path in sorted(folder.glob("b*-*/rank-0.json*") if steps else folder.glob("*.json*")):
        job, size = (folder.name, path.parent.name[1:].split("-")[0]) if steps else _named(path)
        by_job.setdefault(job, {})[int(size)] = path
    for job, paths in by_job.items():
        if half is None or half_of(job) == half:
            graphs = {size: hg.load({0: path}) for size, path in paths.items()}
            for before, after in permutations(graphs, 2):
                name = f"{job} {before}:{after}"
                yield from _of_graphs(name, graphs[before], graphs[after], (before, after), steps.get(after))


def _named(path: Path) -> list[str]:
    return path.name.split(".")[0].rsplit("-", 1)


def _steps_of_runs(folder: Path) -> dict[int, float]:
    """Return the mean time of a step by batch, ms, over all runs; none where a folder has single recordings."""
    lengths: dict[int, list[np.ndarray]] = {}
    for path in sorted(folder.glob("b*-*.steps.json")):
        starts = json.loads(path.read_text())["step_starts_us"]["0"]
        lengths.setdefault(int(path.name[1:].split("-")[0]), []).append(np.diff(starts) / 1000)
    return {size: float(np.concatenate(runs).mean()) for size, runs in lengths.items()}


def _of_graphs(
    name: str, graph: hg.DependencyGraph, other: hg.DependencyGraph, sizes: tuple[int, int], step: float | None = None
) -> Iterator[Case]:
    try:
        outcome = hg.what_if(graph).batch(*sizes).run()
        truth = change._job_of(other, sizes[1]).time.sum() / 1000
    except SelectionError as error:
        print(f"{name}: {error}")
        return
    job = change._job_of(graph, sizes[0])
    mid, low, high = (each.sum() / 1000 for each in change._predicted(job, sizes[1]))
    times = sizes[1] / sizes[0]
    yield Case(name, "kernels", times, job.time.sum() / 1000, truth, mid, low, high)
    step = step or hg.what_if(other).run().baseline_mean_step_ns / 1e6
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
        near = [case for case in own if 1 / 8 <= case.times <= 8]
        yield f"{what} all", own
        yield f"{what} x 1/8 to 8", near
        for times in sorted({case.times for case in own}):
            text = f"1/{1 / times:g}" if times < 1 else f"{times:g}"
            yield f"{what} x {text}", [case for case in own if case.times == times]


_TIMES = ["fw_latency", "bw_latency", "acc_latency"]
_LAYER = re.compile(r"(layers?|h)[._]0[._]")


def _measured(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
    """Return what was measured of each whole model, by (device, case); fused and parallel ones are others."""
    files = sorted((folder / "neusight").glob("*/*.json"))
    return {(each.parent.name, each.stem): json.loads(each.read_text()) for each in files}


def graph_of(folder: Path, case: tuple[str, str], layers: int, *, shapes: bool = True) -> DependencyGraph | None:
    """Return the labelled operators of a case as a graph, None where there are none."""
    path = folder / "neusight" / case[0] / f"{case[1]}.csv.gz"
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["Name"])
    if not len(table):
        return None
    at = np.flatnonzero(
        [bool(_LAYER.search(f"{name} {of}")) for name, of in zip(table["Name"], table["target"], strict=True)]
    )
    if not len(at):
        return None
    often = np.ones(len(table), np.int64)
    often[at[0] : at[-1] + 2] = layers  # what follows the last module adds the residual
    took = table[_TIMES].apply(pd.to_numeric, errors="coerce").fillna(0).sum(axis=1)
    rows = table.assign(duration_ns=(took * 1e6).round().astype("int64")).loc[table.index.repeat(often)]
    rows = rows[rows["duration_ns"] > 0].reset_index(drop=True)
    known = ["input_shapes", "output_shape", "dtype"] if shapes else []
    frame = rows[["duration_ns", *known]].assign(name=rows["Name"], device=case[0])
    order = pd.DataFrame({"source": range(len(frame) - 1), "target": range(1, len(frame))})
    return DependencyGraph.from_frames(frame, order)


def judged(folder: Path, half: str | None, *, shapes: bool, left_out: bool) -> Iterator[dict[str, object]]:
    """Yield each pair of devices on which one model was measured: truth and prediction."""
    cases = {case: found for case, found in _measured(folder).items() if half is None or half_of(case[1]) == half}
    for case, measured in cases.items():
        graph = graph_of(folder, case, int(measured["num_layer"] or 0), shapes=shapes)
        others = [each for each in cases if each[1] == case[1] and each != case]
        if graph is None:
            continue
        for other in others:
            product = known_device(other[0])
            kept = PEAKS[product]
            if left_out:
                PEAKS[product] = replace(kept, reach_32=0.0, reach_16=0.0, reach_memory=0.0)
            outcome = hg.what_if(graph).device(other[0]).run()
            truth = measured["e2e_latency"] / cases[other]["e2e_latency"]
            roof = PEAKS[product].bits_32 / PEAKS[known_device(case[0])].bits_32
            low, high = outcome.low, outcome.high
            PEAKS[product] = kept
            yield {
                "from": known_device(case[0]), "to": product, "case": case[1], "truth": truth,
                "error": truth / outcome.speedup - 1, "holds": low <= truth <= high, "width": high / low,
                "by_peak": truth / roof - 1,
            }  # fmt: skip


def swapped(folder: Path) -> Iterator[dict[str, object]]:
    """Yield the kernel time of each recording of `device_swap`, predicted for the other one's device, and the truth."""
    for path in sorted((folder / "device_swap" / "h100").glob("*.json.gz")):
        both = [hg.load(each) for each in (path, folder / "device_swap" / "mi300" / path.name)]
        for graph, other, name in ((both[0], both[1], "MI300X"), (both[1], both[0], "H100 SXM")):
            took = [_device_us(each) for each in (hg.what_if(graph).device(name).run().graph, other)]
            yield {"case": path.name.split("__")[0], "to": name, "predicted_us": took[0], "truth_us": took[1]}


def _device_us(graph: DependencyGraph) -> float:
    return float(graph.activities.duration[graph.activities.on_device].sum()) / 1000


def said(table: pd.DataFrame) -> str:
    """Return what a table of pairs says, in one line."""
    off, holds, peaks = table["error"].abs(), table["holds"].mean(), table["by_peak"].abs().median()
    return (
        f"{len(table)} pairs: median {off.median():.1%}, p95 {off.quantile(0.95):.1%}, worst {off.max():.1%}; "
        f"interval holds {holds:.1%}, width {table['width'].median():.2f}; peaks alone {peaks:.1%}"
    )


def batches(asked: argparse.Namespace) -> None:
    """Print the errors of each prediction of another batch that is asked for, and their spread."""
    cases = [case for folder in asked.folders for case in recorded(folder, asked.half)]
    cases = cases if asked.folders else list(neusight(asked.half))
    if asked.each:
        for case in cases:
            print(f"{case.name:70} {case.what:8} {100 * case.error:+6.1f} % [{100 * (case.low / case.truth - 1):+.0f}, "
                  f"{100 * (case.high / case.truth - 1):+.0f}] linear {100 * case.linear:+.1f} %")  # fmt: skip
    print(report(cases).to_string(index=False))


def devices(asked: argparse.Namespace) -> None:
    """Print the errors of predictions of another device, by what was done and by device."""
    table = pd.DataFrame(judged(asked.folder, asked.half, shapes=not asked.no_shapes, left_out=asked.left_out))
    training = table["case"].str.contains("train")
    print("all:", said(table))
    print("inference:", said(table[~training]))
    print("training:", said(table[training]))
    for device, part in table.groupby("to"):
        print(f"to {device}:", said(part))
    for both, part in table.groupby(["from", "to"]):
        if asked.each:
            print(f"{both}:", said(part), f"bias {part['error'].median():+.1%}")
    print(pd.DataFrame(swapped(asked.folder)).to_string(index=False))


def main() -> None:
    """Answer the question that is asked."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    questions = command.add_subparsers(required=True)
    batch = questions.add_parser("batch", help="another batch")
    batch.add_argument("folders", nargs="*", type=Path, help="recordings; NeuSight's tables if none is given")
    batch.add_argument("--each", action="store_true", help="print each case")
    add_half(batch)
    batch.set_defaults(answer=batches)
    device = questions.add_parser("device", help="another device")
    device.add_argument("folder", type=Path)
    device.add_argument("--left-out", action="store_true")
    add_half(device)
    device.add_argument("--no-shapes", action="store_true")
    device.add_argument("--each", action="store_true", help="print each pair of devices")
    device.set_defaults(answer=devices)
    asked = command.parse_args()
    asked.answer(asked)


if __name__ == "__main__":
    main()
