"""numba's njit for functions that are compiled once and kept on the disk, wherever there is a place to keep them.

numba keeps compiled code beside the module or in the user's cache folder, and refuses to run where it can write to
neither: in a container whose packages are read-only, for a user without a home. Here it is then kept in a temporary
folder that only this user can read and write (numba pickles it, so nobody else may write there), or not at all, and the
logger ``htagraph`` says so. It also says when something is about to be compiled.

numba takes longer to import than most questions about a small job take to answer. The machine code of a function is
therefore also kept by itself, and linked and called without numba, see `_Function`.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import logging
import marshal
import os
import pickle
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["for_reading", "njit"]

F = TypeVar("F", bound=Callable[..., Any])

_logger = logging.getLogger("htagraph")
_UNREADABLE = (
    OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, LookupError, MemoryError, TypeError,
    ValueError,
)  # fmt: skip
"""What reading a damaged file of compiled code raises."""
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
    options = {"no_cfunc_wrapper": True, **options}  # for callers in C: there are none, and it takes as long to compile

    def decorate(function: F) -> F:
        made: Any = _Function(function, options, cache=cache)
        return made

    return decorate


class _Function:
    """A compiled function: its machine code, called without numba, or else numba's own object for the function.

    Machine code is kept for functions of this package that make no arrays, given arrays and numbers. It is called as
    compiled functions call each other (numba's `CPUCallConv`).
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], *, cache: bool) -> None:
        update_wrapper(self, function)
        self._function, self._options, self._cache = function, options, cache
        self._runs: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - the function's
        try:
            kinds = tuple(map(_kind, given))
        except LookupError:
            kinds = ()
        if not kinds or named or not self._cache:
            return self.dispatcher(*given, **named)
        if kinds not in self._runs:
            found = _codes(self._function).get(kinds)
            self._runs[kinds] = partial(self._compiled, kinds) if found is None else self._linked(given, *found)
        return self._runs[kinds](*given)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - numba's
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    @cached_property
    def dispatcher(self) -> Any:  # noqa: ANN401 - numba's
        """What numba calls a dispatcher."""
        import numba

        made = _kept(self._function, self._options) if self._cache else numba.njit(**self._options)(self._function)
        return _called_with_wide_integers(made)

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - what numba asks for where another compiled function calls this one
        return self.dispatcher._numba_type_

    def _compiled(self, kinds: tuple[Any, ...], *given: Any) -> Any:  # noqa: ANN401 - the function's
        """Let numba run the function for the first time with such arguments, and keep its machine code."""
        self._runs[kinds] = self.dispatcher
        result = self.dispatcher(*given)
        with suppress(*_UNREADABLE, RuntimeError):  # such as for what numba itself had kept
            _keep(self._function, kinds, self.overloads[tuple(map(self.typeof_pyval, given))])
        return result

    def _linked(self, given: tuple[Any, ...], name: str, result: str, code: bytes) -> Callable[..., Any]:
        """Return a function that calls machine code with such arguments."""
        declare = ctypes.CFUNCTYPE if self._options.get("nogil") else ctypes.PYFUNCTYPE
        pointer, size = ctypes.c_void_p, max(struct.calcsize(result), 1)
        c_types = [_C_TYPES[type(each)] for each in _flat(given)]
        call = declare(ctypes.c_int32, pointer, pointer, *c_types)(_address(name, code))

        def run(*given: Any) -> Any:  # noqa: ANN401 - the function's
            returned, error = ctypes.create_string_buffer(size), pointer()
            if call(returned, ctypes.byref(error), *_flat(given)):
                return self.dispatcher(*given)  # which raises what went wrong
            values = struct.unpack(result, returned.raw) if result else (None,)
            return values if len(values) > 1 else values[0]

        return run


_C_TYPES: dict[type, Any] = {
    int: ctypes.c_int64, np.int64: ctypes.c_int64, float: ctypes.c_double, np.float64: ctypes.c_double,
    bool: ctypes.c_bool, np.bool_: ctypes.c_bool,
}  # fmt: skip
_FORMATS = {"none": "", "int64": "q", "float64": "d", "bool": "?"}
_FOR_PYTHON = {
    "NRT_MemInfo_call_dtor", "NRT_Free", "NRT_adapt_ndarray_from_python", "numba_do_raise", "numba_unpickle",
    "numba_runtime_build_excinfo_struct",
}  # fmt: skip
"""What machine code needs of numba only if Python calls the code, the code raises, or an array was made by numba."""


def _kind(value: Any) -> Any:  # noqa: ANN401 - an argument
    """Return what machine code depends on: the type of a number, of an array's elements, or those of a tuple."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        if value.dtype.kind in "biuf" and value.dtype.isnative and flags.c_contiguous and flags.aligned:
            return value.dtype.str, value.ndim, flags.writeable
    elif isinstance(value, tuple):
        return tuple(map(_kind, value))
    elif not isinstance(value, int) or value in range(-(2**63), 2**63):
        return _C_TYPES[type(value)].__name__
    raise LookupError


def _flat(given: Iterable[Any]) -> Iterator[Any]:
    """Yield arguments as compiled functions give them to each other: of an array its owners, sizes and address."""
    for each in given:
        if isinstance(each, np.ndarray):
            yield from (0, 0, each.size, each.itemsize, each.ctypes.data, *each.shape, *each.strides)
        elif isinstance(each, tuple):
            yield from _flat(each)
        else:
            yield each


def _keep(function: Callable[..., Any], kinds: tuple[Any, ...], compiled: Any) -> None:  # noqa: ANN401 - numba's
    """Keep machine code if it needs nothing of numba, and returns what C has."""
    module, returned = compiled.library._final_module, compiled.signature.return_type
    needed = {each.name for each in module.functions if each.is_declaration and each.name[:4] in {"NRT_", "numb"}}
    parts = [str(each) for each in getattr(returned, "types", (returned,))]
    as_in_c = len(parts) == 1 or (set(parts) <= {"int64", "float64"} and not hasattr(returned, "fields"))
    if needed <= _FOR_PYTHON and as_in_c:
        result = "".join(_FORMATS[each] for each in parts)
        code = (compiled.fndesc.llvm_func_name, result, compiled.library._get_compiled_object())
        content = marshal.dumps({**_codes(function), kinds: code})
        for path in _places(function):
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_suffix(f".{os.getpid()}")
                part.write_bytes(_digest(content, function) + content)
                part.replace(path)
                return


def _codes(function: Callable[..., Any]) -> dict[Any, tuple[str, str, bytes]]:
    """Return (name, format of the result, machine code) of a function by the kinds of its arguments, as kept."""
    for path in _places(function):
        with suppress(OSError):
            kept = path.read_bytes()
            if kept[:32] == _digest(kept[32:], function):
                return marshal.loads(kept[32:])
    return {}


def _places(function: Callable[..., Any]) -> list[Path]:
    """Return where the machine code of a function may be kept, the first choice first."""
    if not function.__module__.startswith("htagraph.") or sys.platform != "linux":  # elsewhere nobody has tried it
        return []
    chosen, module = os.environ.get("NUMBA_CACHE_DIR"), Path(function.__code__.co_filename)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - as in `_kept`
    folders = [Path(chosen)] if chosen else [module.parent / "__pycache__", Path(home, "htagraph")]
    where = hashlib.blake2b(f"{module}".encode(), digest_size=4).hexdigest()
    name = f"{module.stem}.{function.__name__}-{function.__code__.co_firstlineno}-{where}.machine"
    return [folder / name for folder in folders if folder.is_absolute()]


def _digest(content: bytes, function: Callable[..., Any]) -> bytes:
    """Return a digest of what is kept, and of all that it depends on: sources, Python, numba, LLVM, the processor."""
    written = _written(Path(function.__code__.co_filename).parent)
    return hashlib.blake2b(content + repr((written, _machine())).encode(), digest_size=32).digest()


@cache
def _machine() -> tuple[Any, ...]:
    import llvmlite.binding as llvm

    settings = sorted(each for each in os.environ.items() if each[0].startswith("NUMBA_"))
    numba: Any = importlib.util.find_spec("numba")
    processor = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return sys.version, _written(Path(numba.origin).parent), settings, llvm.llvm_version_info, processor


@cache
def _engine() -> Any:  # noqa: ANN401 - llvmlite has no types
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in _FOR_PYTHON:  # numba's take the place of these where numba is imported
        if llvm.address_of_symbol(name) is None:
            llvm.add_symbol(name, 1)
    target = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


_linking = Lock()


def _address(name: str, code: bytes) -> int:
    """Link machine code, and return the address of a function in it."""
    import llvmlite.binding as llvm

    with _linking:
        if not _engine().get_function_address(name):
            _engine().add_object_file(llvm.ObjectFileRef.from_data(code))
            _engine().finalize_object()
        return int(_engine().get_function_address(name))


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
    from numba.core import types

    seen: Any = types
    plain = seen.unliteral(given)
    return seen.int64 if isinstance(plain, seen.Integer) and plain.signed else given


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
    import numba

    homes = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser raises
    if (
        any(Path(home).is_absolute() for home in homes) or _settings().CACHE_DIR
    ):  # else numba would make a folder named ~ where the command runs
        with suppress(RuntimeError):
            return _forgiving(numba.njit(cache=True, **options)(function))
    with suppress(RuntimeError), _kept_in(_temporary_folder()):
        made = _forgiving(numba.njit(cache=True, **options)(function))
        _say(
            logging.WARNING,
            f"neither the package nor a home can be written: compiled code is kept in {_settings().CACHE_DIR} "
            "(NUMBA_CACHE_DIR names another folder)",
        )
        return made
    _say(
        logging.WARNING,
        "compiled code cannot be kept: every command compiles again, for a few seconds "
        "(NUMBA_CACHE_DIR names a folder)",
    )
    return numba.njit(**options)(function)


def _settings() -> Any:  # noqa: ANN401 - numba's
    from numba.core import config

    return config


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Let numba keep what is decorated meanwhile in a folder: this package's functions, not those of others."""
    settings = _settings()
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        settings.CACHE_DIR = before


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

    The disk may be full, and files may be damaged. Two processes that compile a function for different types at once
    may give their code one name: code for other types than those asked for would be run on wrong memory.
    """

    def __init__(self, store: Any, function: Callable[..., Any]) -> None:  # noqa: ANN401 - numba has no types
        self._store, self._function = store, function

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._store, name)

    def load_overload(self, signature: Any, target: Any) -> Any:  # noqa: ANN401
        for load in (self._load_at_once, self._store.load_overload):
            with suppress(*_UNREADABLE):
                kept = load(signature, target)
                types = getattr(signature, "args", signature)
                if kept is not None and tuple(kept.signature.args) == tuple(types):
                    return kept
                break
        else:
            with suppress(OSError):
                self._store.flush()
        _say_compiling(self._function)
        return None

    def _load_at_once(self, signature: Any, target: Any) -> Any:  # noqa: ANN401
        from numba.core.runtime.nrt import rtsys

        rtsys.initialize(target)
        return self._store._load_overload(signature, target)

    def save_overload(self, signature: Any, compiled: Any) -> None:  # noqa: ANN401
        with suppress(*_UNREADABLE):
            self._store.save_overload(signature, compiled)


def _forgiving(dispatcher: Any) -> Any:  # noqa: ANN401
    """Return numba's object for a function, with a store that never fails."""
    if not hasattr(dispatcher, "_cache"):
        return dispatcher
    kept: Any = getattr(dispatcher._cache, "_cache_file", None)
    if not hasattr(kept, "_source_stamp"):
        msg = "this numba keeps code in another way"
        raise RuntimeError(msg)
    kept._source_stamp = (kept._source_stamp, _written(Path(dispatcher.py_func.__code__.co_filename).parent))
    dispatcher._cache = _Forgiving(dispatcher._cache, dispatcher.py_func)
    return dispatcher


@cache
def _written(folder: Path) -> tuple[tuple[str, float, int], ...]:
    """Return name, time and size of each module of a folder.

    numba compiles a function anew when its own module changes, but the code that it keeps has that of the functions it
    calls from others in it.
    """
    with suppress(OSError):
        found = [(path.name, path.stat()) for path in sorted(folder.glob("*.py"))]
        return tuple((name, each.st_mtime, each.st_size) for name, each in found)
    return ()


def _say_compiling(function: Callable[..., Any]) -> None:
    import multiprocessing

    if function.__module__.startswith("htagraph.") and multiprocessing.parent_process() is None:
        _say(logging.INFO, "compiling what this needs, which takes a few seconds and is kept")


def _say(level: int, text: str) -> None:
    if text not in _said:
        _said.add(text)
        _logger.log(level, text)
