"""Fields of messages, as Google's library reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.export.proto_fields import field, message, varint

pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@given(st.integers(0, 2**64 - 1), st.text(), st.integers(0, 2**31 - 1))
def test_a_message_is_read_back(uuid: int, name: str, rank: int) -> None:
    data = message((1, uuid), (2, name), (12, rank), (8, message((6, "GB/s"))))
    read = pb.TrackDescriptor.FromString(data)
    assert (read.uuid, read.name.encode()) == (uuid, name.encode("utf-8", "replace"))
    assert (read.sibling_order_rank, read.counter.unit_name) == (rank, "GB/s")
    assert data.startswith(field(1, uuid))
    assert len(varint(uuid)) == max(1, -(-uuid.bit_length() // 7))


def test_names_that_differ_behind_a_nul_stay_apart() -> None:
    assert field(2, "a\0b") != field(2, "a\0c") != field(2, "a")
    assert b"\0" not in field(2, "a\0b")
