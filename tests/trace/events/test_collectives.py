from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.events import CollectiveArgs, CpuOp, Kernel, MtiaCcpEvent, parse_event
from tests.trace.events.made import event


@given(start=st.integers(0, 99), stride=st.integers(1, 9), size=st.integers(31, 200), given_start=st.booleans())
def test_truncated_ranks_are_rebuilt(*, start: int, stride: int, size: int, given_start: bool) -> None:
    ranks = [start + stride * i for i in range(size)]
    text = f"[{', '.join(map(str, ranks[:29]))}, ..., {ranks[-1]}]"
    known = {"Global rank start": start, "Global rank stride": stride} if given_start else {}
    parsed = parse_event(event("cpu_op", {"Process Group Ranks": text, "Group size": size, **known}))
    assert isinstance(parsed, CpuOp)
    assert parsed.args.process_group_ranks == text
    assert parsed.args.ranks == ranks


@pytest.mark.parametrize(
    ("category", "model"), [("cpu_op", CpuOp), ("kernel", Kernel), ("mtia_ccp_events", MtiaCcpEvent)]
)
def test_operators_and_kernels_have_the_same_arguments_of_collectives(category: str, model: type) -> None:
    written = {"Collective name": "allreduce", "Group size": 2, "Process Group Name": "0", "Seq": 4, "dtype": "Half"}
    parsed = parse_event(event(category, written))
    assert isinstance(parsed, model)
    assert isinstance(parsed.args, CollectiveArgs)
    args = parsed.args
    assert (args.collective_name, args.group_size, args.process_group_name, args.seq, args.dtype) == (
        "allreduce", 2, "0", 4, "Half",
    )  # fmt: skip


def test_without_any_hint_the_ranks_of_a_group_are_unknown() -> None:
    parsed = parse_event(event("kernel", {"Collective name": "allreduce", "Group size": 4}))
    assert isinstance(parsed, Kernel)
    assert parsed.args.ranks is None
