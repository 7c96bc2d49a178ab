"""HTA's `hta.trace_diff` under the name that its users expect: see `htagraph.hta.trace_diff`."""

from htagraph.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff, TraceDir

__all__ = ["DeviceType", "LabeledTrace", "TraceDiff", "TraceDir"]
