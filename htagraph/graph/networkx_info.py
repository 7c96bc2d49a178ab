"""The answer to networkx at its own import: kept apart so that the answer costs nothing."""

from __future__ import annotations

__all__ = ["get_info"]

_NAME = "htagraph"
_SUMMARY = "Dependency graphs of PyTorch traces, on arrays"


def get_info() -> dict[str, object]:
    """Return the backend's name, without a list of functions: the backend runs every function of networkx."""
    return {"backend_name": _NAME, "project": _NAME, "package": _NAME, "short_summary": _SUMMARY}
