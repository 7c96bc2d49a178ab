"""CONTRIBUTING.md and what it names: files, patterns of files, and the commands of the Makefile."""

from __future__ import annotations

import re

import pytest

from tests.reach import REPOSITORY

PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^## (Add .+)$", PAGE, re.MULTILINE)
"""The sections that say which files something new needs."""
EXAMPLES = {
    "Add an analysis": "overlap",
    "Add a figure": "overlap",
    "Add a table to the page": "timeline",
    "Add a verb": "idle",
    "Add a finding": "interrupted",
    "Add a change to what-if": "scale",
    "Add an edge rule": "host_sync",
    "Add a format of traces": "kineto",
}
"""Something that was added as each section says."""


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_each_recipe_has_an_example() -> None:
    assert list(EXAMPLES) == RECIPES


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_files_of_a_recipe_exist_and_name_what_was_added(title: str) -> None:
    name = EXAMPLES[title]
    files = re.findall(r"^\| `([^`]+)` \|", section(title), re.MULTILINE)
    assert len(files) >= 3
    for file in files:
        path = REPOSITORY / file.replace("<name>", name)
        assert path.is_file(), f"{title}: {file} does not exist for {name}"
        if path.name != "CHANGELOG.md":
            words = rf"\b{name}\b|\b{name.upper()}\b|\b{name.replace('_', '-')}\b"
            assert re.search(words, path.read_text(encoding="utf-8")), f"{title}: {file} does not name {name}"


def test_the_commands_of_the_makefile_are_those_of_the_page() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):.*##", makefile, re.MULTILINE)) - {"help"}
    assert targets == set(re.findall(r"`(?:\.venv/bin/)?make (\w+)`", PAGE)) | {"setup"}


def test_the_hooks_before_a_commit_are_the_checks_of_the_makefile() -> None:
    hooks = re.findall(r"entry: (.+)", (REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    checks = (REPOSITORY / "Makefile").read_text(encoding="utf-8").split("check:", 1)[1].split("\n\n", 1)[0]
    for hook in hooks:
        assert " ".join(hook.replace(" --force-exclude", "").split()[:2]) in checks


def test_every_benchmark_is_described() -> None:
    folder = REPOSITORY / "benchmarks"
    page = (folder / "README.md").read_text(encoding="utf-8")
    absent = [path.name for path in folder.glob("*.py") if f"`{path.name}`" not in page]
    assert not absent, f"benchmarks/README.md does not describe {absent}"
