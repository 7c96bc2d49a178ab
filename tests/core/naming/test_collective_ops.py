from __future__ import annotations

import pytest

from htagraph.core.naming.collective_ops import collective_op, is_collective_call, transfer_direction
from htagraph.core.naming.kinds_by_name import DEFAULT_NAMING


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)", "all_reduce"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_bf16", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL", "all_gather"),
        ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
        ("ncclDevKernel_SendRecv", "send_recv"),
        ("ncclKernel_Reduce_RING_LL_Sum_float", "reduce"),
        ("void deep_ep::intranode::dispatch<4>", "all_to_all"),
        ("rcclGenericKernel<1, false>", ""),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("wait", ""),
    ],
)
def test_a_kernel_or_argument_names_its_collective(name: str, op: str) -> None:
    assert collective_op(name) == op


@pytest.mark.parametrize("name", ["aten::gather", "aten::scatter", "aten::broadcast_tensors", "sum_reduce"])
def test_operators_without_a_librarys_prefix_communicate_nothing(name: str) -> None:
    assert collective_op(name)
    assert not collective_op(name, host=True)


@pytest.mark.parametrize("prefix", ["nccl:", "rccl:", "gloo:", "c10d::"])
def test_operators_behind_a_librarys_prefix_communicate(prefix: str) -> None:
    assert collective_op(f"{prefix}all_reduce", host=True) == "all_reduce"


def test_users_may_add_the_prefix_of_their_library() -> None:
    naming = DEFAULT_NAMING.extend(host_communication="^acme:")
    assert collective_op("acme:all_reduce", naming, host=True) == "all_reduce"
    assert not collective_op("acme:all_reduce", host=True)


@pytest.mark.parametrize(
    ("name", "direction"),
    [("nccl:send 0->1", 1), ("nccl:recv 0<-1", -1), ("c10d::send", 1), ("c10d::recv_", -1), ("isend", 1), ("irecv", -1),
     ("ncclDevKernel_SendRecv", 0), ("nccl:all_reduce", 0), ("sender", 0)],
)  # fmt: skip
def test_a_send_and_a_receive_have_opposite_directions(name: str, direction: int) -> None:
    assert transfer_direction(name) == direction


def test_collectives_are_enqueued_by_operators_of_c10d() -> None:
    calls = ["c10d::allreduce_", "nccl:all_reduce", "aten::mm"]
    assert [is_collective_call(name) for name in calls] == [True, False, False]
