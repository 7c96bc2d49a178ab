"""What the graph means: one file, one public function of the same name, one documented result."""

from htagraph.analyses.collectives import collectives
from htagraph.analyses.critical_path import critical_path
from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.kernel_types import kernel_types
from htagraph.analyses.launch_stats import launch_stats
from htagraph.analyses.opportunities import opportunities
from htagraph.analyses.overlap import overlap
from htagraph.analyses.rank_idle import rank_idle
from htagraph.analyses.slack import slack
from htagraph.analyses.step_times import step_times
from htagraph.analyses.stragglers import stragglers
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.analyses.what_if import what_if

__all__ = [
    "collectives",
    "critical_path",
    "idle_breakdown",
    "kernel_breakdown",
    "kernel_types",
    "launch_stats",
    "opportunities",
    "overlap",
    "rank_idle",
    "slack",
    "step_times",
    "stragglers",
    "temporal_breakdown",
    "what_if",
]
