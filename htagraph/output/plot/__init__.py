"""``hg.plot``: results as plotly figures, one function of the same name per result; none shows its figure."""

from htagraph.output.plot.breakdowns import collectives, idle_breakdown, overlap, stragglers, temporal_breakdown
from htagraph.output.plot.counters import memory_bandwidth, memory_timeline, queue_length
from htagraph.output.plot.kernels import (
    kernel_breakdown,
    kernel_distribution,
    kernel_owners,
    module_breakdown,
    operator_breakdown,
    roofline,
)
from htagraph.output.plot.launches import launch_stats, slack
from htagraph.output.plot.timeline import critical_path, timeline
from htagraph.output.plot.what_if import diff, opportunities, sweep, what_if

__all__ = [
    "collectives", "critical_path", "diff", "idle_breakdown", "kernel_breakdown", "kernel_distribution",
    "kernel_owners", "launch_stats", "memory_bandwidth", "memory_timeline", "module_breakdown", "operator_breakdown",
    "opportunities", "overlap", "queue_length", "roofline", "slack", "stragglers", "sweep", "temporal_breakdown",
    "timeline", "what_if",
]  # fmt: skip
