"""A chart of CPU time by events, as SVG."""

from __future__ import annotations

from pathlib import Path

from benchmarks.speed.figures import by_kind, figure, values_of
from benchmarks.speed.rounds import Runs

__all__ = ["chart"]

_LINES = {"load": "hg.load", "json": "json.loads", "orjson": "orjson", "msgspec": "msgspec", "hta": "HTA's load",
          "questions": "hg.open"}  # fmt: skip


def chart(runs: Runs, path: Path) -> bool:
    """Draw the CPU time of each side by the number of events, a panel per kind of trace; both axes are logarithmic.

    Args:
        runs: what the processes printed.
        path: the SVG file.

    Returns:
        False, and no file is written, where matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        return False
    kinds = by_kind(runs)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "htagraph"}):
        drawn = Figure(figsize=(5 * len(kinds), 4), layout="constrained")
        for axes, (kind, traces) in zip(drawn.subplots(1, len(kinds), squeeze=False)[0], kinds.items(), strict=True):
            for side, label in _LINES.items():
                found = [(t.size, values_of(runs[t], side, "cpu_seconds")) for t in traces]
                points = [(size, figure(values).median) for size, values in found if values]
                if points:
                    axes.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=label)
            axes.set(title=f"{kind} traces", xlabel="complete events", ylabel="CPU seconds")
            axes.minorticks_off()  # they would be most of the file
            axes.grid(visible=True, linewidth=0.3)
            axes.legend(fontsize="small")
        FigureCanvasSVG(drawn).print_svg(path, metadata={"Date": None})
    return True
