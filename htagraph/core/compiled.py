"""numba's njit for functions that are compiled once and kept on the disk, wherever there is a place to keep them.

numba keeps compiled code beside the module or in the user's cache folder, and refuses to run where it can write to
neither: in a container whose packages are read-only, for a user without a home. Here it is then kept in a temporary
folder that only this user can read and write (numba pickles it, so nobody else may write there), or not at all, and the
logger ``htagraph`` says so. It also says when something is about to be compiled.
"""

from __future__ import annotations

import logging
import os
import pickle
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import config, event, types

from htagraph.core.kept_code import KeptCode, source_digest

__all__ = ["for_reading", "njit"]

F = TypeVar("F", bound=Callable[..., Any])

_numba: Any = config  # whose settings have no types
_types: Any = types
_listen_to: Callable[..., None] = event.register
_logger = logging.getLogger("htagraph")
_UNREADABLE = (
    OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, LookupError, MemoryError, TypeError,
    ValueError,
)  # fmt: skip
"""What reading a damaged file of compiled code raises."""
_SETTINGS = ("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "ENABLE_AVX")
"""Settings of numba, from the environment, that change what code is compiled to, and that its own files do not tell."""
_said: set[str] = set()
"""What was logged: each line once."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[F], F]:  # noqa: ANN401 - numba's
    """Return a decorator: `numba.njit` with these options, whose functions are kept compiled where that is possible.

    Functions that only kept functions call need no `cache`.

    Example:
        >>> @njit(cache=True)
        ... def double(number):
        ...     return 2 * number
        >>> double(21)
        42
    """
    if "listening" not in _said:
        _said.add("listening")
        _listen_to("numba:compile", _Teller())
    options = {"no_cfunc_wrapper": True, **options}  # for callers in C: there are none, and it takes as long to compile

    def decorate(function: F) -> F:
        return _called_with_wide_integers(_kept(function, options) if cache else numba.njit(**options)(function))

    return decorate


def _called_with_wide_integers(dispatcher: Any) -> Any:  # noqa: ANN401 - numba's
    """Return numba's object for a function, which other compiled functions call with signed integers of 64 bits.

    numba would compile it once more for integers of 32 bits, and again for 0 and each other number that is written in
    a call: contraction compiled `covers` eight times. Results are the same, as numba computes with 64 bits anyway.
    """
    choose = dispatcher.get_call_template

    def chosen(args: Any, kws: Any) -> Any:  # noqa: ANN401
        return choose([_wide(each) for each in args], {name: _wide(each) for name, each in dict(kws).items()})

    dispatcher.get_call_template = chosen
    return dispatcher


def _wide(given: Any) -> Any:  # noqa: ANN401 - a type of numba's
    plain = _types.unliteral(given)
    return _types.int64 if isinstance(plain, _types.Integer) and plain.signed else given


def for_reading(array: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the array of a type, contiguous, as one that cannot be written: a copy only if it is of another type.

    numba compiles a function for each combination of types, layouts and permissions that it is called with. Functions
    that get their arrays through this one are compiled once.
    """
    seen = np.ascontiguousarray(array, dtype).view()
    seen.flags.writeable = False
    return seen


def _kept(function: F, options: dict[str, Any]) -> F:
    """Return a function that is compiled when it is first called, and kept in the first place that can be written."""
    homes = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser raises
    if (
        any(Path(home).is_absolute() for home in homes) or _numba.CACHE_DIR
    ):  # else numba would make a folder named ~ where the command runs
        with suppress(RuntimeError):  # numba found no folder that it may write
            return _forgiving(numba.njit(cache=True, **options)(function))
    with suppress(RuntimeError), _kept_in(_temporary_folder()):
        made = _forgiving(numba.njit(cache=True, **options)(function))
        _say(
            logging.WARNING,
            f"neither the package nor a home can be written: compiled code is kept in {_numba.CACHE_DIR} "
            "(NUMBA_CACHE_DIR names another folder)",
        )
        return made
    _say(
        logging.WARNING,
        "compiled code cannot be kept: every command compiles again, for a few seconds "
        "(NUMBA_CACHE_DIR names a folder)",
    )
    return numba.njit(**options)(function)


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Let numba keep what is decorated meanwhile in a folder: this package's functions, not those of others."""
    before, _numba.CACHE_DIR = _numba.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        _numba.CACHE_DIR = before


def _temporary_folder() -> Path:
    """Return a folder for temporary files that nobody but this user can write."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"htagraph-{'user' if user is None else user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        msg = "there is no folder for temporary files"
        raise RuntimeError(msg) from error
    private = user is None or (found.st_uid == user and not stat.S_IMODE(found.st_mode) & 0o077)
    if not (stat.S_ISDIR(found.st_mode) and private):
        msg = f"{folder} belongs to somebody else"
        raise RuntimeError(msg)
    return folder


class _Forgiving:
    """numba's store of one function's compiled code; where it fails, the function is compiled, and runs all the same.

    numba's own `load_overload` first imports all that it could compile with, which takes three times as long as the
    rest of its start; code that is kept needs none of it but what manages memory. (Functions that hash text or run in
    parallel would: the package compiles none.) What this needs of numba's insides may go: then numba's own is used.

    The disk may be full, and files may be damaged: `KeptCode` finds both. Code for types other than the
    arguments' would be run on wrong memory, so the types are compared once more.
    """

    def __init__(self, store: Any) -> None:  # noqa: ANN401 - numba has no types
        self._store = store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._store, name)

    def load_overload(self, signature: Any, target: Any) -> Any:  # noqa: ANN401
        for load in (self._load_at_once, self._store.load_overload):
            with suppress(*_UNREADABLE):
                kept = load(signature, target)
                types = getattr(signature, "args", signature)
                return kept if kept is not None and tuple(kept.signature.args) == tuple(types) else None
        with suppress(OSError):  # a folder that cannot be written keeps nothing; the code is compiled all the same
            self._store.flush()
        return None

    def _load_at_once(self, signature: Any, target: Any) -> Any:  # noqa: ANN401
        from numba.core.runtime.nrt import rtsys

        rtsys.initialize(target)
        return self._store._load_overload(signature, target)

    def save_overload(self, signature: Any, compiled: Any) -> None:  # noqa: ANN401
        try:
            self._store.save_overload(signature, compiled)
        except _UNREADABLE as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            _say(
                logging.WARNING,
                f"compiled code cannot be kept in {self._store.cache_path} ({reason}): every command compiles again, "
                "for a few seconds (NUMBA_CACHE_DIR names another folder)",
            )


def _forgiving(dispatcher: Any) -> Any:  # noqa: ANN401
    """Return numba's object for a function, with a store that never fails."""
    if not hasattr(dispatcher, "_cache"):
        return dispatcher
    store = dispatcher._cache
    numbas: Any = getattr(store, "_cache_file", None)
    stem = getattr(getattr(store, "_impl", None), "filename_base", None)
    if not hasattr(numbas, "_source_stamp") or not stem:
        msg = "this numba keeps code in another way"
        raise RuntimeError(msg)
    stamp = (numba.__version__, numbas._source_stamp, [getattr(_numba, name, None) for name in _SETTINGS])

    @cache
    def digest() -> str:
        return source_digest(dispatcher.py_func, stamp, sorted(dispatcher.targetoptions.items(), key=str))

    store._cache_file = KeptCode(store.cache_path, stem, digest)
    dispatcher._cache = _Forgiving(store)
    return dispatcher


class _Teller(event.Listener):
    """Says once that functions of this package are being compiled; numba asks only if none is kept."""

    def on_start(self, started: Any) -> None:  # noqa: ANN401
        import multiprocessing

        function = getattr(started.data["dispatcher"], "py_func", None)
        in_package = getattr(function, "__module__", "").startswith("htagraph.")
        if in_package and multiprocessing.parent_process() is None:
            _say(logging.INFO, "compiling what this needs, which takes a few seconds and is kept")

    def on_end(self, ended: Any) -> None:  # noqa: ANN401
        """Nothing is said then."""


def _say(level: int, text: str) -> None:
    if text not in _said:
        _said.add(text)
        _logger.log(level, text)
