"""Communication activities as members: their operation, group, size and ids, with and without arguments."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import collective_op, transfer_direction
from htagraph.graph.construction.matching.members import members_of, only_peer, values
from htagraph.simulate import Job, simulate
from tests.graph.construction.matching.test_match import matched, score, truth_of
from tests.host_jobs import host_job, tensor_args, transfer
from tests.strategies import OTHER, Json, annotation, kernel, launch, load, op


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


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2026", "2024", "2024-03"])
def test_arguments_tell_group_size_and_bytes(era: str, tmp_path: Path) -> None:
    done = simulate(Job(ranks=4, tp=2, steps=1, data_strategy="fsdp", era=era))
    graph = hg.load(dict(enumerate(done.write(tmp_path, level=1, truth=False))))
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


@pytest.mark.slow
def test_sends_and_receives_are_told_apart_without_arguments(tmp_path: Path) -> None:
    done = simulate(Job(ranks=2, parallelism="pipeline", steps=1, group_args=False))
    graph = hg.load(dict(enumerate(done.write(tmp_path, level=1, truth=False))))
    members = members_of(graph.activities, graph.names)
    assert {members.ops[code] for code in members.op} == {"send_recv"}
    assert (members.way == 1).sum() == (members.way == -1).sum() == len(members) / 2
    assert (members.group == -1).all()


def test_members_come_by_rank_and_start() -> None:
    graph = hg.load("data/demo")
    members = members_of(graph.activities, graph.names)
    assert (np.lexsort((members.start, members.rank)) == np.arange(len(members))).all()
    assert len(members) == 24


def text(path: Path) -> str:
    """Return what a file holds, packed or not."""
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def rewrite(path: Path, what: str) -> None:
    """Put something else into a file."""
    path.write_bytes(gzip.compress(what.encode()) if path.suffix == ".gz" else what.encode())


@pytest.mark.slow
@pytest.mark.parametrize("era", ["2024", "2024-03"])
def test_sizes_that_differ_between_ranks_do_not_tell_collectives_apart(era: str, tmp_path: Path) -> None:
    """Uneven all-to-alls of old traces: every rank writes its own size, and only order is left."""
    done = simulate(Job(ranks=4, steps=2, all_to_all=True, era=era))
    paths = done.write(tmp_path, level=1, truth=False)
    size = re.compile(r'("Collective name": "all_to_allv", "In msg nelems": )\d+(, "Out msg nelems": )\d+')
    for rank, path in enumerate(paths):
        raw = text(path)
        parts = size.split(raw)
        assert len(parts) > 3
        uneven = [
            part + ["", str((rank + 3) * i), str(7 * i)][i % 3] if i < len(parts) - 1 else part
            for i, part in enumerate(parts)
        ]
        rewrite(path, "".join(uneven))
    graph = hg.load(dict(enumerate(paths)))
    found = matched(graph)
    wrong, linked, possible = score(truth_of(done, graph, found), found.collective)
    assert (wrong, linked) == (0, possible)
    assert "all_to_all" in found.op
    members = found.members
    reduces = members.op == members.ops.index("all_reduce")
    assert len(np.unique(members.label[reduces])) == len(np.unique(members.bytes[reduces]))
    assert len(np.unique(members.label[members.op == members.ops.index("all_to_all")])) == 1


@pytest.mark.slow
def test_batched_sends_and_receives_go_by_the_calls_before_their_launch(tmp_path: Path) -> None:
    """batch_isend_irecv: calls name the peer and end; later a launch outside of them starts a kernel without args."""
    done = simulate(
        Job(ranks=4, parallelism="pipeline", steps=1, era="2024", clock_offsets_us=(0.0, 900.0, -50.0, 7.0))
    )
    paths = done.write(tmp_path, level=1, truth=False)
    for path in paths:
        whole = json.loads(text(path))
        for event in whole["traceEvents"]:
            args, name = event.get("args", {}), event["name"]
            if event.get("cat") in ("kernel", "cuda_runtime"):
                args.pop("External id", None)
            if "SendRecv" in name:
                event["args"] = {key: args[key] for key in ("device", "context", "stream", "correlation")}
            elif name in ("c10d::send", "c10d::recv_"):
                event["dur"] = 7.0
            elif name == "record_param_comms":
                event["dur"] = 3.0
            elif name in ("nccl:send", "nccl:recv"):
                event["name"] = "nccl:coalesced"
        rewrite(path, json.dumps(whole))
    graph = hg.load(dict(enumerate(paths)))
    found = matched(graph)
    wrong, linked, possible = score(truth_of(done, graph, found), found.collective)
    assert (wrong, linked) == (0, possible)
    assert set(found.group) == {"0↔1", "1↔2", "2↔3"}
    assert set(found.op) == {"send_recv"}
    assert (found.members.way == 0).all()


def test_calls_on_a_host_say_size_root_and_the_only_group() -> None:
    def rank(late: float) -> list[Json]:
        called = op("c10d::broadcast_", late, 5, **tensor_args(100, 1, 0, "True", -1))
        done = annotation("gloo:broadcast", late + 30, 50, OTHER)
        return [called, done | {"args": {"Input Dims": [[100]], "Input type": ["float"]}}]

    graph = host_job({0: rank(0), 1: rank(10)}, groups=[[0, 1, 2]])
    members = members_of(graph.activities, graph.names, traces=graph.traces)
    assert members.bytes.tolist() == [400, 400]
    assert members.root.tolist() == [1, 1]
    assert members.groups == ("0 default_pg [0, 1, 2]",)
    assert members.group_size.tolist() == [3]
    assert (members.start - members.asked).tolist() == [30_000, 30_000]


def test_sends_on_a_host_begin_with_their_operator_and_end_apart() -> None:
    graph = host_job({0: transfer("send", 1, 100, 110), 1: transfer("recv", 0, 50, 900), 2: []}, groups=[[0, 1, 2]])
    members = members_of(graph.activities, graph.names, traces=graph.traces)
    assert members.way.tolist() == [1, -1]
    assert members.groups == ("0→1",)
    assert not members.barrier.any(), "no end of one says anything about the other's"
    assert members.host_transfer.all()
    assert (graph.activities.start[members.activity] - members.start).tolist() == [100, 100]


def batch(*peers: int) -> list[Json]:
    """Return sends of rank 0 to peers, recorded one by one, and the kernel that runs them all."""
    sends = [op("record_param_comms", 10.0 * i, 5, **{"Src Rank": 0, "Dst Rank": peer}) for i, peer in enumerate(peers)]
    return [*sends, launch(100, 5, 1), kernel("ncclDevKernel_SendRecv", 120, 50, 1)]


@pytest.mark.parametrize(("peers", "expected"), [((3,), 3), ((3, 3), 3), ((3, 2), -1), ((), -1)])
def test_a_batch_has_a_peer_if_it_is_the_only_one(peers: tuple[int, ...], expected: int) -> None:
    acts = load(batch(*peers)).activities
    rows = np.flatnonzero(acts.kind == ActivityKind.COMMUNICATION)
    assert only_peer(acts, rows, np.array([-1]), np.array([True])).tolist() == [expected]


def test_values_of_an_argument_are_those_of_the_rows_that_have_it() -> None:
    acts = load(batch(3, 2)).activities
    targets = values(acts, "dst_rank", np.arange(-1, 4)).tolist()
    assert sorted(targets) == [-1, -1, -1, 2, 3]
    assert values(acts, "no_such_column", np.array([0, 1]), missing=7).tolist() == [7, 7]
