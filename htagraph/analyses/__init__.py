"""What the graph means: one file, one public function of the same name, one documented result."""

from htagraph.analyses import execution_trace as execution_trace
from htagraph.analyses import memory as memory
from htagraph.analyses.annotated_kernels import annotated_kernels
from htagraph.analyses.annotation_breakdown import annotation_breakdown
from htagraph.analyses.call_tree import call_tree
from htagraph.analyses.collectives import collectives
from htagraph.analyses.compiled_regions import compiled_regions
from htagraph.analyses.critical_path import critical_path
from htagraph.analyses.cupti_counters import cupti_counters
from htagraph.analyses.graph_launches import graph_launches
from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.idle_intervals import idle_intervals
from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.kernel_distribution import kernel_distribution
from htagraph.analyses.kernel_owners import kernel_owners
from htagraph.analyses.kernel_patterns import kernel_patterns
from htagraph.analyses.kernel_types import kernel_types
from htagraph.analyses.late_starts import late_starts
from htagraph.analyses.launch_stats import launch_stats
from htagraph.analyses.memory_bandwidth import memory_bandwidth
from htagraph.analyses.module_breakdown import module_breakdown
from htagraph.analyses.operator_breakdown import operator_breakdown
from htagraph.analyses.operator_kernels import operator_kernels
from htagraph.analyses.overlap import overlap
from htagraph.analyses.phases import phases
from htagraph.analyses.queue_length import queue_length
from htagraph.analyses.roofline import roofline
from htagraph.analyses.slack import slack
from htagraph.analyses.step_times import step_times
from htagraph.analyses.stragglers import stragglers
from htagraph.analyses.temporal_breakdown import temporal_breakdown

__all__ = [
    "annotated_kernels",
    "annotation_breakdown",
    "call_tree",
    "collectives",
    "compiled_regions",
    "critical_path",
    "cupti_counters",
    "graph_launches",
    "idle_breakdown",
    "idle_intervals",
    "kernel_breakdown",
    "kernel_distribution",
    "kernel_owners",
    "kernel_patterns",
    "kernel_types",
    "late_starts",
    "launch_stats",
    "memory_bandwidth",
    "module_breakdown",
    "operator_breakdown",
    "operator_kernels",
    "overlap",
    "phases",
    "queue_length",
    "roofline",
    "slack",
    "step_times",
    "stragglers",
    "temporal_breakdown",
]
