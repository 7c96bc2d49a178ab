"""Draw the figures on the pages of functions: `python docs/figures.py` writes docs/img/figures/<function>.svg.

It needs `pip install '.[image]'` and Chrome or Chromium, so the site is built with what lies there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import htagraph as hg

DATA = Path(__file__).parents[1] / "data"
FIGURES = Path(__file__).parent / "img" / "figures"
_WIDTH = 900
"""Pixels. Chosen: letters are as large as those of the page. Doubled, they are half as large."""
_OF_DEMO = (
    "collectives", "critical_path", "idle_breakdown", "kernel_breakdown", "kernel_distribution", "launch_stats",
    "opportunities", "overlap", "queue_length", "slack", "stragglers", "temporal_breakdown",
)  # fmt: skip
_OF_TRAINING = ("kernel_owners", "module_breakdown", "operator_breakdown", "roofline")
"""Figures of a simulated job of four ranks, and of one that was recorded with stacks and shapes."""


def results() -> Mapping[str, Callable[[], Any]]:
    """Return what each figure shows, by the function whose result it is."""
    demo, training = hg.load(DATA / "demo"), hg.load(DATA / "gpu_demo" / "train")
    before, after = (hg.load(DATA / "gpu_demo" / each) for each in ("before", "after"))
    return {
        **{name: (lambda name=name: getattr(hg, name)(demo)) for name in _OF_DEMO},
        **{name: (lambda name=name: getattr(hg, name)(training)) for name in _OF_TRAINING},
        "memory.timeline": lambda: hg.memory.timeline(training),
        "diff": lambda: hg.diff(before, after),
        "what_if": lambda: hg.what_if(demo).fix_straggler(rank="auto").run(),
        "sweep": lambda: hg.sweep(
            demo, lambda job, factor: job.scale(kind="computation", factor=factor), [0, 0.25, 0.5, 0.75, 1, 1.5, 2]
        ),
    }


def main() -> None:
    """Write every figure."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, result in results().items():
        figure = getattr(hg.plot, name.replace(".", "_"))(result())
        (FIGURES / f"{name}.svg").write_bytes(figure.to_image("svg", width=_WIDTH))


if __name__ == "__main__":
    main()
