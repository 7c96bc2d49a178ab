"""HTA's `hta.memory_analysis` under the name that its users expect: see `htagraph.hta.memory_analysis`."""

from htagraph.hta.memory_analysis import MemoryAnalysis

__all__ = ["MemoryAnalysis"]
