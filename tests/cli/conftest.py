"""Fixtures of the commands' tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from htagraph.simulate import REGIMES, Job, simulate


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
