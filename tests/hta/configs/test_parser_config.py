"""ParserConfig: which arguments, in which order; that the default is shared and copies are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from htagraph.hta.common.trace import Trace
from htagraph.hta.configs.config import ValueType
from htagraph.hta.configs.parser_config import AttributeSpec, ParserConfig, parse_event_args_yaml, v1_0_0
from tests.reach import DATA

GRID = AttributeSpec("grid", "grid", ValueType.Object, "[]")


@pytest.fixture(autouse=True)
def the_default_comes_back() -> Iterator[None]:
    before = ParserConfig.get_default_cfg()
    yield
    ParserConfig.set_default_cfg(before)


def names(config: ParserConfig) -> list[str]:
    return [spec.name for spec in config.get_args()]


def test_arguments_are_added_once() -> None:
    config = ParserConfig(ParserConfig.get_minimum_args())
    config.add_args([GRID, GRID, *ParserConfig.ARGS_MINIMUM])
    assert names(config) == ["stream", "correlation", "grid"]
    config.set_args([GRID])
    assert names(config) == ["grid"]


def test_a_copy_of_the_default_changes_nothing_until_it_is_set() -> None:
    config = ParserConfig.get_default_cfg()
    config.add_args([GRID])
    assert "grid" not in names(ParserConfig.get_default_cfg())
    ParserConfig.set_default_cfg(config)
    config.add_args([GRID._replace(name="other")])
    assert names(ParserConfig.get_default_cfg())[-1] == "grid"
    assert names(Trace(trace_dir=str(DATA / "demo")).parser_config)[-1] == "grid"


def test_groups_are_not_changed_by_configurations_made_of_them() -> None:
    ParserConfig(ParserConfig.ARGS_MINIMUM).add_args([GRID])
    assert [spec.name for spec in ParserConfig.ARGS_MINIMUM] == ["stream", "correlation"]


def test_selected_columns_are_taken_in_their_order() -> None:
    """HTA ignores them in the constructor (D20)."""
    config = ParserConfig(selected_arg_keys=["correlation", "stream"])
    assert names(config) == ["correlation", "stream"]
    assert names(config.set_args_selector(["stream"])) == ["stream"]
    with pytest.raises(KeyError, match="selected_arg_keys names nothing"):
        ParserConfig(selected_arg_keys=["nothing"]).get_args()


def test_the_fingerprint_is_that_of_the_columns() -> None:
    one, other = ParserConfig(), ParserConfig(list(reversed(ParserConfig.ARGS_DEFAULT)))
    assert one.get_fingerprint_key() == other.get_fingerprint_key()
    assert one.set_parse_all_args(True).get_fingerprint_key() != other.get_fingerprint_key()


@pytest.mark.parametrize(
    ("raw", "column"),
    [("est. achieved occupancy %", "est_achieved_occupancy"), ("Ev Idx", "ev_idx"), ("name", "arg_name"),
     ("memory bandwidth (GB/s)", "memory_bandwidth"), ("a-b/c", "a_b_c")],
)  # fmt: skip
def test_columns_of_unknown_arguments(raw: str, column: str) -> None:
    assert ParserConfig.transform_arg_name(raw) == column


def test_descriptions_are_inferred_from_values() -> None:
    specs = ParserConfig.infer_attribute_specs(
        [{"stream": 7, "A b": 1.5}, None, {"c": "x", "d": [1]}], ParserConfig.get_all_available_args()
    )
    assert {key: (spec.name, spec.value_type) for key, spec in specs.items()} == {
        "stream": ("stream", ValueType.Int), "A b": ("a_b", ValueType.Float), "c": ("c", ValueType.String),
        "d": ("d", ValueType.Object),
    }  # fmt: skip


def test_communication_arguments_can_be_enabled() -> None:
    config = ParserConfig.enable_communication_args(ParserConfig(ParserConfig.get_minimum_args()))
    assert names(config) == [spec.name for spec in (*ParserConfig.ARGS_MINIMUM, *ParserConfig.ARGS_COMMUNICATION)]


GROUPS = {
    "ARGS_MINIMUM": ["stream", "correlation"],
    "ARGS_BANDWIDTH": ["bytes", "memory_bw_gbps"],
    "ARGS_SYNC": ["wait_on_stream", "wait_on_cuda_event_record_corr_id"],
    "ARGS_INPUT_SHAPE": ["input_dims", "input_type", "input_strides"],
    "ARGS_INFO": ["labels", "name", "sort_index"],
    "ARGS_TRITON_KERNELS": ["kernel_backend", "kernel_hash"],
    "ARGS_COMMUNICATION": [
        "collective_name", "in_msg_nelems", "out_msg_nelems", "msg_dtype", "group_size", "process_rank",
        "in_split_size", "out_split_size",
    ],
}  # fmt: skip


def test_groups_are_htas() -> None:
    groups = parse_event_args_yaml(v1_0_0)
    for name, columns in GROUPS.items():
        assert [spec.name for spec in getattr(groups, name)] == columns
    assert len(groups.ARGS_DEFAULT) == 20
    assert len(groups.ARGS_COMPLETE) == 47
    assert len(groups.AVAILABLE_ARGS) == 52


def test_columns_and_keys_are_unique() -> None:
    known = parse_event_args_yaml().AVAILABLE_ARGS.values()
    assert len({spec.name for spec in known}) == len({spec.raw_name for spec in known}) == len(known)
