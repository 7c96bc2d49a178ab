"""Events that are not activities: spans, markers, counters, flows, names of processes and threads, unknown events."""

from pydantic import Field

from htagraph.trace.events.base import Args, Event, Int, MetricArgs, arg

__all__ = [
    "Counter",
    "Flow",
    "IterationStart",
    "Metadata",
    "MetadataArgs",
    "RecordWindowEnd",
    "TraceSpan",
    "TraceSpanArgs",
    "UnknownEvent",
]


class TraceSpanArgs(Args):
    """Arguments of `TraceSpan`."""

    op_count: Int | None = arg("Op count", about="Operators in the span, count")


class TraceSpan(Event):
    """The whole recorded window."""

    args: TraceSpanArgs = Field(default_factory=TraceSpanArgs)


class IterationStart(Event):
    """The marker at the start of the recorded window."""


class RecordWindowEnd(Event):
    """The last event of a complete file: where it is missing, the file was cut short."""


class Counter(Event):
    """The values of one or more metrics from this time on."""

    args: MetricArgs = Field(default_factory=MetricArgs)


class Flow(Event):
    """One end of an arrow: from a launch to its work (`ac2g`), or from forward to backward (`fwdbwd`)."""


class MetadataArgs(Args):
    """Arguments of `Metadata`."""

    name: str | None = arg("name", about="Name of the process or thread")
    labels: str | None = arg("labels", about="Label of the process, such as CPU or GPU 0")
    sort_index: Int | None = arg("sort_index", about="Where viewers show the process or thread")


class Metadata(Event):
    """The name, label or position of a process or thread."""

    args: MetadataArgs = Field(default_factory=MetadataArgs)


class UnknownEvent(Event):
    """An event of a phase or category that these models do not know; everything in it is kept."""
