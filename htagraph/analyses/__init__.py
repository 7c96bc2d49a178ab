"""What the graph means: one file, one public function of the same name, one documented result."""

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.kernel_types import kernel_types
from htagraph.analyses.launch_stats import launch_stats
from htagraph.analyses.overlap import overlap
from htagraph.analyses.rank_idle import rank_idle
from htagraph.analyses.step_times import step_times
from htagraph.analyses.temporal_breakdown import temporal_breakdown

__all__ = [
    "idle_breakdown",
    "kernel_breakdown",
    "kernel_types",
    "launch_stats",
    "overlap",
    "rank_idle",
    "step_times",
    "temporal_breakdown",
]
