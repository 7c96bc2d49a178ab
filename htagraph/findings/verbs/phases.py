"""What ``htagraph phases`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.core.statistics import MOST
from htagraph.findings.phrases import command_line, plural, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sentences"]

_RECORDED = (
    "Without a profiler there are more: on an H100, decoding kernel by kernel took 1.6 times as long recorded as "
    "unrecorded, and decoding by CUDA graphs 1.3 times."
)
"""What recording costs: measured on `data/gpu_demo/generate` and its `truth.json`."""


def sentences(table: pd.DataFrame, inputs: Sequence[str], annotation: str | None) -> list[str]:
    """Return which phase takes the most time, how busy the device is then, and how fast tokens are made."""
    if not len(table):
        what = "no annotation was recorded" if annotation is None else f"nothing is called {annotation!r}"
        return [
            f"There are no phases: {what}. Put torch.profiler.record_function('name') around a part of the code, call "
            "prof.step() in the loop, and record with ProfilerActivity.CPU."
        ]
    sums = table.groupby("phase", sort=False)[["wall_us", "host_us", "busy_us", "count", "kernels"]].sum()
    most, name = sums.iloc[int(sums["wall_us"].argmax())], str(sums.index[int(sums["wall_us"].argmax())])
    share = 100 * most["busy_us"] / most["wall_us"] if most["wall_us"] else 0.0
    runs = f"; its kernels run {share_text(share)} of that" if most["kernels"] else ""
    queued = most["kernels"] and most["host_us"] + most["busy_us"] < MOST * most["wall_us"]
    where = f", its host {time_text(most['host_us'])}; else its work waits on the device" if queued else ""
    ranks = f"over {plural(table['rank'].nunique(), 'rank')} " if table["rank"].nunique() > 1 else ""
    lines = [
        f"{name} takes the most wall time: {time_text(most['wall_us'])} {ranks}in "
        f"{plural(int(most['count']), 'region')}{runs}{where}."
    ]
    known = table[table["tokens"] > 0]
    if len(known):
        tokens = known.groupby("phase")[["tokens", "wall_us"]].sum()
        rates = [f"{phase} {1e6 * row.tokens / row.wall_us:,.0f}" for phase, row in tokens.iterrows() if row.wall_us]
        recorded = f" {_RECORDED}" if known["kernels"].any() else ""
        lines.append(f"Tokens per second of a rank's wall time: {', '.join(rates)}.{recorded}")
    elif not most["kernels"] or queued:
        nothing = "It launches nothing. " if table["kernels"].any() and not queued else ""
        what = "what the device does meanwhile" if queued else "what the host does meanwhile"
        lines.append(f"{nothing}To see {what}: {command_line('critical-path', inputs)}")
    else:
        line = command_line("what-if", inputs, "--scale", f"op={name}:0.5")
        lines.append(f"To predict the job if {name} took half its time: {line}")
    return lines
