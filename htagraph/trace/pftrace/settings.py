"""Names of files of this format, and settings to record them with: light, as every command asks for both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from htagraph.trace.columns import Facts
from htagraph.trace.kineto.events import CATEGORIES as _CATEGORIES
from htagraph.trace.remote import TracePath

__all__ = [
    "CATEGORIES",
    "SETTINGS",
    "SUFFIXES",
    "WITHOUT_PYTORCH",
    "metadata",
    "recognizes",
]

SUFFIXES: tuple[str, ...] = (
    ".pftrace",
    ".pftrace.gz",
)
"""How names of these files end."""
CATEGORIES: Collection[str] = _CATEGORIES
"""The categories of events of this format: Kineto's, as the same program writes both."""
_JSON: Final = "an export to .json, as PyTorch's .pftrace has no place for it"
SETTINGS: Mapping[str, str] = {
    "device": "activities=[CPU, CUDA]",
    "steps": "schedule=… and prof.step() in the loop",
    "no_steps": "no ProfilerStep annotation: call prof.step() in the loop",
    "ranks": "a file of every rank, with the rank in its name, such as rank-0.pftrace",
    "shapes": "record_shapes=True",
    "modules": "with_stack=True",
    "memory": f"profile_memory=True and {_JSON}",
    "records": "_ExperimentalConfig(enable_cuda_sync_events=True)",
    "regions": "torch.profiler.record_function('name')",
    "step": "call prof.step() in the loop",
    "host": "ProfilerActivity.CPU",
    "operators": "activities=[CPU, CUDA]",
    "graphs": "PyTorch's profiler",
    "lost_device": " (PyTorch prints a warning where the profiler may not record)",
}
"""The settings to record with, see `htagraph.trace.readers.Reader`."""
WITHOUT_PYTORCH: Mapping[str, str] = {}
"""Settings for programs without PyTorch: none, as PyTorch's profiler writes these files."""


def recognizes(path: TracePath) -> bool:
    """Return whether a file is named as PyTorch names traces in Perfetto's format."""
    return path.name.endswith(SUFFIXES)


def metadata(facts: Facts) -> dict[str, Any]:
    """Return the facts in a file, in its own words."""
    return dict(facts.written)
