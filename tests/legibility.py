"""Measure what one line of code asks of a reader: tokens, double assignments, filler names, unnamed tuples, pronouns.

``python -m tests.legibility`` lowers the ceilings in ``tests/legibility.csv`` to what the package reaches now; it never
raises a ceiling. ``tests/test_legibility.py`` holds each module to its row, and a module without a row to the goals.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.reach import REPOSITORY

PACKAGE = REPOSITORY / "htagraph"
CEILINGS = Path(__file__).with_suffix(".csv")


class Legibility(NamedTuple):
    """How hard a module is to read."""

    tokens_per_line: float
    """Tokens of code divided by all lines."""
    doubles_per_1000_lines: float
    """Assignments of a tuple to a tuple (``a, b = x, y``) per 1,000 lines."""
    filler_names_percent: float
    """Share of assigned names that do not say what the value is."""
    unnamed_tuples: float
    """Functions annotated as returning an unnamed tuple of three or more parts."""
    pronouns_per_100_words: float
    """Words of docstrings that send the reader back for the noun, per 100 words."""
    unformatted: float
    """Places withheld from the formatter."""


GOAL = Legibility(6.5, 3.0, 2.0, 0.0, 0.3, 0.0)
"""What a new module keeps to. Measured on sqlglot, networkx, httpx and pyinstrument: 2.4 to 5.0 tokens a line, 0.3 to
1.0 double assignments, 0.1 to 0.9 % filler names, 0.05 to 0.21 pronouns; the last two goals were chosen. One module may
be denser than the 5.5 tokens a line that all modules together shall reach."""
NOISE = 1.02
"""A rate may grow by this factor, as it does when lines that are better than the rest are deleted: chosen."""
_FILLER = frozenset(
    [
        "each",
        "own",
        "known",
        "some",
        "at",
        "part",
        "parts",
        "found",
        "rest",
        "of_it",
        "those",
        "many",
        "much",
        "both",
        "other",
        "others",
        "all",
        "one",
        "ones",
        "such",
        "that",
        "this",
        "what",
        "which",
        "where",
        "thing",
        "things",
        "it",
        "its",
        "them",
    ]
)
_PRONOUN = re.compile(r"\b(those|what|of which|of them|others|such|ones)\b", re.IGNORECASE)
_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


def measure(text: str) -> Legibility:
    """Return the legibility of one module's source."""
    tree = ast.parse(text)
    lines = max(len(text.splitlines()), 1)
    names = [name for name in _assigned_names(tree) if name != "__all__"]
    fillers = [name for name in names if name.strip("_") in _FILLER]
    words = [word for doc in _docstrings(tree) for word in re.findall(r"[A-Za-z]+", _without_examples(doc))]
    pronouns = [word for doc in _docstrings(tree) for word in _PRONOUN.findall(_without_examples(doc))]
    return Legibility(
        tokens_per_line=_tokens(text, tree) / lines,
        doubles_per_1000_lines=1000 * sum(map(_is_double, ast.walk(tree))) / lines,
        filler_names_percent=100 * len(fillers) / max(len(names), 1),
        unnamed_tuples=sum(map(_returns_unnamed_tuple, ast.walk(tree))),
        pronouns_per_100_words=100 * len(pronouns) / max(len(words), 1),
        unformatted=text.count("# fmt: skip"),
    )


@cache
def package() -> dict[str, Legibility]:
    """Return the legibility of each module of the package, by path."""
    modules = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): measure(path.read_text(encoding="utf-8")) for path in modules}


def ceilings() -> dict[str, Legibility]:
    """Return the recorded legibility of each module, by path."""
    if not CEILINGS.exists():
        return {}
    with CEILINGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["module"]: Legibility(*(float(row[field]) for field in Legibility._fields)) for row in rows}


def grown(now: Legibility, ceiling: Legibility) -> list[str]:
    """Return the measures that are worse than a ceiling and than the goal, each with both figures."""
    measures = zip(Legibility._fields, now, ceiling, GOAL, strict=True)
    return [
        f"{field} {value:.2f} (at most {max(limit, goal):.2f})"
        for field, value, limit, goal in measures
        if value > max(limit * NOISE, goal)
    ]


def _documented(tree: ast.Module) -> Iterator[ast.Expr]:
    """Yield every statement that is a string: docstrings of modules, classes, functions and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node


def _docstrings(tree: ast.Module) -> list[str]:
    return [str(ast.literal_eval(node.value)) for node in _documented(tree)]


def _without_examples(doc: str) -> str:
    return re.sub(r">>>.*", "", doc)


def _tokens(text: str, tree: ast.Module) -> int:
    documented = {line for node in _documented(tree) for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in _LAYOUT and token.start[0] not in documented for token in tokens)


def _assigned_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for target in _targets(node):
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AnnAssign | ast.For | ast.comprehension | ast.NamedExpr):
        return [node.target]
    return []


def _is_double(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and any(isinstance(target, ast.Tuple) for target in node.targets)
    )


def _returns_unnamed_tuple(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not isinstance(node.returns, ast.Subscript):
        return False
    inner = node.returns.slice
    if ast.unparse(node.returns.value) != "tuple" or not isinstance(inner, ast.Tuple):
        return False
    return len(inner.elts) >= 3 and "..." not in [ast.unparse(element) for element in inner.elts]


def _lowered(now: Legibility, ceiling: Legibility | None) -> Legibility:
    if ceiling is None:
        return now
    return Legibility(*(min(value, limit) for value, limit in zip(now, ceiling, strict=True)))


def _write() -> None:
    recorded = ceilings()
    with CEILINGS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["module", *Legibility._fields])
        for module, now in package().items():
            if recorded and module not in recorded:
                continue  # a new module keeps to the goals, and needs no row
            writer.writerow([module, *(f"{value:.3f}" for value in _lowered(now, recorded.get(module)))])


if __name__ == "__main__":
    _write()
