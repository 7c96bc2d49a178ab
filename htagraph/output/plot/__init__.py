"""``hg.plot``: results as plotly figures, one function of the same name for each; none of them shows what it draws."""

from htagraph.output.plot.breakdowns import idle_breakdown, overlap, temporal_breakdown
from htagraph.output.plot.collectives import collectives
from htagraph.output.plot.counters import memory_bandwidth, queue_length
from htagraph.output.plot.critical_path import critical_path
from htagraph.output.plot.diff import diff
from htagraph.output.plot.kernels import (
    kernel_breakdown,
    kernel_distribution,
    kernel_owners,
    module_breakdown,
    operator_breakdown,
)
from htagraph.output.plot.launches import launch_stats
from htagraph.output.plot.memory import memory_timeline
from htagraph.output.plot.opportunities import opportunities
from htagraph.output.plot.roofline import roofline
from htagraph.output.plot.slack import slack
from htagraph.output.plot.stragglers import stragglers
from htagraph.output.plot.timeline import timeline
from htagraph.output.plot.what_if import sweep, what_if

__all__ = [
    "collectives", "critical_path", "diff", "idle_breakdown", "kernel_breakdown", "kernel_distribution",
    "kernel_owners", "launch_stats", "memory_bandwidth", "memory_timeline", "module_breakdown", "operator_breakdown",
    "opportunities", "overlap", "queue_length", "roofline", "slack", "stragglers", "sweep", "temporal_breakdown",
    "timeline", "what_if",
]  # fmt: skip
