"""Compiled code in files: each is named by the sources of its code, and read only if it holds the code of its name.

numba writes an index first and numbered files of code afterwards, and begins to number anew when a source changes. A
process that is killed between both, or a full disk, leaves the code of an older source under the new index: wrong
answers for good, or a segmentation fault. Here there is no index. The name of a file is a digest of the sources and of
the types that the code is for. A file comes into being under its name in one step, and its first bytes are a digest of
the name and of the content.
"""

from __future__ import annotations

import enum
import hashlib
import os
import pickle
import types
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["KeptCode", "source_digest"]

_DIGEST_BYTES = 16
"""Bytes of a digest. Chosen: no two contents that occur by chance share one. Doubled, names of files are longer."""
_SUFFIXES = (".nbc", ".nbi")
"""Endings of files of compiled code, and of numba's index."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, enum.Enum)
"""Types of values that numba makes part of the code, besides arrays and collections."""


class KeptCode:
    """The compiled code of one function in a folder: stands in for numba's own pair of an index and its data.

    `stem` begins the names of all files of the function. `digest` returns a digest of the function's sources, and is
    called when compiled code is first asked for: functions that are defined later count too.
    """

    def __init__(self, folder: str, stem: str, digest: Callable[[], str]) -> None:
        self._folder = Path(folder)
        self._stem = stem
        self._digest = digest

    def load(self, key: object) -> Any:  # noqa: ANN401 - a compiled function as numba stores it
        """Return the code that was saved under a key; None if there is none, or if the file holds anything else."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        code = content[_DIGEST_BYTES:]
        if content[:_DIGEST_BYTES] != self._seal(key, code):
            return None
        return pickle.loads(code)

    def save(self, key: object, compiled: object) -> None:
        """Write the compiled code of a key: whole, or not at all. Code of older sources is removed.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        from numba.core import serialize

        dumps: Callable[[object], bytes] = serialize.dumps
        path = self._path(key)
        code = dumps(compiled)
        unfinished = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            unfinished.write_bytes(self._seal(key, code) + code)
            os.replace(unfinished, path)  # noqa: PTH105 - tests stop processes here
        finally:
            unfinished.unlink(missing_ok=True)
        self._remove(except_for=self._prefix())

    def flush(self) -> None:
        """Remove all files of the function."""
        self._remove(except_for=None)

    def _remove(self, except_for: str | None) -> None:
        """Remove the files of the function whose names do not begin with a text, and numba's own index."""
        with suppress(OSError):  # files that stay only take room: they are never loaded
            for path in self._folder.iterdir():
                is_function = path.name.startswith(f"{self._stem}.") and path.name.endswith(_SUFFIXES)
                is_fresh = except_for is not None and path.name.startswith(except_for)
                if is_function and not is_fresh:
                    path.unlink(missing_ok=True)

    def _prefix(self) -> str:
        """Return how the names of all files begin that hold code of the function's sources as they are."""
        return f"{self._stem}.{self._digest()}-"

    def _path(self, key: object) -> Path:
        name = self._prefix() + _digest_of(_key_text(key).encode()).hex()
        return self._folder / (name + _SUFFIXES[0])

    def _seal(self, key: object, code: bytes) -> bytes:
        """Return a digest of compiled code, of its sources and of its key."""
        return _digest_of(self._prefix().encode(), _key_text(key).encode(), code)


def source_digest(function: types.FunctionType, *beside: object) -> str:
    """Return a digest of all that a function is compiled from, as it is in memory.

    The digest covers the code of the function and of each function that the code names, in whatever module it is
    written, and the values that numba makes part of compiled code. Files are not asked: they may have changed since
    they were imported.

    Args:
        function: The function as it was written.
        beside: Values with an unambiguous repr on which the code depends, too.

    Returns:
        Hexadecimal digits.

    Example:
        >>> source_digest(source_digest) == source_digest(source_digest, "other options")
        False
    """
    lines = [repr(beside)]
    waiting = [function]
    seen = {id(function)}
    while waiting:
        source = _source(waiting[-1], waiting.pop().__code__)
        lines.append(source.text)
        for callee in source.callees:
            if id(callee) not in seen:
                seen.add(id(callee))
                waiting.append(callee)
    return _digest_of("\n".join(lines).encode("utf-8", "surrogatepass")).hex()


class _Source(NamedTuple):
    """One function as the compiler sees it."""

    text: str
    """Instructions, and the values of all names that come from outside."""
    callees: list[types.FunctionType]
    """Functions that it names, as they were written."""


@cache
def _source(function: types.FunctionType, code: types.CodeType) -> _Source:
    """Return the source of a function, without the sources of its callees.

    Many functions share their callees, so each source is made once. `code` is the function's.
    """
    lines = [f"{function.__module__}.{function.__qualname__} {_code_text(code)}"]
    callees: list[types.FunctionType] = []
    for name, value in _named_in(function):
        callee = _written(value)
        if callee is not None:
            callees.append(callee)
        lines.append(f"{name} = {_text(value)}")
    return _Source("\n".join(lines), callees)


def _named_in(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Return the names that a function's code takes from outside, with their values; attributes of modules too."""
    names = sorted(_names(function.__code__))
    space = function.__globals__
    named = [(name, space[name]) for name in names if name in space]
    package = _package(function.__module__)
    modules = [value for _, value in named if isinstance(value, types.ModuleType)]
    for module in modules:
        if _package(module.__name__) == package:
            named += [(name, getattr(module, name)) for name in names if hasattr(module, name)]
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        with suppress(ValueError):  # nothing is in the cell yet
            named.append((name, cell.cell_contents))
    return named


def _names(code: types.CodeType) -> set[str]:
    """Return the names in the instructions of a function, and of the functions inside it.

    Attributes are among them, which does no harm: a name that is no global name has no value.
    """
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _package(module: str | None) -> str:
    """Return the first part of the name of a module.

    Names of modules of other packages are not followed: numba has code of its own for them.
    """
    return str(module).partition(".")[0]


def _written(value: Any) -> types.FunctionType | None:  # noqa: ANN401 - any value that code names
    """Return the function that a compiled function or an intrinsic was made from; a function itself."""
    if not isinstance(value, types.FunctionType | type):
        value = getattr(value, "py_func", None) or getattr(value, "_defn", None)
    return value if isinstance(value, types.FunctionType) else None


def _text(value: Any) -> str:  # noqa: ANN401
    """Return a text that differs if numba may make different code of a value."""
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, tuple | list | frozenset | set | dict):
        return _collection_text(value)
    if isinstance(value, type):
        fields = getattr(value, "_fields", ())
        return f"{value.__qualname__} {fields}"
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    return _options_text(value)


def _collection_text(values: Any) -> str:  # noqa: ANN401
    """Return the text of the values in a collection; those of a set in the order of their texts.

    Sets have another order in each process.
    """
    if isinstance(values, dict):
        values = list(values.items())
    texts = [_text(value) for value in values]
    if isinstance(values, frozenset | set):
        texts.sort()
    return f"({', '.join(texts)})"


def _array_text(array: np.ndarray[Any, Any]) -> str:
    """Return a text of an array's type, shape and values.

    Arrays of objects are no part of compiled code.
    """
    if array.dtype.hasobject:
        return "objects"
    content = _digest_of(array.tobytes()).hex()
    return f"{array.dtype.str} {array.shape} {content}"


def _options_text(value: Any) -> str:  # noqa: ANN401
    """Return the options that a compiled function was made with, empty for any value that is no compiled function."""
    options = getattr(value, "targetoptions", None)
    if not isinstance(options, dict):
        return ""
    return str(sorted(options.items(), key=str))


def _code_text(code: types.CodeType) -> str:
    """Return the text of the instructions, constants and names of a function, without its place in a file."""
    constants: list[str] = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            constants.append(_code_text(constant))
        else:
            constants.append(_text(constant))
    variables = (code.co_varnames, code.co_freevars, code.co_cellvars)
    return repr((code.co_code, constants, code.co_names, variables))


def _key_text(key: Any) -> str:  # noqa: ANN401 - numba's: types of the arguments, processor, instructions
    """Return the text of a key. Names of fields are in no text of a type, and are part of the code."""
    fields = [_fields(kind) for kind in key[0]] if isinstance(key, tuple) else []
    return repr((key, fields))


def _fields(kind: Any) -> Any:  # noqa: ANN401 - a type of numba's
    """Return the names of the fields of a type, and of the types in it."""
    inner = getattr(kind, "types", ())
    inner_fields = [_fields(member) for member in inner] if isinstance(inner, tuple) else []
    return getattr(kind, "fields", ()), inner_fields


def _digest_of(*contents: bytes) -> bytes:
    """Return one digest of several contents.

    Lengths are part of the digest: the same bytes, cut elsewhere, have another digest.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for content in contents:
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()
