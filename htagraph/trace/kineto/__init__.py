"""The reader of Kineto's files, which PyTorch's profiler writes: JSON, maybe gzipped, of one process each."""

from collections.abc import Collection

from htagraph.trace.kineto.again import arguments, category_arguments, check_arguments, event
from htagraph.trace.kineto.events import MODELS
from htagraph.trace.kineto.read import SUFFIXES, columns, metadata, recognizes, survey

__all__ = [
    "CATEGORIES", "SUFFIXES", "arguments", "category_arguments", "check_arguments", "columns", "event", "metadata",
    "recognizes", "survey",
]  # fmt: skip

CATEGORIES: Collection[str] = frozenset(MODELS)
"""The categories that the schema has."""
