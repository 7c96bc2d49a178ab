"""What networkx asks at its own import: kept apart so that the answer costs nothing."""

from __future__ import annotations

__all__ = ["get_info"]


def get_info() -> dict[str, object]:
    """Return the backend's name; networkx looks into the backend itself for what it can run, which is everything."""
    return {
        "backend_name": "htagraph",
        "project": "htagraph",
        "package": "htagraph",
        "short_summary": "Dependency graphs of PyTorch traces, on arrays",
    }
