"""Whether the tests notice faults: plants one fault at a time in a copy of the code and runs the tests of that floor.

    python -m benchmarks.mutants                      # this tree
    python -m benchmarks.mutants --tree ../older      # another one: the same faults, where the functions are the same
    python -m benchmarks.mutants --only detours

A fault turns one comparison, sum, product, ``and`` or ``or`` of a function into its opposite. Functions are found by
name, wherever they are; faults are drawn by a fixed seed. A fault that no test of its floor notices is printed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

__all__ = ["FUNCTIONS", "faults", "main"]

REPOSITORY = Path(__file__).parents[1]
FUNCTIONS = (
    "others_median", "detours", "find_events", "memcpy_sync", "fit_pair", "chains_of", "_way_row", "rank_differences",
    "_with_merged_pauses", "_typical", "_rates", "change_of_times", "arrows", "heaviest_path", "backward_thread",
)  # fmt: skip
"""Functions of ten floors that decide something."""
_OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_EACH = 3
"""Faults of one function."""
_LIMIT_S = 900
"""A fault that makes the tests run longer is noticed."""


def main() -> None:
    """Plant the faults one after the other and print which of them the tests notice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=REPOSITORY)
    parser.add_argument("--only", default="", help="part of a function's name")
    asked = parser.parse_args()
    noticed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(asked.tree, copy, ignore=shutil.ignore_patterns(".git", "build", "*.egg-info"))
        for name in (each for each in FUNCTIONS if asked.only in each):
            file, text = _where(copy, name)
            for label, faulty in faults(text, name):
                file.write_text(faulty, encoding="utf-8")
                seen = _tests_fail(copy, file)
                count, noticed = count + 1, noticed + seen
                print(f"{'noticed' if seen else 'MISSED '}  {name}: {label}", flush=True)
            file.write_text(text, encoding="utf-8")
    print(f"{noticed} of {count} faults noticed")


def _where(tree: Path, name: str) -> tuple[Path, str]:
    for file in sorted((tree / "htagraph").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if f"def {name}(" in text:
            return file, text
    message = f"error: no function {name} in {tree}"
    raise SystemExit(message)


def faults(text: str, name: str) -> Iterator[tuple[str, str]]:
    r"""Yield (what was changed, the module with that fault) for a few places in a function, the same in each run.

    Example:
        >>> [label for label, _ in faults("def f(a, b):\n    return a < b", "f")]
        ['a < b -> a >= b']
    """
    function = _function(ast.parse(text), name)
    places = [at for at, node in enumerate(_inside(function)) if type(_operator(node)) in _OPPOSITE]
    for at in sorted(random.Random(name).sample(places, min(_EACH, len(places)))):
        tree = ast.parse(text)
        node = _inside(_function(tree, name))[at]
        before = ast.unparse(node)
        _turn(node)
        yield f"{before} -> {ast.unparse(node)}", ast.unparse(tree)


def _function(tree: ast.Module, name: str) -> ast.FunctionDef:
    return next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)


def _inside(function: ast.FunctionDef) -> list[ast.AST]:
    return [node for statement in function.body for node in ast.walk(statement)]


def _operator(node: ast.AST) -> ast.AST | None:
    return node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)


def _turn(node: ast.AST) -> None:
    turned = _OPPOSITE[type(cast("ast.AST", _operator(node)))]()
    if isinstance(node, ast.Compare):
        node.ops[0] = turned  # type: ignore[call-overload]
    else:
        node.op = turned  # type: ignore[attr-defined]


def _tests_fail(tree: Path, file: Path) -> bool:
    floor = file.relative_to(tree / "htagraph").parts[0]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", f"tests/{floor}"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode != 0


if __name__ == "__main__":
    main()
