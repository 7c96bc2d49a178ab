"""MemoryAnalysis: HTA's interface to the memory timelines that torch.profiler exports."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path

import pandas as pd

from htagraph.hta.shapes.figures import memory_categories, show
from htagraph.trace.profiler_files.files import read_memory_timeline, times_and_sizes

__all__ = ["MemoryAnalysis"]


class MemoryAnalysis:
    """What a device's memory was used for, from ``prof.export_memory_timeline("….raw.json.gz")``.

    Args:
        path: the file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def plot_memory_timeline(self, save_graph: bool = False) -> None:
        """Show the memory in use by category over time, or write it to the folder ``images``.

        Args:
            save_graph: write ``images/memory_plot.png`` instead; ``images/memory_plot.html`` where no kaleido is
                installed, without which plotly makes no images.
        """
        figure = memory_categories(self._timeline).update_layout(
            title_text="Memory timeline", yaxis_title="Memory (GB)", width=1200, height=800
        )
        if not save_graph:
            show(figure)
            return
        folder = Path("images")
        folder.mkdir(exist_ok=True)
        try:
            figure.write_image(folder / "memory_plot.png")
        except (ImportError, RuntimeError, ValueError) as error:
            figure.write_html(folder / "memory_plot.html")
            message = f"wrote {folder / 'memory_plot.html'}: plotly makes no image here ({str(error).splitlines()[0]})"
            warnings.warn(message, stacklevel=2)

    def _process_raw_events(self) -> tuple[list[int], list[list[int]]]:
        """Return the moments of changes, and the bytes in use by category after each, in HTA's order."""
        times, sizes = times_and_sizes(self.path)
        return times.tolist(), sizes.tolist()

    @cached_property
    def _timeline(self) -> pd.DataFrame:
        return read_memory_timeline(self.path)
