"""Every notebook runs, from its first cell to its last, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reach import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
MOST_BYTES = 400_000
"""Of one notebook. Chosen: GitHub shows it at once, and a clone stays small."""
MOST_BYTES_TOGETHER = 2_500_000
"""Of all notebooks. Chosen likewise."""
UNSEEN = """
import plotly.io
from plotly.io.base_renderers import ExternalRenderer
class Unseen(ExternalRenderer):
    def render(self, figure):
        pass
plotly.io.renderers["unseen"] = Unseen()
plotly.io.renderers.default = "unseen"
"""
"""Figures are made and shown to nobody: others of plotly's renderers need IPython, or open a browser."""


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    done = subprocess.run(
        [sys.executable, "-c", UNSEEN + code], capture_output=True, text=True, check=False, cwd=REPOSITORY,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_as_it_ran(path: Path) -> None:
    code = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    shown = {kind for output in outputs for kind in output.get("data", {})}
    assert shown <= {"image/png", "text/plain", "text/html"}, "GitHub runs no scripts"


def test_stored_outputs_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in NOTEBOOKS}
    assert max(sizes.values()) <= MOST_BYTES
    assert sum(sizes.values()) <= MOST_BYTES_TOGETHER


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_nothing_about_the_machine_that_ran_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not [word for word in (str(REPOSITORY), str(Path.home()), "/tmp/") if word in text]


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem != "coming_from_hta"], ids=lambda p: p.stem)
def test_a_notebook_ends_in_a_decision_that_its_cells_assert(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    last = "".join(cells[-1]["source"])
    assert cells[-1]["cell_type"] == "markdown"
    assert "## Decision" in last
    assert [cell for cell in cells if cell["cell_type"] == "code" and "\nassert " in "\n" + "".join(cell["source"])]


def test_the_list_of_notebooks_is_complete() -> None:
    listed = re.findall(r"\]\((\w+)\.ipynb\)", (REPOSITORY / "notebooks" / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [path.stem for path in NOTEBOOKS]
