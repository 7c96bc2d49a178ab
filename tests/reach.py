"""The traces in reach: those of the repository, and real ones where the folder of shared traces is there."""

from __future__ import annotations

import ast
import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import htagraph as hg
from htagraph import DependencyGraph

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = REPOSITORY / "data"
SHARED = REPOSITORY / os.environ.get("HTAGRAPH_SHARED", "../shared") / "traces"
_NOT_TRACES = ("benchmark_simple_add_et", "truth.json")


def _files(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*.json*") if path.name.endswith((".json", ".json.gz"))]
    return sorted(path for path in found if not path.name.startswith(_NOT_TRACES))


DATASETS = sorted({path.parent for path in _files(DATA) if path.parent.parent == DATA})
"""Folders of the repository's own traces: one job each."""
REAL = _files(SHARED)
"""Real traces recorded by others; none where the folder is absent."""
JOBS = [*DATASETS, *REAL]
LARGE_BYTES = 400_000


def label(path: object) -> str:
    """Return a short name for test ids."""
    if not isinstance(path, Path):  # pytest of 2023 asks also for that of no file at all
        return ""
    base = DATA if path.is_relative_to(DATA) else SHARED
    return path.relative_to(base).as_posix().removesuffix(".gz").removesuffix(".json")


@cache
def graph_of(path: Path) -> DependencyGraph:
    """Return the graph of a folder, or of one file as rank 0; read once."""
    return hg.load(path if path.is_dir() else {0: path})


def only_for_types(tree: ast.AST) -> set[int]:
    """Return the ids of the nodes of a module that only type checkers see."""
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {id(node) for block in blocks for node in ast.walk(block)}


def raw_events(path: Path) -> list[dict[str, Any]]:
    """Return a file's events as the json module reads them."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    root = json.loads(data)
    return list(root if isinstance(root, list) else root["traceEvents"])
