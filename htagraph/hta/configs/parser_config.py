"""ParserConfig: which arguments of a trace's events become columns of the frames."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any, ClassVar

from htagraph.hta.configs.config import AttributeSpec, EventArgs, ValueType, YamlVersion

__all__ = [
    "AVAILABLE_ARGS", "DEFAULT_PARSE_VERSION", "AttributeSpec", "ParserBackend", "ParserConfig", "TraceType",
    "ValueType", "YamlVersion", "parse_event_args_yaml", "v1_0_0",
]  # fmt: skip

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


DEFAULT_PARSE_VERSION = v1_0_0
_KNOWN = parse_event_args_yaml(DEFAULT_PARSE_VERSION)
AVAILABLE_ARGS: dict[str, AttributeSpec] = _KNOWN.AVAILABLE_ARGS

ParserBackend = Enum(
    "ParserBackend", {"JSON": "json", "IJSON": "ijson", "IJSON_BATCHED": "ijson_batched",
                      "IJSON_BATCH_AND_COMPRESS": "ijson_batch_and_compress"}, type=str,
)  # fmt: skip
"""HTA's ways to read a file; htagraph has one, so that the choice changes nothing."""
TraceType = Enum(
    "TraceType", {"Training": "training", "TrainingWoProfilerstepAnnot": "training_wo_profilerstep_annot",
                  "Inference": "inference"}, type=str,
)  # fmt: skip
"""What kind of job a trace is of; kept, never asked, as in HTA."""


class ParserConfig:
    """Which arguments of events become columns of `Trace.get_trace`, in which order.

    A `Trace` takes the default configuration of the moment it is made, unless it is given one. Fields that HTA keeps
    for its JSON readers (`parser_backend`, `trace_memory`, `skip_event_types`, `batch_size`, ...) are kept and change
    nothing.

    Args:
        args: the arguments; HTA's default set if not given.
        user_provide_trace_type: kept.
        version: of the set of known arguments.
        parse_all_args: make a column of every argument that an event of the file has.
        selected_arg_keys: names of columns; only these of `args` are made.
        skip_event_types: kept.
        convert_ts_to_integer: kept; times are never rounded.

    Example:
        >>> config = ParserConfig(ParserConfig.get_minimum_args())
        >>> config.add_args(ParserConfig.ARGS_INPUT_SHAPE)
        >>> [spec.name for spec in config.get_args()]
        ['stream', 'correlation', 'input_dims', 'input_type', 'input_strides']
    """

    ARGS_INPUT_SHAPE: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_INPUT_SHAPE
    ARGS_BANDWIDTH: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_BANDWIDTH
    ARGS_SYNC: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_SYNC
    ARGS_MINIMUM: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_MINIMUM
    ARGS_COMPLETE: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_COMPLETE
    ARGS_INFO: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_INFO
    ARGS_TRITON_KERNELS: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_TRITON_KERNELS
    ARGS_COMMUNICATION: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_COMMUNICATION
    ARGS_DEFAULT: ClassVar[list[AttributeSpec]] = _KNOWN.ARGS_DEFAULT
    DEFAULT_MIN_REQUIRED_COLS: ClassVar[list[str]] = ["ts", "dur", "name", "cat", "pid", "tid"]

    _default: ClassVar[ParserConfig]

    def __init__(
        self,
        args: Sequence[AttributeSpec] | None = None,
        user_provide_trace_type: TraceType | None = None,
        version: YamlVersion = DEFAULT_PARSE_VERSION,
        parse_all_args: bool = False,
        selected_arg_keys: Sequence[str] | None = None,
        skip_event_types: set[str] | None = None,
        convert_ts_to_integer: bool = True,
    ) -> None:
        self.args = list(args) if args else self.get_default_args(version)
        self.user_provide_trace_type = user_provide_trace_type
        self.version = version
        self.parse_all_args = parse_all_args
        self.selected_arg_keys = list(selected_arg_keys) if selected_arg_keys is not None else None
        self.skip_event_types = {"python_function"} if skip_event_types is None else set(skip_event_types)
        self.convert_ts_to_integer = convert_ts_to_integer
        self.parser_backend: ParserBackend | None = None
        self.trace_memory = False
        self.drop_gpu_user_annotation = True
        self.min_required_cols = list(self.DEFAULT_MIN_REQUIRED_COLS)
        self.batch_size = 1000  # HTA's value, of its reader in batches: kept, never asked
        self.max_event_duration_us: int | None = 7 * 24 * 3600 * 10**6  # HTA's value, 7 days: kept, never asked

    def __repr__(self) -> str:
        names = [spec.name for spec in self.get_args()]
        return f"ParserConfig(args={names}, parse_all_args={self.parse_all_args})"

    @property
    def arg_map(self) -> dict[str, AttributeSpec]:
        """The arguments by column."""
        return {spec.name: spec for spec in self.args}

    def clone(self) -> ParserConfig:
        """Return a copy that shares nothing with this configuration."""
        return copy.deepcopy(self)

    def get_fingerprint_key(self) -> tuple[tuple[str, ...], bool]:
        """Return what two configurations share if they give the same columns."""
        return tuple(sorted(spec.name for spec in self.get_args())), self.parse_all_args

    @classmethod
    def get_default_cfg(cls) -> ParserConfig:
        """Return a copy of the configuration that a `Trace` takes if it is given none."""
        return cls._default.clone()

    @classmethod
    def set_default_cfg(cls, cfg: ParserConfig) -> None:
        """Take a copy of a configuration as the default of every `Trace` that is made from now on."""
        ParserConfig._default = cfg.clone()

    @classmethod
    def get_versioned_cfg(cls, version: YamlVersion) -> ParserConfig:
        """Return the configuration with the default arguments of a version."""
        return ParserConfig(version=version)

    @staticmethod
    def set_global_parser_config_version(version: YamlVersion) -> None:
        """Make the default arguments of a version the default configuration."""
        ParserConfig._default = ParserConfig(version=version)

    @classmethod
    def get_minimum_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        """Return the arguments that tell streams and link launches with their work."""
        return list(parse_event_args_yaml(version).ARGS_MINIMUM)

    @classmethod
    def get_default_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        """Return the arguments that HTA makes columns of if nobody asks for others."""
        return list(parse_event_args_yaml(version).ARGS_DEFAULT)

    @classmethod
    def get_info_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        """Return the arguments of events that describe processes and threads."""
        return list(parse_event_args_yaml(version).ARGS_INFO)

    @classmethod
    def get_all_available_args(cls) -> dict[str, AttributeSpec]:
        """Return all known arguments by HTA's keys."""
        return AVAILABLE_ARGS

    @classmethod
    def show_available_args(cls) -> None:
        """Print all known arguments."""
        from pprint import pprint

        pprint(cls.get_all_available_args())  # noqa: T203 - as its name says

    @classmethod
    def enable_communication_args(
        cls, cfg: ParserConfig | None = None, version: YamlVersion = DEFAULT_PARSE_VERSION
    ) -> ParserConfig:
        """Add the arguments of collectives to a configuration, the default one if none is given, and return it."""
        chosen = cfg or cls._default
        chosen.add_args(parse_event_args_yaml(version).ARGS_COMMUNICATION)
        return chosen

    def get_args(self) -> list[AttributeSpec]:
        """Return the arguments that become columns.

        Raises:
            KeyError: a selected column is none of them.
        """
        if self.selected_arg_keys is None:
            return self.args
        absent = [key for key in self.selected_arg_keys if key not in self.arg_map]
        if absent:
            msg = f"selected_arg_keys names {', '.join(absent)}; there are {', '.join(self.arg_map)}"
            raise KeyError(msg)
        return [self.arg_map[key] for key in self.selected_arg_keys]

    def set_args(self, args: Iterable[AttributeSpec]) -> None:
        """Replace the arguments."""
        given = list(args)
        self.args.clear()
        self.add_args(given)

    def add_args(self, args: Iterable[AttributeSpec]) -> None:
        """Add arguments; a column that is there already stays as it is."""
        for spec in args:
            if spec.name not in self.arg_map:
                self.args.append(spec)

    def set_args_selector(self, selected_arg_keys: Sequence[str] | None = None) -> ParserConfig:
        """Choose some of the columns, or all with None; return the configuration."""
        self.selected_arg_keys = list(selected_arg_keys) if selected_arg_keys is not None else None
        return self

    def set_parse_all_args(self, parse_all_args: bool) -> ParserConfig:
        """Make a column of every argument in the file, or only of the named ones; return the configuration."""
        self.parse_all_args = parse_all_args
        return self

    def set_skip_event_types(self, skip_event_types: set[str] | None = None) -> ParserConfig:
        """Keep categories for HTA's readers in batches; return the configuration."""
        self.skip_event_types = set(skip_event_types or ())
        return self

    def set_parser_backend(self, parser_backend: ParserBackend | None) -> None:
        """Keep HTA's choice of a reader."""
        self.parser_backend = parser_backend

    def set_trace_memory(self, trace_memory: bool) -> None:
        """Keep whether HTA measures memory."""
        self.trace_memory = trace_memory

    def set_drop_gpu_user_annotation(self, should_drop: bool) -> None:
        """Keep a field that HTA never asks."""
        self.drop_gpu_user_annotation = should_drop

    def get_min_required_cols(self) -> list[str]:
        """Return the columns that every frame has."""
        return self.min_required_cols

    def set_min_required_cols(self, cols: Sequence[str]) -> None:
        """Keep the columns that every frame must have."""
        self.min_required_cols = list(cols)

    @classmethod
    def transform_arg_name(cls, arg: str) -> str:
        """Return the column of an argument that HTA does not know.

        Example:
            >>> ParserConfig.transform_arg_name("memory bandwidth (GB/s)")
            'memory_bandwidth'
        """
        plain = re.sub(r"\([^)]*\)", "", arg).lower()
        plain = re.sub(r"[ \-/.%_]+", "_", plain).strip("_")
        return "arg_name" if plain == "name" else plain

    @classmethod
    def infer_attribute_specs(
        cls, args: Iterable[Any], reference_specs: dict[str, AttributeSpec] | None = None
    ) -> dict[str, AttributeSpec]:
        """Return how each argument in some dictionaries becomes a column, by the argument's key.

        Args:
            args: dictionaries; everything else is skipped.
            reference_specs: descriptions to take where they know the key.
        """
        known = {spec.raw_name: spec for spec in (reference_specs or {}).values() if spec.raw_name != "name"}
        specs: dict[str, AttributeSpec] = {}
        for each in args:
            for key, value in each.items() if isinstance(each, dict) else ():
                if key not in specs:
                    specs[key] = known.get(key) or cls.make_attribute_spec(key, value)
        return specs

    @classmethod
    def make_attribute_spec(
        cls, raw_name: str, value: object, min_supported_version: YamlVersion = DEFAULT_PARSE_VERSION
    ) -> AttributeSpec:
        """Return how an argument becomes a column, judged by one of its values."""
        kinds: tuple[tuple[type, ValueType, object], ...] = (
            (int, ValueType.Int, 0), (float, ValueType.Float, 0.0), (str, ValueType.String, ""),
            (object, ValueType.Object, None),
        )  # fmt: skip
        value_type, default = next((its_type, default) for kind, its_type, default in kinds if isinstance(value, kind))
        return AttributeSpec(cls.transform_arg_name(raw_name), raw_name, value_type, default, min_supported_version)


ParserConfig._default = ParserConfig()
