"""Communication activities as members: their operation, group, size and ids, with and without arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.build.members import members_of
from htagraph.naming import collective_op, transfer_direction
from htagraph.simulate import Job, simulate


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*)", "reduce_scatter"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "all_gather"),
        ("ncclDevKernel_SendRecv(ncclDevComm*)", "send_recv"),
        ("ncclDevKernel_Broadcast_RING_LL(ncclDevComm*)", "broadcast"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevComm*)", "reduce"),
        ("ncclDevKernel_Generic(ncclDevComm*)", ""),
        ("void vllm::cross_device_reduce_2stage<__half, 2>(vllm::RankData*)", "all_reduce"),
        ("all_to_allv", "all_to_all"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("send", "send_recv"),
        ("recv", "send_recv"),
        ("nccl:recv 0<-1", "send_recv"),
        ("wait", ""),
    ],
)
def test_what_names_stand_for(name: str, op: str) -> None:
    assert collective_op(name) == op


@pytest.mark.parametrize(
    ("name", "way"), [("send", 1), ("nccl:recv 0<-1", -1), ("ncclDevKernel_SendRecv", 0), ("sender", 0)]
)
def test_which_way_a_transfer_goes(name: str, way: int) -> None:
    assert transfer_direction(name) == way


@pytest.mark.parametrize("era", ["2026", "2024", "2024-03"])
def test_arguments_tell_group_size_and_bytes(era: str, tmp_path: Path) -> None:
    done = simulate(Job(ranks=4, tp=2, steps=1, data_strategy="fsdp", era=era))
    graph = hg.load(dict(enumerate(done.write(tmp_path))))
    members = members_of(graph.activities, graph.names)
    truth = {(each.rank, each.event): one for one in done.truth.collectives for each in one.members}
    of_group: dict[int, set[tuple[int, ...]]] = {}
    for i, row in enumerate(members.activity.tolist()):
        one = truth[int(graph.activities.rank[row]), int(graph.activities.event[row])]
        assert members.ops[members.op[i]] == one.kind
        assert members.bytes[i] == one.bytes
        assert members.group_size[members.group[i]] == len(one.ranks)
        of_group.setdefault(int(members.group[i]), set()).add(one.ranks)
    assert all(len(ranks) == 1 for ranks in of_group.values())
    assert ((members.seq >= 0) == (era == "2026")).all()
    assert ((members.comms_id > 0) == (era == "2026")).all()


def test_sends_and_receives_are_told_apart_without_arguments(tmp_path: Path) -> None:
    done = simulate(Job(ranks=2, parallelism="pipeline", steps=1, group_args=False))
    graph = hg.load(dict(enumerate(done.write(tmp_path))))
    members = members_of(graph.activities, graph.names)
    assert {members.ops[code] for code in members.op} == {"send_recv"}
    assert (members.way == 1).sum() == (members.way == -1).sum() == len(members) / 2
    assert (members.group == -1).all()


def test_members_come_by_rank_and_start() -> None:
    graph = hg.load("data/demo")
    members = members_of(graph.activities, graph.names)
    assert (np.lexsort((members.start, members.rank)) == np.arange(len(members))).all()
    assert len(members) == 24
