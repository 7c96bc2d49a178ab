"""ARCHITECTURE.md says what is: its drawing of imports, its list of imports that point upward, its paths."""

from __future__ import annotations

import ast
import re
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.reach import REPOSITORY, only_for_types

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PACKAGE = REPOSITORY / "htagraph"
PAGE = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRACTS: list[dict[str, Any]] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
FLOORS = [floor.split(" | ") for floor in CONTRACTS[0]["layers"]]
UPWARD = {tuple(line.split(" -> ")) for contract in CONTRACTS for line in contract.get("ignore_imports", ())}
PAGES = [
    REPOSITORY / "ARCHITECTURE.md",
    REPOSITORY / "CONTRIBUTING.md",
    *(REPOSITORY / "docs" / "decisions").glob("*.md"),
]


def drawing(container: str) -> list[str]:
    """Return the lines of the drawing behind a sentence of the page."""
    block = PAGE.split(container, 1)[1].split("```\n", 1)[1]
    return list(takewhile(lambda line: line != "```", block.splitlines()))


def imports() -> set[tuple[str, str]]:
    """Return (module, imported module) of every import inside the package, those inside functions too."""
    pairs = set[tuple[str, str]]()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typing = only_for_types(tree)
        froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and id(node) not in typing]
        pairs |= {(module, str(node.module)) for node in froms if (node.module or "").startswith("htagraph.")}
    return pairs


def floor_of(module: str) -> int:
    """Return on which floor a module lies, the uppermost 0; -1 for what lies beside the floors."""
    name = module.split(".")[1] if "." in module else ""
    return next((i for i, names in enumerate(FLOORS) if name in names), -1)


@pytest.mark.parametrize(("sentence", "number"), [("Twelve names on eight floors", 0), ("Inside `graph`:", 1)])
def test_the_drawing_is_the_import_contract(sentence: str, number: int) -> None:
    assert drawing(sentence) == CONTRACTS[number]["layers"]


def test_every_import_between_floors_points_downward_or_is_listed() -> None:
    upward = {
        (importer, imported)
        for importer, imported in imports()
        if floor_of(importer) >= 0 and floor_of(imported) >= 0
        and importer.split(".")[1] != imported.split(".")[1] and floor_of(imported) <= floor_of(importer)
    }  # fmt: skip
    assert upward <= UPWARD, f"imports that point upward and are not listed: {sorted(upward - UPWARD)}"


def test_the_page_lists_the_imports_that_point_upward() -> None:
    listed = set(re.findall(r"^\| `(htagraph\S+)` \| `(htagraph\S+)` \|", PAGE, re.MULTILINE))
    assert listed == UPWARD


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_paths_that_a_page_names_are_there(path: Path) -> None:
    """A path with <name> stands for any file of that pattern: at least one must exist."""
    text = path.read_text(encoding="utf-8")
    roots = "|".join(sorted(each.name for each in PACKAGE.iterdir() if each.is_dir()))
    named = re.findall(rf"`((?:htagraph|tests|docs|benchmarks|data|(?:{roots}))/[\w./<>*-]*)`", text)
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    absent = [name for name in named if not any(there(root, name) for root in (REPOSITORY, PACKAGE))]
    absent += [link for link in links if not (path.parent / link).exists()]
    assert not absent, f"{path.name} names {absent}"


def there(root: Path, name: str) -> bool:
    """Return whether a path, or one that fits its pattern, with or without .py, exists below a folder."""
    pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
    return any(any(root.glob(each)) for each in (pattern, f"{pattern}.py"))


def test_every_decision_is_in_the_index() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for page in sorted(folder.glob("[0-9]*.md")):
        title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix(f"# {page.name[:4]}. ")
        assert f"| [{page.name[:4]}]({page.name}) | {title} |" in index
