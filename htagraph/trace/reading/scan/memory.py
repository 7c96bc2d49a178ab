"""Bytes and words at addresses, for the compiled scan.

Arrays would cost it four times as long: each call passes seven numbers and counts a reference per array, and each byte
is checked for an index from the end. Whoever passes an address keeps its array alive and knows its length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from htagraph.core.compiled import njit

__all__ = ["Int", "byte", "compiled", "first_byte", "put", "word"]

Int: TypeAlias = Any
"""An integer of compiled code, signed or not."""
F = TypeVar("F", bound=Callable[..., Any])


_BITS = {1: ir.IntType(8), 8: ir.IntType(64)}


def compiled(function: F) -> F:
    """Compile a function that compiled functions alone call: without the wrappers that Python would call it by.

    Those take as long to compile as the function itself.
    """
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def _intrinsic(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - its callers are compiled, and give no first argument
    return intrinsic(function)


def _pointer(builder: Any, address: Any, size: int) -> Any:  # noqa: ANN401 - objects of llvmlite
    return builder.inttoptr(address, _BITS[size].as_pointer())


@_intrinsic
def byte(typing_context: Any, address: Any) -> Any:  # noqa: ANN401 - numba's interface
    """Return the byte at an address, as an integer."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        value = builder.load(_pointer(builder, arguments[0], 1))
        return builder.zext(value, _BITS[8])

    return types.int64(types.int64), code


@_intrinsic
def word(typing_context: Any, address: Any) -> Any:  # noqa: ANN401
    """Return the eight bytes at an address, the first one lowest."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.load(_pointer(builder, arguments[0], 8), align=1)

    return types.uint64(types.int64), code


@_intrinsic
def put(typing_context: Any, address: Any, value: Any) -> Any:  # noqa: ANN401
    """Write a 64-bit integer at an address."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        builder.store(arguments[1], _pointer(builder, arguments[0], 8), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@_intrinsic
def first_byte(typing_context: Any, marks: Any) -> Any:  # noqa: ANN401
    """Return which byte of a word, from 0 on, has the lowest bit that is set."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        zeros = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(zeros, ir.Constant(_BITS[8], 3))

    return types.int64(types.uint64), code
