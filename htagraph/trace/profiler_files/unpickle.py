"""Pickles of plain values (dicts, lists, tuples, numbers, text). Anything else is refused, so no code can run."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

from htagraph.core.errors import DamagedTraceError, NotATraceError
from htagraph.trace.profiler_files.files import content
from htagraph.trace.profiler_files.pickle_limits import refuse_excessive

__all__ = ["read_plain_pickle"]


class _Refused(pickle.UnpicklingError):
    """The pickle names a class or function."""


class _PlainUnpickler(pickle.Unpickler):
    """Loads built-in values only: refuses every class, function and external object that a pickle can name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        msg = f"{module}.{name}"
        raise _Refused(msg)

    def persistent_load(self, pid: object) -> NoReturn:
        msg = f"persistent object {pid!r}"
        raise _Refused(msg)


def read_plain_pickle(path: str | Path) -> Any:  # noqa: ANN401 - whatever was pickled
    """Return the value in a pickle file (gzipped or not) that holds built-in values only.

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: the file is not a pickle, names a class or function (no code of it was run), or would take far
            more memory than its size suggests.
        DamagedTraceError: the pickle ends early.
    """
    data = content(path)
    refuse_excessive(data, path)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _Refused as error:
        msg = f"{path}: the pickle names {error}; memory snapshots hold plain values only, so it was not loaded"
        raise NotATraceError(msg) from None
    except EOFError:
        msg = f"{path}: the pickle ends early; was the job killed while it dumped the snapshot?"
        raise DamagedTraceError(msg) from None
    except Exception as error:  # noqa: BLE001 - damaged opcodes can raise any exception
        msg = f"{path}: not a readable pickle ({type(error).__name__}: {str(error)[:100]})"
        raise NotATraceError(msg) from None
