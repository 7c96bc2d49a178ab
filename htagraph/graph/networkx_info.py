"""What networkx asks at its own import: kept apart so that the answer costs nothing."""

from __future__ import annotations

__all__ = ["get_info"]

_FUNCTIONS = (
    "ancestors", "dag_longest_path", "dag_longest_path_length", "descendants", "is_directed_acyclic_graph",
    "topological_generations", "topological_sort", "transitive_reduction",
)  # fmt: skip


def get_info() -> dict[str, object]:
    """Return the backend's name and the functions it has for `DependencyGraph`."""
    return {
        "backend_name": "htagraph",
        "project": "htagraph",
        "package": "htagraph",
        "short_summary": "Dependency graphs of PyTorch traces, on arrays",
        "functions": {name: {} for name in _FUNCTIONS},
    }
