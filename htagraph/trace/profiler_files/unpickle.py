"""Pickles of plain values: dicts, lists, tuples, numbers and texts. Anything else is refused, so nothing can run."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

from htagraph.core.errors import DamagedTraceError, NotATraceError
from htagraph.trace.profiler_files.files import content

__all__ = ["read_plain_pickle"]


class _Refused(pickle.UnpicklingError):
    """The pickle asks for a class or function."""


class _PlainUnpickler(pickle.Unpickler):
    """Loads built-in values only: every class, function and outside object that a pickle can name is refused."""

    def find_class(self, module: str, name: str) -> NoReturn:
        msg = f"{module}.{name}"
        raise _Refused(msg)

    def persistent_load(self, pid: object) -> NoReturn:
        msg = f"persistent object {pid!r}"
        raise _Refused(msg)


def read_plain_pickle(path: str | Path) -> Any:  # noqa: ANN401 - whatever was pickled
    """Return what a pickle holds, gzipped or not, if it is made of built-in values alone.

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: it is no pickle, or names a class or function; nothing of it was run.
        DamagedTraceError: it ends early.
    """
    data = content(path)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _Refused as error:
        msg = f"{path}: the pickle asks for {error}; memory snapshots hold plain values only, so it was not loaded"
        raise NotATraceError(msg) from None
    except EOFError:
        msg = f"{path}: the pickle ends early; was the job killed while it dumped the snapshot?"
        raise DamagedTraceError(msg) from None
    except Exception as error:  # noqa: BLE001 - of damaged opcodes unpickling raises anything
        msg = f"{path}: no pickle that can be read ({type(error).__name__}: {error})"
        raise NotATraceError(msg) from None
