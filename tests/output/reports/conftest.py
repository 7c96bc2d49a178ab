"""Fixtures of the reports' tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from htagraph.simulate import REGIMES, Job, simulate


@pytest.fixture
def results(run: Any) -> Callable[..., dict[str, Any]]:
    """Return a function that gives the results of a command as JSON."""

    def of(*words: str | Path) -> dict[str, Any]:
        ran = run(*words, "--format", "json")
        assert (ran.code, "error" in ran.err, "NaN" in ran.out) == (0, False, False)
        found: dict[str, Any] = json.loads(ran.out)["results"]
        return found

    return of


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function that gives a folder with the traces of two steps of a regime."""

    @cache
    def folder(regime: str) -> str:
        job = Job.model_validate(REGIMES[regime]().model_dump() | {"steps": 2})
        path = tmp_path_factory.mktemp(regime)
        simulate(job).write(path, truth=False)
        return str(path)

    return folder
