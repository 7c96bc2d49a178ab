"""HTA's modules that are rows: each is imported with its names, which do what HTA's do."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from htagraph import hta
from htagraph.hta.analyzers.critical_path_analysis import CPGraph, critical_path_analysis
from htagraph.hta.common.trace import Trace
from htagraph.hta.common.trace_symbol_table import to_grouping_pattern
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.reach import DATA, SHARED

DEMO = str(DATA / "demo")


def of(module: str, name: str) -> Any:
    return getattr(import_module(f"htagraph.hta.{module}"), name)


NAMES = dict(
    line.split(": ")
    for line in re.sub(
        r"\n    ",
        " ",
        """\
analyzers.breakdown_analysis: BreakdownAnalysis
analyzers.communication_analysis: CommunicationAnalysis
analyzers.cuda_kernel_analysis: CudaKernelAnalysis
analyzers.cupti_counter_analysis: CUDA_SASS_INSTRUCTION_COUNTER_FLOPS CuptiCounterAnalysis
    get_cupti_counter_data_with_operators
analyzers.straggler: extract_iteration_info find_stragglers_with_late_start_comm_kernels
analyzers.straggler_analysis: StragglerAnalysis
analyzers.timeline: gpu_kernels_figure plot_timeline plot_timeline_gpu_kernels plot_timeline_gpu_kernels_from_trace
    prepare_timeline_gpu_events
analyzers.trace_counters: TraceCounters
common.constants: CUDA_MAX_LAUNCH_QUEUE_PER_STREAM MAX_EVENT_DURATION_US
common.execution_trace: EXECUTION_TRACE_SUPPORTED_EVENTS ExecutionTrace Node add_et_column correlate_execution_trace
    load_execution_trace
common.trace_call_stack: NON_EXISTENT_NODE_INDEX NULL_NODE_INDEX CallStackGraph CallStackIdentity CallStackNode
    DFSCallback
common.trace_df: find_events_by_name_patterns_using_decoded_names find_events_by_name_patterns_using_symbol_table
    find_op_occurrence get_iterations
common.trace_file: create_rank_to_trace_dict create_rank_to_trace_dict_from_dir get_trace_files read_trace
    update_trace_rank write_trace
common.trace_parser: MetaData get_default_trace_parsing_backend infer_gpu_type parse_trace_dataframe parse_trace_dict
    set_default_trace_parsing_backend
common.trace_stack_filter: AfterOperatorFilter BeforeOperatorFilter CombinedOperatorFilter OperatorFilter
    OperatorFilterMethod UnderOperatorFilter get_matching_kernels
common.types: MEMCPY_TYPE_TO_STR DeviceType GroupingPattern MemcpyType infer_device_type to_grouping_pattern
    ALL_CATEGORY_PATTERN CPU_AND_GPU_EVENTS_CATEGORY_PATTERN CPU_EVENTS_CATEGORY_PATTERN CPU_OP_CATEGORY_PATTERN
    CUDA_SYNC_PATTERN CommunicateKernelGroupingPattern ComputeKernelGroupingPattern DEVICE_RUNTIME_CATEGORY_PATTERN
    GPU_EVENT_CATEGORY_PATTERN KERNEL_CATEGORY_PATTERN KERNEL_LAUNCH_CATEGORY_PATTERN MEMORY_CATEGORY_PATTERN
    MTIAMemoryKernelGroupingPattern MemoryKernelGroupingPattern PYTHON_FUNCTION_PATTERN ProfilerStepGroupingPattern
configs.default_event_args: DEFAULT_EVENT_ARGS_YAML
configs.default_values: DEFAULT_CONFIG_FILENAME DEFAULT_TRACE_DIR AttributeSpec EventArgs ValueType YamlVersion
configs.env_options: CP_LAUNCH_EDGE_ENV CP_LAUNCH_EDGE_SHOW_ENV CP_STRICT_NEG_WEIGHT_CHECK_ENV HTAEnvOptions
    HTA_DISABLE_CG_DEPTH_ENV HTA_DISABLE_NS_ROUNDING_ENV critical_path_add_zero_weight_launch_edges
    critical_path_show_zero_weight_launch_edges critical_path_strict_negative_weight_check disable_call_graph_depth
    disable_ns_rounding get_options
configs.event_args_yaml_parser: YamlVersion parse_event_args_yaml v1_0_0
memory_analysis: MemoryAnalysis
utils.checker: OperationOutcome is_valid_directory
utils.test_utils: data_provider get_test_data_dir
utils.validate_trace: validate_trace_format
""",
    ).splitlines()
)
"""What HTA has in its modules that are rows here."""


@pytest.mark.parametrize("module", hta.MODULES)
def test_a_row_is_a_module_with_its_names(module: str) -> None:
    made = import_module(f"htagraph.hta.{module}")
    assert all(getattr(made, name) is not None for name in NAMES[module].split())
    with pytest.raises(ModuleNotFoundError):
        import_module(f"htagraph.hta.{module}_")


def test_analyzers_are_the_methods_of_an_analysis() -> None:
    analysis, trace = TraceAnalysis(trace_dir=DEMO), Trace(trace_dir=DEMO)
    trace.load_traces()
    for module, name, method, given in (
        ("breakdown_analysis", "BreakdownAnalysis", "get_temporal_breakdown", {"visualize": False}),
        ("communication_analysis", "CommunicationAnalysis", "get_comm_comp_overlap", {"visualize": False}),
        ("trace_counters", "TraceCounters", "get_queue_length_summary", {}),
    ):
        theirs = getattr(of(f"analyzers.{module}", name), method)(trace, **given)
        pd.testing.assert_frame_equal(theirs, getattr(analysis, method)(**given))


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_the_frames_alone_tell_htas_stragglers() -> None:
    job = TraceAnalysis({i: str(SHARED / "megatron_tp8_a100" / f"megatron_kineto_{i}.json.gz") for i in range(8)})
    late = of("analyzers.straggler", "find_stragglers_with_late_start_comm_kernels")
    assert sorted(job.get_potential_stragglers(None, 2, straggler_identification_impl=late)) == [2, 5]


def test_filters_by_operator() -> None:
    frame = pd.DataFrame({
        "index": range(5), "s_name": ["a", "b", "launch", "a", "gemm"], "ts": [0, 2, 3, 9, 4], "stream": [-1] * 4 + [7],
        "s_cat": ["cpu_op", "cpu_op", "cuda_runtime", "cpu_op", "kernel"], "end": [8, 6, 5, 12, 7], "iteration": 1,
        "index_correlation": [-1, -1, 4, -1, 2],
    })  # fmt: skip
    under, after, before, combined = (
        of("common.trace_stack_filter", f"{name}OperatorFilter") for name in ("Under", "After", "Before", "Combined")
    )
    assert under("a", 0)(frame)["index"].tolist() == [0, 1, 2]
    assert under("a", 0, include_gpu_kernels=True)(frame)["index"].tolist() == [0, 1, 2, 4]
    assert after("b", 0)(frame)["index"].tolist() == [3]
    assert before("a", -1)(frame)["index"].tolist() == [0, 1, 2]
    assert combined("absent", "b", "absent", include_gpu_kernels=True)(frame)["index"].tolist() == [3]
    with pytest.warns(UserWarning, match="no operator 'c'"):
        assert under("c", 0)(frame).empty
    find = of("common.trace_df", "find_op_occurrence")
    assert [find(frame, "a", position)[0] for position in (1, -2, 2, -3)] == [True, True, False, False]


def test_files_are_read_written_ranked_and_checked(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "a.json.gz")
    of("common.trace_file", "write_trace")({"traceEvents": [{"args": {"stream": "7", "odd": 1}}]}, path)
    of("common.trace_file", "update_trace_rank")(path, 3)
    assert of("common.trace_file", "get_trace_files")(str(tmp_path / "new")) == {3: path}
    with pytest.warns(UserWarning, match="absent"):
        assert of("common.trace_file", "get_trace_files")(str(tmp_path / "absent")) == {}
    ok, errors = of("utils.validate_trace", "validate_trace_format")(path, ignore_missing_arguments=False)
    assert (ok, errors["skipped_arguments"], list(errors["type_violations"])) == (False, {"odd": 1}, ["stream"])
    assert of("utils.checker", "is_valid_directory")(str(tmp_path)).success
    assert "not a directory" in of("utils.checker", "is_valid_directory")(path).reason


def test_options_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTA_DISABLE_CG_DEPTH", "1")
    options = of("configs.env_options", "HTAEnvOptions").instance()
    assert options.disable_call_graph_depth()
    options.set_disable_call_graph_depth(False)
    assert not of("configs.env_options", "disable_call_graph_depth")()
    assert "disable_call_graph_depth=False" in of("configs.env_options", "get_options")()
    with pytest.raises(AttributeError, match="no option 'nothing'"):
        options.nothing()


def test_groups_of_names() -> None:
    group = to_grouping_pattern(["aten::", "nccl"], "mine")
    assert (group.match("nccl:send"), group.match("void nccl"), group.group_name) == (True, False, "mine")
    assert to_grouping_pattern(re.compile("a"), inverse_match=True).match("b")
    with pytest.raises(ValueError, match="Unsupported pattern type"):
        to_grouping_pattern(7)
    names = ("ncclKernel_AllReduce", "gemm", "Memset (Device)", "cudaLaunchKernel")
    groups = ("CommunicateKernelGroupingPattern", "ComputeKernelGroupingPattern", "MemoryKernelGroupingPattern")
    found = [[name for name in names if of("common.types", group).match(name)] for group in groups]
    assert found == [[names[0]], [names[1]], [names[2]]]
    text = of("configs.default_event_args", "DEFAULT_EVENT_ARGS_YAML")
    assert 'default_value: "-1"' in text
    assert json.loads(text.split("memory_bw_gbps")[1].split("default_value: ")[1].split()[0]) == 0.0


def test_a_graph_is_made_of_a_trace_as_in_hta() -> None:
    trace = Trace(trace_dir=DEMO)
    trace.load_traces()
    found = critical_path_analysis(trace, 0, "")
    made = CPGraph(trace, trace, 0)
    assert found is not None
    assert made.critical_path()
    assert made.critical_path_nodes == found[0].critical_path_nodes
