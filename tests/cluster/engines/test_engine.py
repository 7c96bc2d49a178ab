"""Every engine has what is asked of one."""

from __future__ import annotations

from typing import Any

import pytest

from htagraph.cluster.engines.dask import Dask
from htagraph.cluster.engines.engine import Engine
from htagraph.cluster.engines.executor import OfExecutor
from htagraph.cluster.engines.processes import Processes
from htagraph.cluster.engines.ray import Ray


@pytest.mark.parametrize("kind", [Dask, OfExecutor, Processes, Ray])
def test_an_engine_can_do_what_is_asked_of_one(kind: Any) -> None:
    asked = [name for name in vars(Engine) if not name.startswith("_")]
    assert asked
    assert all(callable(getattr(kind, name)) for name in asked)
