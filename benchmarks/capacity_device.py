"""Judge what-ifs of another device by public measurements: ``python -m benchmarks.capacity_device FOLDER``.

The folder holds NeuSight's labels by device (``neusight/<device>/<case>.json`` and ``.csv.gz``), and recordings of the
same models on two devices (``device_swap``). The operators of a case become a graph by `DependencyGraph.from_frames`
(one lane, operators in order, those of the one labelled layer as often as the model has layers). Predicted is the
speedup on each other device; the truth is that of the whole model (``e2e_latency``). With ``--left-out``, nothing of
the predicted device but its data sheet is known; with ``--no-shapes``, operators have names and times alone.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.core.devices import PEAKS, known_device
from htagraph.graph.dependency_graph import DependencyGraph

_TIMES = ["fw_latency", "bw_latency", "acc_latency"]
_LAYER = re.compile(r"(layers?|h)[._]0[._]")


def _cases(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
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


def judged(folder: Path, *, shapes: bool, left_out: bool) -> Iterator[dict[str, object]]:
    """Yield each pair of devices on which one model was measured: truth and prediction."""
    cases = _cases(folder)
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


def main() -> None:
    """Print the errors, by what was done and by device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--left-out", action="store_true")
    parser.add_argument("--no-shapes", action="store_true")
    given = parser.parse_args()
    table = pd.DataFrame(judged(given.folder, shapes=not given.no_shapes, left_out=given.left_out))
    training = table["case"].str.contains("train")
    print("all:", said(table))
    print("inference:", said(table[~training]))
    print("training:", said(table[training]))
    for device, part in table.groupby("to"):
        print(f"to {device}:", said(part))
    print(pd.DataFrame(swapped(given.folder)).to_string(index=False))


if __name__ == "__main__":
    main()
