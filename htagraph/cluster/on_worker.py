"""What a worker does: reads one file, and sends back the digest of its rank, or a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import pandas as pd

from htagraph.cluster.run_each import Failed
from htagraph.core.errors import HtagraphError
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.load import load
from htagraph.queries.rank_digests.digest import digest
from htagraph.trace.discover import Looked, RankedFile, look_at
from htagraph.trace.remote import TracePath

__all__ = ["ReadOptions", "digest_of", "looks", "release", "table_of"]


class ReadOptions(NamedTuple):
    """How files are read, and by which release."""

    steps: tuple[int, ...] | None = None
    cache: bool | str | os.PathLike[str] = False
    naming: Naming = DEFAULT_NAMING
    python: bool | None = None
    release: str = ""


def release() -> str:
    """Return the release of the program that runs here."""
    try:
        return version("htagraph")
    except PackageNotFoundError:  # not installed
        return ""


def looks(paths: Sequence[TracePath], alone: bool) -> list[Looked]:  # noqa: FBT001 - engines pass it on by position
    """Return what the headers of some files say of their ranks."""
    return [look_at(path, alone=alone) for path in paths]


def digest_of(file: RankedFile, reading: ReadOptions) -> bytes | Failed:
    """Return the digest of a rank as bytes."""
    return _answer(file, reading, lambda graph: digest(graph, naming=reading.naming).to_bytes())


def table_of(
    file: RankedFile, reading: ReadOptions, analysis: Callable[..., pd.DataFrame], given: Sequence[Any],
    options: dict[str, Any],
) -> pd.DataFrame | Failed:  # fmt: skip
    """Return an analysis of a rank."""
    return _answer(file, reading, lambda graph: analysis(graph, *given, **options))


def _answer(file: RankedFile, reading: ReadOptions, question: Callable[[DependencyGraph], Any]) -> Any:  # noqa: ANN401
    """Return an answer about a rank, or why there is none. No error leaves: those of stores do not survive the way."""
    if reading.release != release():
        what = f"the worker has htagraph {release() or 'of no release'}, this program {reading.release or 'none'}"
        return Failed(f"{what}; install the same release on both")
    try:
        graph = load(
            {file.rank: file.path}, steps=reading.steps, naming=reading.naming, cache=reading.cache,
            python=reading.python,
        )  # fmt: skip
        return question(graph)
    except HtagraphError as error:
        why = error.__cause__  # a store or a disk may answer another time
        lasting = FileNotFoundError | PermissionError | IsADirectoryError
        return Failed(str(error), isinstance(why, OSError) and not isinstance(why, lasting))
    except MemoryError:
        return Failed(f"{file.path}: does not fit into the worker's memory", may_mend=True)
    except OSError as error:
        return Failed(f"{file.path}: {error}", may_mend=True)
    except Exception as error:  # noqa: BLE001 - a defect of ours must not cost the other ranks
        return Failed(f"{file.path}: {type(error).__name__}: {error}")
