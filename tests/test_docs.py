"""The pages: what they show runs, where they point is there, and their pictures are those of the code."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from docs import drawings
from htagraph.graph import load as load_module
from tests.reach import DATA, REPOSITORY, graph_of

DOCS = REPOSITORY / "docs"
PAGES = sorted(path for path in [REPOSITORY / "README.md", *DOCS.rglob("*.md")] if path.parent.name != "decisions")
_ELSEWHERE = {"recording.md", "ci.md"}
"""Pages whose code needs PyTorch or a CI server; the tests of these parts run it."""
_SERVERS = {"serve", "mcp"}
"""Commands that go on until they are stopped."""
_LARGEST_PICTURE = 150_000
"""Bytes of a picture. Chosen: a page with ten of them still opens at once. Doubled, nothing depends on it."""


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    """Return (language, text) of each block of code on a page."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return iter(found)


def commands() -> dict[str, list[str]]:
    """Return the command lines on all pages as lists of words, by their text."""
    found: dict[str, list[str]] = {}
    for path in PAGES:
        for language, text in blocks(path):
            if language in ("", "bash", "console"):
                lines = [re.sub(r"\s+#\s.*", "", line) for line in text.splitlines() if line.startswith("htagraph ")]
                found |= {line: shlex.split(line)[1:] for line in lines}
    return {line: words for line, words in found.items() if words[0] not in _SERVERS}


# what pages show


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which every path that the pages name is there; commands read each job once."""
    for name, job in (("traces", "demo"), ("before", "gpu_demo/before"), ("after", "gpu_demo/after")):
        (tmp_path / name).symlink_to(DATA / job)
    (tmp_path / "data").symlink_to(DATA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(load_module, "load", _load_once)
    return tmp_path


_loaded: dict[Any, Any] = {}
_load = hg.load  # before it is replaced: `htagraph` keeps what it has looked up once


def _load_once(paths: Any, *chosen: Any, **options: Any) -> Any:
    """Load what a command asks for, or give what an earlier one got; all else as it is."""
    if not isinstance(paths, list):
        return _load(paths, *chosen, **options)
    key = (*(str(Path(path).resolve()) for path in paths), str(chosen), str(sorted(options.items())))
    if key not in _loaded:
        _loaded[key] = _load([Path(path).resolve() for path in paths], *chosen, **options)
    return _loaded[key]


@pytest.mark.slow
@pytest.mark.parametrize("line", commands())
def test_a_command_on_a_page_runs(line: str, folder: Path, run: Callable[..., Any]) -> None:
    words = commands()[line]
    file = re.compile(r"(^|/)\w+\.(json|sqlite)$|://")
    absent = [word for word in words if file.search(word) and words[words.index(word) - 1] != "-o"]
    if absent:
        pytest.skip(f"no {absent[0]} here")
    ran = run(*words)
    assert ran.code == 0, ran.err
    assert ran.out or any(path.name not in ("traces", "before", "after", "data") for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_sessions_on_a_page_give_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    session = "\n".join(text for language, text in blocks(path) if language == "pycon")
    test = doctest.DocTestParser().get_doctest(session, {}, path.name, str(path), 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in _ELSEWHERE], ids=name_of)
def test_the_python_on_a_page_runs(path: Path, folder: Path) -> None:
    assert folder.is_dir()
    names: dict[str, object] = {}
    for language, text in blocks(path):
        if language == "python" and "hg.profile(" not in text:  # recording needs PyTorch
            exec(text, names)


def test_the_start_records_as_the_page_of_recording_does() -> None:
    (shown,) = [text for language, text in blocks(DOCS / "index.md") if language == "python"]
    assert shown == next(blocks(DOCS / "recording.md"))[1]


@pytest.mark.slow
def test_the_start_explains_sentences_that_the_summary_says() -> None:
    said = " ".join(hg.summarize(graph_of(DATA / "demo")).verdict).lower()
    section = (DOCS / "index.md").read_text(encoding="utf-8").split("| the summary says |")[1].split("\n\n")[0]
    quoted = [line.split(" | ")[0].strip("| ").replace("`", "") for line in section.splitlines()[2:]]
    assert len(quoted) > 3
    assert [each for each in quoted if each.lower() not in said] == []


# where pages point


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_every_page_is_on_the_site() -> None:
    shown = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(DOCS).as_posix() for path in PAGES if path.is_relative_to(DOCS)]
    assert [page for page in pages if not re.search(rf"[:-] {re.escape(page)}$", shown, re.MULTILINE)] == []


# pictures


@cache
def _written(name: str) -> str:
    return (DOCS / "img" / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_a_drawing_is_what_the_script_draws(name: str) -> None:
    assert drawings.DRAWINGS[name]() == _written(name), "run python docs/drawings.py"


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.svg")), ids=name_of)
def test_a_picture_is_small_and_runs_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) <= _LARGEST_PICTURE
    assert "<script" not in text
    assert not re.search(r"(href|src)=\"http", text)


def test_a_figure_is_of_a_function_that_has_one() -> None:
    names = [path.stem for path in (DOCS / "img" / "figures").glob("*.svg")]
    assert names
    assert [name for name in names if not hasattr(hg.plot, name.replace(".", "_"))] == []


def test_the_job_of_the_drawings_is_that_of_the_concepts() -> None:
    page = (DOCS / "concepts.md").read_text(encoding="utf-8")
    rows = re.findall(r'^\.\.\. +"([\w ]+)": \((\d), "(\w+)", "\w+", (\d+), (\d+)\),$', page, re.MULTILINE)
    shown = {name: drawings.Bar(int(rank), lane, int(start), int(us)) for name, rank, lane, start, us in rows}
    assert shown == drawings.BARS
    edges = re.findall(r'^\.\.\. +\("([\w ]+)", "([\w ]+)", (\d+), (True|False)\),$', page, re.MULTILINE)
    assert [drawings.Edge(a, b, int(lag), from_start=first == "True") for a, b, lag, first in edges] == [
        *drawings.EDGES
    ]
