"""Run notebooks from their first cell to their last and store what they show, figures as pictures.

Needs `pip install 'htagraph[notebook,image]' nbclient ipykernel`, and Chrome or Chromium, which draws the figures.

Example:
    python notebooks/run.py                        # all
    python notebooks/run.py notebooks/what_if.ipynb
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
WIDTH = 900
"""Pixels of a figure's width: what GitHub shows without scaling it down. Doubled, its letters are half as large there."""
BARE = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""What a stored notebook says about the machine that ran it: nothing."""
NOT_STORED = ("text/plain",)
"""Of an output that has a picture, what is left out: how Python would print it."""
SETUP = f"""
import os, sys, plotly.io
plotly.io.renderers["png"].width = {WIDTH}
plotly.io.defaults.default_width = {WIDTH}
plotly.io.renderers.default = "png"
"""
"""Run before the first cell. Not stored."""


def run(path: Path) -> int:
    """Run one notebook and write it back, and return its size in bytes."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER.parent)}})
    with client.setup_kernel(env=os.environ | {"HTAGRAPH_NO_CACHE": "1"}):
        client.kc.execute(SETUP, silent=True)
        numbered = 0
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                numbered += 1
                client.execute_cell(cell, index, execution_count=None)
                cell.execution_count = numbered
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [kept(output, cell.execution_count) for output in cell.outputs if shown(output)]
    notebook.metadata = BARE
    nbformat.write(notebook, path)
    return path.stat().st_size


def shown(output: nbformat.NotebookNode) -> bool:
    """Return whether an output is the notebook's, and not a note to who runs it, such as that something compiles."""
    return bool(output.output_type != "stream" or output.name == "stdout")


def kept(output: nbformat.NotebookNode, number: int) -> nbformat.NotebookNode:
    """Return an output with one form of a picture, and with the number of its cell."""
    output.metadata = {}
    if "image/png" in output.get("data", {}):
        output.data = {"image/png": output.data["image/png"]}
    if output.output_type == "execute_result":
        output.execution_count = number
    return output


def main() -> None:
    """Run the notebooks that the command line names, or all."""
    for path in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        print(f"{run(path):>9,} bytes  {path.name}", flush=True)


if __name__ == "__main__":
    main()
