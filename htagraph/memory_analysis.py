"""HTA's `hta.memory_analysis` under the name that its users expect: see `htagraph.hta.shapes.figures`."""

from htagraph.hta.shapes.figures import MemoryAnalysis

__all__ = ["MemoryAnalysis"]
