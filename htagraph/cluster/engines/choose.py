"""What a user gives as an engine → the Engine."""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from typing import Any

from htagraph.cluster.engines.engine import Engine
from htagraph.core.errors import HtagraphError

__all__ = ["engine_of"]


def engine_of(engine: Any) -> Engine:  # noqa: ANN401 - of one of several libraries, which need not be installed
    """Return what calls functions on the workers that a user named.

    Args:
        engine: ``"processes"``, or the number of processes; a `distributed.Client`, or the address of a Dask scheduler
            (``"tcp://…"``); ``"ray"`` or the module; or any `concurrent.futures.Executor`.

    Raises:
        TypeError: it is none of these.
        HtagraphError: no scheduler answers at the address.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> engine_of(ThreadPoolExecutor(3)).slots()
        3
    """
    if engine == "processes" or (isinstance(engine, int) and not isinstance(engine, bool) and engine > 0):
        from htagraph.cluster.engines.processes import Processes

        return Processes(None if engine == "processes" else engine)
    if engine == "ray":
        return _ray()
    if isinstance(engine, str) and "://" in engine:
        from htagraph.cluster.engines.dask import Dask

        return Dask.at(engine)
    if isinstance(engine, Executor):
        from htagraph.cluster.engines.executor import OfExecutor

        return OfExecutor(engine)
    return _of_library(engine)


def _ray() -> Engine:
    """Return Ray as it is reached from here.

    Raises:
        HtagraphError: it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        msg = "Ray needs a package: pip install 'htagraph[ray]'"
        raise HtagraphError(msg) from error
    from htagraph.cluster.engines.ray import Ray

    return Ray(ray)


def _of_library(engine: Any) -> Engine:  # noqa: ANN401
    """Return the engine of an object of Dask or Ray; whoever made it has imported the library."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(engine, distributed.Client):
        from htagraph.cluster.engines.dask import Dask

        return Dask(engine)
    if engine is not None and engine is sys.modules.get("ray"):
        from htagraph.cluster.engines.ray import Ray

        return Ray(engine)
    if hasattr(engine, "submit") and hasattr(engine, "slots"):
        return engine  # one that was chosen before
    msg = (
        f"engine={engine!r}: give 'processes', a dask.distributed Client or the address of its scheduler, the module "
        "ray, or a concurrent.futures executor"
    )
    raise TypeError(msg)
