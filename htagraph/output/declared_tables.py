"""The tables that commands print as JSON: each column and its type, in one place; `schema` makes types of them.

A table is columns ``name:type`` with blanks between. The types are those of `schema`; ``|null`` says that there may be
none. A ``?`` behind a name: not in all forms of the table; before the columns: not always there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["FIGURES", "ISSUES", "SENTENCES", "TABLES"]

ISSUES: Final = "rank:int file:text what:text detail:text count:int job?:text"
"""What was repaired, dropped or unmatched: ``warnings`` of every envelope."""
_INPUTS: Final = (
    "rank:int file:text device?:text world_size?:int steps?:text events?:int activities?:int start_utc?:text "
    "span_us?:number job?:text"
)
"""What was read."""
_NAMES: Final = (
    "name:text on_device:flag before_count:int after_count:int change_count:int before_us:number after_us:number "
    "change_us:number before_per_step_count:number after_per_step_count:number change_per_step_count:number "
    "before_per_step_us:number after_per_step_us:number change_per_step_us:number change:text"
)
_SHARES: Final = "group:text key:text time_us:number share_percent:number count:int"
_ADDED: Final = "path:text name:text kind:text count_per_step:number total_us:number critical_us:number"
_STREAMS: Final = (
    "rank:int device:int stream:int cause:text idle_us:number count:int mean_us:number max_us:number "
    "share_percent:number"
)
_PHASES: Final = (
    "rank:int phase:text example:text count:int tokens:int host_us:number wall_us:number mean_wall_us:number "
    "max_wall_us:number busy_us:number idle_us:number idle_percent:number kernels:int launches:int "
    "tokens_per_s:number"
)
_OPPORTUNITIES: Final = (
    "what:text name:text target:text time_us:number critical_us:number gain_us:number gain_percent:number "
    "gain_per_step_us:number gain_at_75_us:number gain_at_50_us:number gain_at_25_us:number gain_at_0_us:number "
    "note:text inside:text"
)
_STRAGGLERS: Final = (
    "rank:int blamed_us:number share_percent:number explained_us:number first_guess:flag waits_us:number "
    "late_count:int lateness_us:number cause:text cause_name:text cause_us:number slower_percent:number "
    "own_step_us:number step_excess_us:number step_error_us:number slow:flag slow_steps:int slow_excess_us:number "
    "evidence:text"
)
_LATE_RANKS: Final = (
    "rank:int blamed_us:number share_percent:number waits_us:number late_count:int own_step_us:number "
    "step_excess_us:number step_error_us:number slow:flag slow_steps:int slow_excess_us:number cause:text"
)
_EDGES: Final = (
    "moment:text edge:text other_activity:int other_moment:text other_name:text other_rank:int lag_us:number "
    "decided:flag later_than_that_us:number why_later:text known:text confidence_percent:int"
)
_TEMPORAL_BREAKDOWN: Final = (
    "rank:int executor:text window_us:number computation_us:number exposed_communication_us:number "
    "exposed_memory_us:number other_us:number idle_us:number computation_percent:number "
    "exposed_communication_percent:number exposed_memory_percent:number other_percent:number idle_percent:number"
)

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "cache clear": {
        "inputs": _INPUTS,
    },
    "cache info": {
        "inputs": _INPUTS,
        "cache": "job:text files:int bytes:int used_utc:text file:text",
    },
    "collectives": {
        "inputs": _INPUTS,
        "collectives": (
            "op:text group:text matched:flag collectives:int ranks:int total_us:number beside_us:number "
            "wait_us:number transfer_us:number excess_us:number wait_or_transfer_us:number mean_bytes:number "
            "algbw_gb_s:number busbw_gb_s:number"
        ),
        "last_arrivals": "?last_rank:int collectives:int waited_us:number",
        "parts": (
            "?collective:int op:text group:text rank:int activity:int name:text step:int size:int absent:int "
            "key:text start_us:number duration_us:number beside_us:number wait_us:number transfer_us:number "
            "excess_us:number wait_or_transfer_us:number bytes:number algbw_gb_s:number busbw_gb_s:number "
            "last_rank:int wait_error_us:number matched:flag"
        ),
    },
    "compare": {
        "inputs": _INPUTS,
        "names": _NAMES,
    },
    "counters": {
        "inputs": _INPUTS,
        "queues": (
            "rank:int device:int stream:int count:int mean:number std:number min:number p25:number median:number "
            "p75:number max:number mean_over_time:number full_us:number full_percent:number"
        ),
        "bandwidth": (
            "rank:int copy:text count:int mean_gb_s:number std_gb_s:number min_gb_s:number p25_gb_s:number "
            "median_gb_s:number p75_gb_s:number max_gb_s:number busy_us:number copied_gb:number "
            "mean_over_time_gb_s:number"
        ),
        "queue_length": "?rank:int device:int stream:int time_us:number queue_length:int activity:int",
        "memory_bandwidth": "?rank:int copy:text time_us:number bandwidth_gb_s:number activity:int",
    },
    "critical-path": {
        "inputs": _INPUTS,
        "shares": _SHARES,
        "host": (
            "what:text inside:text before:text after:text rank:int count:int total_us:number longest_us:number "
            "share_percent:number activity:int"
        ),
        "hops": (
            "at_us:number from_rank:int to_rank:int edge:text from_activity:int to_activity:int name:text "
            "waited_us:number"
        ),
        "near": (
            "slack_us:number start_us:number end_us:number work_us:number rank:int edge:text leaves:int "
            "returns:int main:text"
        ),
        "segments": (
            "?start_us:number duration_us:number rank:int lane:text activity:int name:text kind:text edge:text "
            "gap:text category:text operator:text module:text before:text hop:flag"
        ),
    },
    "diff": {
        "inputs": _INPUTS,
        "contributions": (
            "path:text name:text kind:text category:text before_us:number after_us:number change_us:number "
            "change_percent:number before_count:number after_count:number change:text renamed:text before_ns:int "
            "after_ns:int"
        ),
        "work": (
            "name:text kind:text before_us:number after_us:number change_us:number effect_us:number rank:int "
            "rank_change_us:number whole:flag"
        ),
        "summary": "group:text key:text before_us:number after_us:number change_us:number change_percent:number",
        "names": _NAMES,
        "added": _ADDED,
        "removed": _ADDED,
        "renamed": "path:text before:text after:text",
        "paired_steps": "before_step:int after_step:int before_us:number after_us:number change_us:number",
    },
    "event": {
        "inputs": _INPUTS,
        "activity": (
            "activity:int rank:int kind:text name:text lane:text stream:int step:int start_us:number "
            "duration_us:number parent:int cause:int correlation:int"
        ),
        "arguments": "argument:text value:text",
        "inside": "activity:int kind:text name:text start_us:number duration_us:number",
        "waits_for": _EDGES,
        "waited_for_by": _EDGES,
    },
    "execution-trace": {
        "inputs": _INPUTS,
        "names": "name:text nodes:int op_schema:text",
        "nodes": (
            "et_node:int name:text parent:int rf_id:int op_schema:text input_shapes:list input_types:list "
            "output_shapes:list output_types:list"
        ),
        "links": (
            "?activity:int name:text et_node:int op_schema:text input_shapes:list input_types:list "
            "output_shapes:list output_types:list"
        ),
    },
    "idle": {
        "inputs": _INPUTS,
        "streams": _STREAMS,
        "pauses": (
            "rank:int device:int stream:int step:int before:int after:int before_name:text after_name:text "
            "start_us:number pause_us:number gap_us:number launch:int launch_late_us:number cause:text"
        ),
    },
    "jobs": {
        "inputs": _INPUTS,
        "jobs": "path:text files:int bytes:int",
    },
    "kernels": {
        "inputs": _INPUTS,
        "device_time": (
            "kind?:text name:text ranks?:int count?:int total_us?:number mean_us?:number min_us?:number "
            "max_us?:number share_percent:number rank?:int std_us?:number relative?:number spread?:number "
            "slowest_rank?:int excess_us?:number host_us?:number host_self_us?:number device_count?:int "
            "device_us?:number device_total_us?:number input_dims?:text"
        ),
        "device_time_by_rank": (
            "?rank:int kind?:text name:text count?:int total_us?:number mean_us?:number min_us?:number "
            "max_us?:number std_us?:number share_percent?:number host_us?:number host_self_us?:number "
            "device_count?:int device_us?:number device_total_us?:number input_dims?:text"
        ),
        "module_classes": (
            "?kind?:text name:text ranks?:int count?:int total_us?:number mean_us?:number min_us?:number "
            "max_us?:number share_percent?:number rank?:int std_us?:number relative?:number spread?:number "
            "slowest_rank?:int excess_us?:number host_us?:number host_self_us?:number device_count?:int "
            "device_us?:number device_total_us?:number input_dims?:text"
        ),
    },
    "launches": {
        "inputs": _INPUTS,
        "calls": (
            "rank:int name:text calls:int works:int total_us:number mean_us:number max_us:number excessive:int "
            "median_delay_us:number short_percent:number"
        ),
        "operators": (
            "rank:int operator:text kernel_sequence:text kernels:int count:int launch_delay_us:number "
            "kernel_delay_us:number device_us:number"
        ),
        "graph_launches": (
            "rank:int launch:int name:text step:int graph_id:int start_us:number call_us:number delay_us:number "
            "kernels:int streams:int span_us:number busy_us:number gap_us:number gap_percent:number "
            "communication_us:number"
        ),
        "compiled_regions": (
            "rank:int region:text inside:text count:int host_us:number kernels:int triton_kernels:int "
            "device_us:number triton_us:number triton_percent:number"
        ),
        "phases": _PHASES,
    },
    "memory": {
        "inputs": _INPUTS,
        "memory_peaks": (
            "?rank:int device:text peak_bytes:int peak_us:number reserved_bytes:int most_reserved_bytes:int "
            "first_bytes:int last_bytes:int allocations:int allocated_bytes:int activity:int name:text"
        ),
        "memory_at_peak": (
            "?rank?:int device?:text name?:text known?:flag bytes:int allocations:int share_percent:number "
            "operator?:text where?:text stack?:int"
        ),
        "memory_devices": (
            "?device:int segments:int blocks:int reserved_bytes:int allocated_bytes:int requested_bytes:int "
            "inactive_bytes:int largest_free_bytes:int events:int peak_bytes:int peak_us:number"
        ),
        "memory_now": "?bytes:int allocations:int share_percent:number operator:text where:text stack:int",
        "memory_categories": "?category:text most_bytes:int at_peak_bytes:int first_bytes:int last_bytes:int",
    },
    "opportunities": {
        "inputs": _INPUTS,
        "opportunities": _OPPORTUNITIES,
    },
    "patterns": {
        "inputs": _INPUTS,
        "patterns": (
            "rank:int operator:text pattern:text kernels:int count:int kernel_us:number operator_us:number example:int"
        ),
    },
    "phases": {
        "inputs": _INPUTS,
        "phases": _PHASES,
    },
    "roofline": {
        "inputs": _INPUTS,
        "roofline": (
            "rank:int operator:text shapes:text element_bytes:int tf32:flag at_most:flag source:text count:int "
            "flop:number bytes:number time_us:number share_percent:number intensity:number tflop_s:number gb_s:number "
            "peak_tflop_s:number peak_gb_s:number roof_percent:number bound:text"
        ),
        "counters": (
            "?rank:int range:int kernel:text launch:int step:int operator_stack:text top_operator:text "
            "bottom_operator:text counter:text value:number flop:number"
        ),
    },
    "select": {
        "inputs": _INPUTS,
        "activities": (
            "activity:int rank:int kind:text name:text stream:int step:int start_us:number duration_us:number"
        ),
        "by_name": "name:text count:int total_us:number",
    },
    "stragglers": {
        "inputs": _INPUTS,
        "stragglers": _STRAGGLERS,
        "causes": "charged_rank:int cause:text wait_us:number waits:int",
    },
    "stragglers --scheduler": {
        "inputs": _INPUTS,
        "missing": "rank:any file:any why:any",
        "stragglers": _LATE_RANKS,
    },
    "summary": {
        "inputs": _INPUTS,
        "steps": "rank:int steps:int period_us:number mean_us:number min_us:number max_us:number",
        "temporal_breakdown": _TEMPORAL_BREAKDOWN,
        "overlap": (
            "rank:int communication_us:number computation_us:number hidden_us:number beside_us:number "
            "overlap_percent:number"
        ),
        "rank_idle": "rank:int cause:text idle_us:number count:int share_percent:number",
        "idle_breakdown": _STREAMS,
        "kernels": (
            "kind:text name:text ranks:int count:int total_us:number min_us:number max_us:number mean_us:number "
            "share_percent:number"
        ),
        "launches": (
            "rank:int launches:int works:int median_launch_us:number median_delay_us:number short:int "
            "excessive_runtime:int excessive_delay:int"
        ),
        "critical_path": _SHARES,
        "opportunities": _OPPORTUNITIES,
        "stragglers": _STRAGGLERS,
        "interruptions": (
            "rank:int step:int thread:text name:text before:text start_us:number interrupted_us:number "
            "usual_us:number activity:int"
        ),
        "gaps": "gap:text count:int total_us:number critical_us:number critical_percent:number explained:flag",
        "clocks": (
            "rank:int gauge:int offset_us:number drift_ppm:number uncertainty_us:number residual_us:number "
            "collectives:int"
        ),
    },
    "summary --scheduler": {
        "inputs": _INPUTS,
        "missing": "rank:any file:any why:any",
        "steps": "step:int ranks:int min_us:number median_us:number max_us:number",
        "time_by_rank": _TEMPORAL_BREAKDOWN,
        "kernels": (
            "kind:text name:text ranks:int count:int total_us:number mean_us:number min_us:number max_us:number "
            "share_percent:number"
        ),
        "critical_path": "spent_on:text total_us:number share_percent:number",
        "stragglers": _LATE_RANKS,
    },
    "validate": {
        "issues": "rank:int file:text what:text detail:text count:int",
        "support": "analysis:text supported:text why:text setting:text",
        "arguments": "?rank:int category:text argument:text known:flag events:int converted:int wrong:int example:text",
    },
    "what-if": {
        "inputs": _INPUTS,
        "prediction": (
            "?baseline_us:number predicted_us:number saved_us:number speedup:number low:number high:number "
            "baseline_step_us:number predicted_step_us:number p50_us?:number p99_us?:number"
        ),
        "changes": "?change:text predicted_us:number saved_us:number speedup:number",
        "step_times": (
            "?step:int rank:int start_us:number end_us:number predicted_start_us:number predicted_end_us:number"
        ),
        "bounds": (
            "?group:text key:text before_time_us:number after_time_us:number before_share_percent:number "
            "after_share_percent:number"
        ),
        "sweep": (
            "?factor:number makespan_us:number mean_step_us:number saved_us:number speedup:number low:number "
            "high:number"
        ),
    },
}
"""Tables of each command by name. A command with ``--scheduler`` is that command of a job on workers; ``event``,
``jobs`` and ``select`` are what `htagraph serve` and `htagraph mcp` answer."""

FIGURES: Final[Mapping[str, Mapping[str, str]]] = {
    "cache clear": {"folder": "text", "removed_graphs": "int", "removed_bytes": "int"},
    "cache info": {"folder": "text", "graphs": "int", "total_bytes": "int", "limit_bytes": "int"},
    "critical-path": {"makespan_us": "number", "segments_count": "int"},
    "diff": {
        "before_us": "number",
        "after_us": "number",
        "change_us": "number",
        "change_percent": "number",
        "unit": "text",
        "exceeded": "list",
        "step_change_percent": "number",
        "step_change_plus_minus_percent": "number",
    },
    "kernels": {"by": "text"},
    "select": {"count": "int", "total_us": "number"},
    "stragglers": {"straggler": "int|null", "total_wait_us": "number"},
    "stragglers --scheduler": {"straggler": "int|null", "total_wait_us": "number"},
    "summary --scheduler": {"makespan_us": "number", "straggler": "int|null"},
    "what-if": {"notes": "list?", "swept": "text?", "baseline_step_us": "number?"},
}
"""Single results of each command; a ``?`` behind the type: not always there."""

SENTENCES: Final[Mapping[str, str]] = {"summary": "verdict"}
"""The key of a command's sentences, where it is not ``conclusions``."""
