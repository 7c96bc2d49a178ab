"""HTA's `hta.trace_analysis` under the name that its users expect: see `htagraph.hta.trace_analysis`."""

from htagraph.hta.trace_analysis import TimeSeriesTypes, TraceAnalysis

__all__ = ["TimeSeriesTypes", "TraceAnalysis"]
