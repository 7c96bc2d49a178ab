"""The known arguments and HTA's groups of them, as HTA 0.6.1 prints them."""

from __future__ import annotations

from htagraph.hta.configs.event_args_yaml_parser import parse_event_args_yaml, v1_0_0

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
