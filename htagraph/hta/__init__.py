"""HTA's import paths: write `htagraph.hta` for `hta`, and a notebook made for Holistic Trace Analysis runs on htagraph.

`trace_analysis`, `trace_diff`, `memory_analysis`, `common`, `configs`, `analyzers` and `utils` are HTA's own names;
`shapes` gives native results HTA's columns, index, units and rounding. A module of HTA whose names lie in another file
here is no file, but a row of `MODULES`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MODULES"]

MODULES: dict[str, dict[str, str | int]] = {
    "analyzers.breakdown_analysis": {"BreakdownAnalysis": "shapes.breakdowns"},
    "analyzers.communication_analysis": {"CommunicationAnalysis": "shapes.breakdowns"},
    "analyzers.cuda_kernel_analysis": {"CudaKernelAnalysis": "shapes.launches"},
    "analyzers.cupti_counter_analysis": dict.fromkeys(
        ("CUDA_SASS_INSTRUCTION_COUNTER_FLOPS", "CuptiCounterAnalysis", "get_cupti_counter_data_with_operators"),
        "shapes.counters",
    ),
    "analyzers.straggler": dict.fromkeys(
        ("extract_iteration_info", "find_stragglers_with_late_start_comm_kernels"), "shapes.launches"
    ),
    "analyzers.straggler_analysis": {"StragglerAnalysis": "shapes.launches"},
    "analyzers.timeline": dict.fromkeys(
        ("gpu_kernels_figure", "plot_timeline", "plot_timeline_gpu_kernels", "plot_timeline_gpu_kernels_from_trace",
         "prepare_timeline_gpu_events"), "common.timeline",
    ),
    "analyzers.trace_counters": {"TraceCounters": "shapes.counters"},
    "common.constants": {"CUDA_MAX_LAUNCH_QUEUE_PER_STREAM": 1024, "MAX_EVENT_DURATION_US": 7 * 24 * 3600 * 10**6},
    "common.execution_trace": dict.fromkeys(
        ("EXECUTION_TRACE_SUPPORTED_EVENTS", "ExecutionTrace", "Node", "add_et_column", "correlate_execution_trace",
         "load_execution_trace"), "common.trace",
    ),
    "common.trace_df": dict.fromkeys(
        ("find_events_by_name_patterns_using_decoded_names", "find_events_by_name_patterns_using_symbol_table",
         "find_op_occurrence", "get_iterations"), "common.trace_filter",
    ),
    "common.trace_file": dict.fromkeys(
        ("create_rank_to_trace_dict", "create_rank_to_trace_dict_from_dir", "get_trace_files", "read_trace",
         "update_trace_rank", "write_trace"), "common.trace",
    ),
    "common.trace_parser": dict.fromkeys(
        ("MetaData", "get_default_trace_parsing_backend", "infer_gpu_type", "parse_trace_dataframe", "parse_trace_dict",
         "set_default_trace_parsing_backend"), "common.trace",
    ),
    "common.trace_stack_filter": dict.fromkeys(
        ("AfterOperatorFilter", "BeforeOperatorFilter", "CombinedOperatorFilter", "OperatorFilter",
         "OperatorFilterMethod", "UnderOperatorFilter", "get_matching_kernels"), "common.trace_filter",
    ),
    "common.types": dict.fromkeys(
        ("MEMCPY_TYPE_TO_STR", "DeviceType", "GroupingPattern", "MemcpyType", "infer_device_type",
         "to_grouping_pattern"), "common.trace_symbol_table",
    ),
    "configs.default_event_args": {"DEFAULT_EVENT_ARGS_YAML": "configs.parser_config"},
    "configs.default_values": dict.fromkeys(
        ("DEFAULT_CONFIG_FILENAME", "DEFAULT_TRACE_DIR", "AttributeSpec", "EventArgs", "ValueType", "YamlVersion"),
        "configs.config",
    ),
    "configs.env_options": dict.fromkeys(
        ("CP_LAUNCH_EDGE_ENV", "CP_LAUNCH_EDGE_SHOW_ENV", "CP_STRICT_NEG_WEIGHT_CHECK_ENV", "HTAEnvOptions",
         "HTA_DISABLE_CG_DEPTH_ENV", "HTA_DISABLE_NS_ROUNDING_ENV", "critical_path_add_zero_weight_launch_edges",
         "critical_path_show_zero_weight_launch_edges", "critical_path_strict_negative_weight_check",
         "disable_call_graph_depth", "disable_ns_rounding", "get_options"), "configs.config",
    ),
    "configs.event_args_yaml_parser": dict.fromkeys(
        ("YamlVersion", "parse_event_args_yaml", "v1_0_0"), "configs.parser_config"
    ),
    "utils.checker": dict.fromkeys(("OperationOutcome", "is_valid_directory"), "utils.utils"),
    "utils.test_utils": dict.fromkeys(("data_provider", "get_test_data_dir"), "utils.utils"),
    "utils.validate_trace": {"validate_trace_format": "common.trace"},
}  # fmt: skip
"""The names of HTA's modules that are no files here: where each is, under `htagraph.hta`, or its value."""


class _Rows(MetaPathFinder, Loader):
    """Finds the modules that are rows of `MODULES`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a module that is a row, None of others."""
        row = fullname.removeprefix(f"{__name__}.")
        return ModuleSpec(fullname, self) if row != fullname and row in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        """Give a module its names."""
        row = MODULES[module.__name__.removeprefix(f"{__name__}.")]
        for name, place in row.items():
            value = getattr(import_module(f"{__name__}.{place}"), name) if isinstance(place, str) else place
            setattr(module, name, value)
        module.__dict__["__all__"] = list(row)


sys.meta_path.append(_Rows())
