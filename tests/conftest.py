"""Fixtures that several test files share."""

from __future__ import annotations

import gc
import logging
import os
import sys
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, is_hypothesis_test, seed, settings

from htagraph.cli import main as cli
from htagraph.graph import load as loading
from tests.command_line import Ran
from tests.loaded_once import loading_once
from tests.reach import JOBS, REPOSITORY

_EXAMPLES = 25
"""Examples of a law that says no number, where every run has the same. Chosen: examples that passed once pass again
until the code they reach changes, so more of them cost more than they find; `new` draws 100. Doubled, laws of 52 kinds
take twice as long."""

settings.register_profile(
    "same", deadline=None, derandomize=True, max_examples=_EXAMPLES, phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("new", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
"""The same examples in every run, however slow the machine, so that what was good stays good;
``HYPOTHESIS_PROFILE=new`` looks for others and makes them small."""


_ALLOCATIONS_PER_COLLECTION = 200_000
"""Objects made until Python looks for cycles again, instead of 700. Chosen: kept graphs and thousands of collected
tests are objects that it would walk through each time, for a sixth of the suite's time. Doubled, memory grows."""


_FOLDERS_OF_LAWS = {("tests", "analyses"), ("tests", "graph"), ("tests", "output"), ("tests", "queries")}
"""Folders with ten laws and more about any job. Those of other folders each draw jobs of their own."""


_SLOW_EXAMPLES = {
    "htagraph.analyses.slack.slack",
    "htagraph.analyses.stragglers.stragglers",
    "htagraph.output.export.parquet.to_parquet",
    "htagraph.output.export.perfetto.to_perfetto",
    "htagraph.output.html.report.report",
    "htagraph.output.summary.Summary.to_dict",
    "htagraph.output.summary.summarize",
}
"""Examples in docstrings of the package that take more than half a second of processor time, as tests marked slow."""


_ONE_OF = 1 if os.environ.get("HTAGRAPH_EVERY_CASE") else 6
"""Of the cases of a slow test, and of the recordings that a law is asked of, one in so many is run. Names choose these,
the same on every machine, and each test has one case at least. ``HTAGRAPH_EVERY_CASE=1`` runs every case. Chosen: on
two cores the whole takes 12 minutes, and all cases 20. Doubled, some recordings are asked by few laws."""


_LOAD = loading.load
_LOAD_ONCE = loading_once(_LOAD)
"""Commands that `run` calls read the repository's jobs once, unless a test replaces what loads."""


def pytest_configure() -> None:
    """Let commands compile without a word and keep nothing: what was run before depends on the machine."""
    logging.getLogger("htagraph").addFilter(lambda record: record.levelno > logging.INFO)
    os.environ["HTAGRAPH_NO_CACHE"] = "1"  # commands would answer from what they loaded before a change


def pytest_collection_finish() -> None:
    """Let Python look for cycles among new objects only, and seldom."""
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[Any], list[Any]]:
    """Look for no doctests in the tests: they have none, and looking takes a third of the time of collection."""
    collectors = yield
    return [each for each in collectors if type(each).__name__ != "DoctestModule"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow examples of the package, and put the tests of one real trace side by side.

    A worker then reads a trace once for all its tests, and no other worker reads it too.
    """
    for item in items:
        _draw_what_neighbours_draw(item)
        if item.name in _SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
    left_out = _left_out(items)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=_trace_of)


def _left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases that are run only where every case is asked for: five of six cases that take long."""
    tests = set[str]()
    left_out = set[pytest.Item]()
    for item in items:
        takes_long = item.get_closest_marker("slow") is not None or _trace_of(item) != ""
        if not hasattr(item, "callspec") or not takes_long:
            continue
        test = item.nodeid.partition("[")[0]
        is_first = test not in tests
        is_drawn = zlib.crc32(item.nodeid.encode()) % _ONE_OF == 0
        if is_first or is_drawn:
            tests.add(test)
        else:
            left_out.add(item)
    return left_out


def _draw_what_neighbours_draw(item: pytest.Item) -> None:
    """Give the laws of a folder one seed, so that those about the same strategy see the same jobs, each read once."""
    folder = item.path.relative_to(REPOSITORY).parts[:2]
    law: Any = getattr(item, "obj", None)
    if folder in _FOLDERS_OF_LAWS and settings().derandomize and is_hypothesis_test(law):
        seed(zlib.crc32("/".join(folder).encode()))(law)


def _trace_of(item: pytest.Item) -> str:
    """Return the trace in reach that a test is about, as a key; "" for others, whose order stays."""
    path = item.callspec.params.get("path") if hasattr(item, "callspec") else None
    return str(path) if path in JOBS else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker a stretch of neighbouring tests, and later what others have left.

    Neighbours share graphs, files and jobs, which each worker then makes only once.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs the command line in this process."""

    def call(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["htagraph", *map(str, arguments)])
        code: Any = 0
        with monkeypatch.context() as during:
            if loading.load is _LOAD:  # no test put another there
                during.setattr(loading, "load", _LOAD_ONCE)
            try:
                cli.main()
            except SystemExit as left:
                code = left.code or 0
        out, err = capsys.readouterr()
        return Ran(int(code), out, err)

    return call
