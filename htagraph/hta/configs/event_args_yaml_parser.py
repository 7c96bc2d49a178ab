"""The arguments of Kineto's events that HTA knows, and HTA's groups of arguments: a table here, a YAML file there."""

from __future__ import annotations

import json
from functools import cache

from htagraph.hta.configs.default_values import AttributeSpec, EventArgs, ValueType, YamlVersion

__all__ = ["YamlVersion", "parse_event_args_yaml", "v1_0_0"]

v1_0_0 = YamlVersion(1, 0, 0)

_INT, _FLOAT, _STRING, _OBJECT = ValueType

_ARGUMENTS: tuple[tuple[str, str, str, ValueType, object], ...] = (
    ("index::ev_idx", "ev_idx", "Ev Idx", _INT, -1),
    ("index::external_id", "external_id", "External id", _INT, -1),
    ("index::python_id", "python_id", "Python id", _INT, -1),
    ("index::python_parent_id", "python_parent_id", "Python parent id", _INT, -1),
    ("cpu_op::concrete_inputs", "concrete_inputs", "Concrete Inputs", _OBJECT, "[]"),
    ("cpu_op::fwd_thread", "fwd_thread_id", "Fwd thread id", _INT, -1),
    ("cpu_op::input_dims", "input_dims", "Input Dims", _OBJECT, "-1"),
    ("cpu_op::input_type", "input_type", "Input type", _OBJECT, "-1"),
    ("cpu_op::input_strides", "input_strides", "Input Strides", _OBJECT, "-1"),
    ("cpu_op::sequence_number", "sequence", "Sequence number", _INT, -1),
    ("cpu_op::kernel_backend", "kernel_backend", "kernel_backend", _STRING, ""),
    ("cpu_op::kernel_hash", "kernel_hash", "kernel_hash", _STRING, ""),
    ("correlation::cbid", "cbid", "cbid", _INT, -1),
    ("correlation::cpu_gpu", "correlation", "correlation", _INT, -1),
    ("sm::blocks", "blocks_per_sm", "blocks per SM", _OBJECT, "[]"),
    ("sm::occupancy", "est_occupancy", "est. achieved occupancy %", _INT, -1),
    ("sm::warps", "warps_per_sm", "warps per SM", _FLOAT, 0.0),
    ("data::bytes", "bytes", "bytes", _INT, -1),
    ("data::bandwidth", "memory_bw_gbps", "memory bandwidth (GB/s)", _FLOAT, 0.0),
    ("cuda::context", "context", "context", _INT, -1),
    ("cuda::device", "device", "device", _INT, -1),
    ("cuda::stream", "stream", "stream", _INT, -1),
    ("kernel::queued", "queued", "queued", _INT, -1),
    ("kernel::shared_memory", "shared_memory", "shared memory", _INT, -1),
    ("threads::block", "block", "block", _OBJECT, "[]"),
    ("threads::grid", "grid", "grid", _OBJECT, "[]"),
    ("threads::registers", "registers_per_thread", "registers per thread", _INT, -1),
    ("cuda_sync::stream", "wait_on_stream", "wait_on_stream", _INT, -1),
    ("cuda_sync::event", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_record_corr_id", _INT, -1),
    ("info::finished", "finished", "finished", _STRING, ""),
    ("info::labels", "labels", "labels", _STRING, ""),
    ("info::name", "name", "name", _INT, -1),
    ("info::op_count", "op_count", "Op count", _INT, -1),
    ("info::sort_index", "sort_index", "sort_index", _INT, -1),
    ("nccl::collective_name", "collective_name", "Collective name", _STRING, ""),
    ("nccl::in_msg_nelems", "in_msg_nelems", "In msg nelems", _INT, 0),
    ("nccl::out_msg_nelems", "out_msg_nelems", "Out msg nelems", _INT, 0),
    ("nccl::in_msg_size", "in_msg_size", "In msg size", _INT, 0),
    ("nccl::out_msg_size", "out_msg_size", "Out msg size", _INT, 0),
    ("nccl::group_size", "group_size", "Group size", _INT, 0),
    ("nccl::dtype", "msg_dtype", "dtype", _STRING, ""),
    ("nccl::in_split_size", "in_split_size", "In split size", _OBJECT, "[]"),
    ("nccl::out_split_size", "out_split_size", "Out split size", _OBJECT, "[]"),
    ("nccl::input_tensors_start", "input_tensors_start", "Input Tensors start", _OBJECT, "[]"),
    ("nccl::output_tensors_start", "output_tensors_start", "Output Tensors start", _OBJECT, "[]"),
    ("nccl::process_group_name", "process_group_name", "Process Group Name", _STRING, ""),
    ("nccl::process_group_desc", "process_group_desc", "Process Group Description", _STRING, ""),
    ("nccl::process_group_ranks", "process_group_ranks", "Process Group Ranks", _OBJECT, "[]"),
    ("nccl::rank", "process_rank", "Rank", _INT, -1),
    ("nccl::seq", "seq_num", "Seq", _INT, -1),
    ("inference::batch_size", "batch_size", "batchSize", _INT, -1),
    ("inference::batch_id", "batch_id", "batchId", _STRING, ""),
)
"""HTA's key, the column, the key in the file, the type, the value of events without the argument."""

DEFAULT_EVENT_ARGS_YAML = "version: 1.0.0\n\nAVAILABLE_ARGS:\n" + "".join(
    f"  {key}:\n    name: {name}\n    raw_name: {raw_name}\n    value_type: {kind.name}\n"
    f"    default_value: {json.dumps(default)}\n" for key, name, raw_name, kind, default in _ARGUMENTS
)  # fmt: skip
"""The table as HTA has it."""

_GROUPS: dict[str, tuple[str, ...]] = {
    "ARGS_MINIMUM": ("cuda::stream", "correlation::cpu_gpu"),
    "ARGS_BANDWIDTH": ("data::bytes", "data::bandwidth"),
    "ARGS_SYNC": ("cuda_sync::stream", "cuda_sync::event"),
    "ARGS_INPUT_SHAPE": ("cpu_op::input_dims", "cpu_op::input_type", "cpu_op::input_strides"),
    "ARGS_INFO": ("info::labels", "info::name", "info::sort_index"),
    "ARGS_TRITON_KERNELS": ("cpu_op::kernel_backend", "cpu_op::kernel_hash"),
    "ARGS_COMMUNICATION": (
        "nccl::collective_name", "nccl::in_msg_nelems", "nccl::out_msg_nelems", "nccl::dtype", "nccl::group_size",
        "nccl::rank", "nccl::in_split_size", "nccl::out_split_size",
    ),
    "ARGS_COMPLETE": tuple(key for key, *_ in _ARGUMENTS if not key.startswith("info")),
}  # fmt: skip
_INDEX = ("index::external_id", "index::python_id", "index::python_parent_id")
_DEFAULT = ("ARGS_MINIMUM", "ARGS_BANDWIDTH", "ARGS_SYNC", "ARGS_INPUT_SHAPE")


@cache
def parse_event_args_yaml(version: YamlVersion = v1_0_0) -> EventArgs:
    """Return the known arguments and HTA's groups of them; the same for every version.

    Example:
        >>> [spec.name for spec in parse_event_args_yaml().ARGS_INPUT_SHAPE]
        ['input_dims', 'input_type', 'input_strides']
    """
    known = {
        key: AttributeSpec(name, raw_name, value_type, default, version)
        for key, name, raw_name, value_type, default in _ARGUMENTS
    }
    by_default = (*(key for group in _DEFAULT for key in _GROUPS[group]), *_INDEX, *_GROUPS["ARGS_COMMUNICATION"])
    groups = {name: [known[key] for key in keys] for name, keys in {**_GROUPS, "ARGS_DEFAULT": by_default}.items()}
    return EventArgs(AVAILABLE_ARGS=known, **groups)
