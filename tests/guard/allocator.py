"""Memory for numpy's arrays in which each array ends at a page that nobody may touch.

Compiled code that reads behind an array usually finds other memory of the process there, and nothing is noticed. Here
the process ends with a segmentation fault, at the first byte. numpy takes its memory from functions that it is given
(NEP 49). numba compiles them, so no other compiler is needed.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

from htagraph.trace.kineto.scan.grammar import put, word
from htagraph.trace.kineto.scan.scanner import Reused

__all__ = ["guard"]

_LEAST_BYTES = 64
"""Bytes of the smallest array that is guarded: smaller ones are mostly numbers of numpy's own, and so many that Linux
has no areas of memory left (65,530 for a process, three for an array). Doubled, less is guarded."""
_SET_HANDLER = 304
"""Place of PyDataMem_SetHandler in numpy's table of functions for C. Source: numpy/__multiarray_api.h, from 1.22 on."""
_MAX_ALIGNMENT = 16
"""Bytes: numpy expects memory at multiples of it. Less is enough where the size of an array is no multiple either."""
_FILL = 0xA5
"""Content of new memory, so that nobody gets zeros without asking for them."""
_BEFORE = 16
"""Bytes before each array: its size, and where its pages begin, 0 for an array that is not guarded."""
_PAGE = mmap.PAGESIZE
_ACCESS, _HOW = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANON
_FAILED = -1
"""What mmap returns where there is no memory, as a signed number."""


F = TypeVar("F", bound=Callable[..., Any])
_numba: Any = numba  # whose decorators have types that do not fit


def _compiled(function: F) -> F:
    return _numba.njit(function)


def _for_c(gives: Any, *takes: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of functions that numpy calls, which have an `address`."""
    return _numba.cfunc(gives(*takes))


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


class _Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator)]


def _function(name: str, *takes: Any) -> Any:
    """Return a function of the C library; addresses are numbers, as in the compiled code of the scan."""
    found: Any = getattr(ctypes.CDLL(None), name)
    found.restype, found.argtypes = ctypes.c_int64, takes
    return found


_INT, _SIZE = ctypes.c_int, ctypes.c_int64
_malloc, _free = _function("malloc", _SIZE), _function("free", _SIZE)
_map, _unmap = _function("mmap", _SIZE, _SIZE, _INT, _INT, _INT, _SIZE), _function("munmap", _SIZE, _SIZE)
_protect = _function("mprotect", _SIZE, _SIZE, _INT)
_fill, _copy = _function("memset", _SIZE, _INT, _SIZE), _function("memcpy", _SIZE, _SIZE, _SIZE)


@_compiled
def _whole_pages(size: Any) -> Any:
    """Return the bytes of the page before an array, of its pages and of that behind, which nobody may touch."""
    return (size + _PAGE - 1) // _PAGE * _PAGE + 2 * _PAGE


@_compiled
def _new(size: int, content: int) -> int:
    first = _map(0, _whole_pages(size), _ACCESS, _HOW, -1, 0) if size >= _LEAST_BYTES else _FAILED
    if first == _FAILED:
        address = _malloc(size + _BEFORE) + _BEFORE
        first = 0
    else:
        last = first + _whole_pages(size) - _PAGE
        _protect(last, _PAGE, 0)
        address = last - size
        address -= address % min(size & -size, _MAX_ALIGNMENT)
    put(address - 16, size)
    put(address - 8, first)
    _fill(address, content, size)
    return address


@_compiled
def _freed(address: int) -> None:
    if address:
        size, first = np.int64(word(address - 16)), np.int64(word(address - 8))
        if first:
            _unmap(first, _whole_pages(size))
        else:
            _free(address - _BEFORE)


@_for_c(types.int64, types.int64, types.int64)
def _on_malloc(context: int, size: int) -> int:
    return _new(size, _FILL)


@_for_c(types.int64, types.int64, types.int64, types.int64)
def _on_calloc(context: int, count: int, size: int) -> int:
    return _new(count * size, 0)


@_for_c(types.int64, types.int64, types.int64, types.int64)
def _on_realloc(context: int, address: int, size: int) -> int:
    made = _new(size, _FILL)
    if address:
        _copy(made, address, min(size, np.int64(word(address - 16))))
    _freed(address)
    return made


@_for_c(types.void, types.int64, types.int64, types.int64)
def _on_free(context: int, address: int, size: int) -> None:
    _freed(address)


_calls = (_on_malloc.address, _on_calloc.address, _on_realloc.address, _on_free.address)
_handler = _Handler(b"guard", 1, _Allocator(None, *_calls))


def _install() -> None:
    """Let numpy take the memory of all arrays that this thread makes from here."""
    name = "numpy._core" if int(np.__version__.split(".")[0]) > 1 else "numpy.core"
    inside: Any = importlib.import_module(f"{name}._multiarray_umath")
    address_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
    address_of.restype, address_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule: Any = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    table: Any = ctypes.cast(address_of(inside._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    set_handler(capsule(ctypes.addressof(_handler), b"mem_handler", None))


def guard() -> None:
    """Guard the arrays that this process makes from now on, in all its threads, and those that are used again.

    The process must end by `os._exit`: the compiled functions may be gone when the last arrays are freed.
    """
    _install()
    run = threading.Thread.run

    def guarded_run(thread: threading.Thread) -> None:
        _install()
        run(thread)

    setattr(threading.Thread, "run", guarded_run)  # noqa: B010 - types of methods are not to be assigned to
    setattr(Reused, "lend", lambda memory, count: np.empty(count, memory._dtype))  # noqa: B010
