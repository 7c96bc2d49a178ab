"""The single schema of a Kineto (PyTorch profiler) trace file: its header, and one model per kind of event.

The models describe files as they are, of every backend and age: all arguments are optional, unknown keys are
kept, and times are µs. `parse_event` picks the model of an event; `columns` lists what bulk decoding reads.
"""

from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from htagraph.core.naming import FRAME
from htagraph.trace.columns import ArgumentColumn
from htagraph.trace.kineto.events import activities, base
from htagraph.trace.kineto.events.activities import *  # noqa: F403
from htagraph.trace.kineto.events.base import *  # noqa: F403 - what its __all__ names
from htagraph.trace.kineto.events.base import Event, Stored

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = [
    "CATEGORIES", "CATEGORY_ALIASES", "HOST_BACKENDS", "HOST_CALLS", "MODELS", "BulkField", "call_columns",
    "canonical_category", "columns", "is_frame", "parse_event", "stored_fields",
]  # fmt: skip
__all__ += base.__all__
__all__ += activities.__all__

HOST_BACKENDS = ("gloo", "mpi", "ucc")
"""Backends of torch.distributed that communicate on host threads."""

HOST_CALLS = ("c10d::", *(f"{backend}:" for backend in HOST_BACKENDS))
"""How names begin of the operators that ask for communication, and of what those backends record."""

_COMPLETE: Mapping[str, type[Event]] = dict(sorted(base.COMPLETE.items()))

MODELS: Mapping[str, type[Event]] = MappingProxyType(
    {
        **_COMPLETE,
        "ac2g": base.Flow,
        "cpu_instant_event": activities.MemoryEvent,
        "fwdbwd": base.Flow,
        "hardware_counters": base.Counter,
        "mtia_counters": base.Counter,
        "xpu_scope_profiler": base.Counter,
    }
)
"""The model of each category. Events of `cpu_instant_event` may also be `OutOfMemory`."""
CATEGORIES: Collection[str] = frozenset(MODELS)
"""The categories that the schema has."""

CATEGORY_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "async": "ac2g",
        "async_cpu_to_gpu": "ac2g",
        "async_gpu": "ac2g",
        "cpu_to_cuda": "ac2g",
        "forward_backward": "fwdbwd",
        "fwd_bwd": "fwdbwd",
        "memcpy": "gpu_memcpy",
        "memset": "gpu_memset",
        "operator": "cpu_op",
        "runtime": "cuda_runtime",
    }
)
"""Today's name of each category of 2022 and before (in lower case)."""

_CANONICAL = {**CATEGORY_ALIASES, **{category.lower(): category for category in MODELS}}

_PHASES: Mapping[str, type[Event]] = {
    "C": base.Counter, "M": base.Metadata, "f": base.Flow, "s": base.Flow, "t": base.Flow,
}  # fmt: skip

_INSTANTS: Mapping[str, type[Event]] = {
    "Iteration Start": base.IterationStart,
    "Record Window End": base.RecordWindowEnd,
    "[OutOfMemory]": activities.OutOfMemory,
    "[memory]": activities.MemoryEvent,
}

_UNCATEGORIZED: Mapping[str, type[Event]] = {"CPU functions": activities.CpuOp, "CUDA functions": activities.Kernel}


class BulkField(NamedTuple):
    """An argument that bulk decoding stores in a column.

    Attributes:
        keys: Keys of the argument in files, today's first.
        column: Where it is stored.
        categories: Canonical categories that have the argument; in others the same key means something else.
    """

    keys: tuple[str, ...]
    column: ArgumentColumn
    categories: frozenset[str]


def canonical_category(cat: str) -> str:
    """Return today's name of a category; an unknown category is returned unchanged.

    Example:
        >>> canonical_category("Operator"), canonical_category("KERNEL"), canonical_category("mine")
        ('cpu_op', 'kernel', 'mine')
    """
    return _CANONICAL.get(cat.lower(), cat)


def is_frame(category: object) -> bool:
    """Return whether a category, as written in a file, is that of calls of Python functions.

    Example:
        >>> is_frame("Python_Function"), is_frame(None)
        (True, False)
    """
    return category is not None and canonical_category(str(category)) == FRAME


def parse_event(raw: Mapping[str, Any]) -> Event:
    """Return the event of a trace file as the model of its phase and category.

    Example:
        >>> event = parse_event({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
        ...                      "ts": 12.345, "dur": 2, "args": {"stream": 7, "shared memory": 4096}})
        >>> type(event).__name__, event.ts_ns, event.args.stream, event.args.shared_memory
        ('Kernel', 12345, 7, 4096)
    """
    return _model(raw).model_validate(raw)


def _model(raw: Mapping[str, Any]) -> type[Event]:
    phase = str(raw.get("ph"))
    if phase in ("i", "I"):  # the format's older letter too
        return _INSTANTS.get(str(raw.get("name")).partition(":")[0], base.UnknownEvent)
    if phase != "X":
        return _PHASES.get(phase, base.UnknownEvent)
    if "cat" not in raw:
        return _UNCATEGORIZED.get(str(raw.get("pid")), base.UnknownEvent)
    return _COMPLETE.get(canonical_category(str(raw["cat"])), base.UnknownEvent)


@cache
def stored_fields(model: type[Event]) -> tuple[tuple[str, BulkField, bool], ...]:
    """Return (attribute, column and keys, True if it is kept for calls alone) of each stored argument of a model."""
    fields: dict[str, FieldInfo] = getattr(model.model_fields["args"].annotation, "model_fields", {})
    return tuple(
        (
            name,
            BulkField(keys, ArgumentColumn(store.name or name, store.dtype, store.missing), frozenset()),
            store.of_calls,
        )
        for name, field in fields.items()
        for store in field.metadata
        if isinstance(store, Stored) and (keys := tuple(map(str, getattr(field.validation_alias, "choices", ()))))
    )


@cache
def columns() -> tuple[BulkField, ...]:
    """Return every argument that bulk decoding stores: one field per column, merged over all models.

    Example:
        >>> next(field for field in columns() if field.column.name == "stream").keys
        ('stream', 'stream_id')
    """
    fields: dict[str, BulkField] = {}
    for category, model in MODELS.items():
        for _, field, of_calls in stored_fields(model):
            if not of_calls:
                fields[field.column.name] = _merged(fields.get(field.column.name, field), field, category)
    return tuple(fields.values())


@cache
def call_columns() -> tuple[BulkField, ...]:
    """Return every argument that is kept as text for the calls of host-side communication (`HOST_CALLS`) only.

    Example:
        >>> [field.column.name for field in call_columns()]
        ['input_dims', 'input_type', 'concrete_inputs']
    """
    categories = frozenset({"cpu_op", "user_annotation"})
    return tuple(
        field._replace(categories=categories) for _, field, of_calls in stored_fields(activities.CpuOp) if of_calls
    )


def _merged(bulk: BulkField, field: BulkField, category: str) -> BulkField:
    """Return the field with the keys and the category of one more model."""
    if bulk.column != field.column:
        msg = f"column {bulk.column.name!r} is {field.column} in category {category!r} but {bulk.column} in another"
        raise TypeError(msg)
    return bulk._replace(keys=tuple(dict.fromkeys((*bulk.keys, *field.keys))), categories=bulk.categories | {category})
