"""The writer of `.pftrace`, against Google's library and facts of PyTorch's own writer."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from htagraph.simulate import Job, simulate
from htagraph.simulate.next_json import Dialect
from htagraph.simulate.next_pftrace import as_pftrace, message
from tests.reach import SHARED

pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
NEXT = SHARED.parent / "next_profiler"


def written(job: Job, dialect: Dialect | None = None) -> tuple[dict[str, Any], list[Any]]:
    trace = json.loads(simulate(job).text(0))
    return trace, list(pb.Trace.FromString(as_pftrace(trace, dialect)).packet)


def test_every_event_of_the_host_and_of_devices_is_written() -> None:
    trace, packets = written(
        Job(ranks=1, steps=2, layers=2, cuda_graph="forward"), Dialect(samples=[("SM", 0, 1, 0.5)])
    )
    on_device = [each for each in trace["traceEvents"] if each.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    stages = [each.gpu_render_stage_event for each in packets if each.HasField("gpu_render_stage_event")]
    assert len(stages) >= len(on_device) > 10
    assert sum(len(stage.event_wait_ids) for stage in stages) > 5
    kinds = [each.track_event.type for each in packets if each.HasField("track_event")]
    assert kinds.count(1) == kinds.count(2) > 50
    (sample,) = [each.gpu_counter_event for each in packets if each.HasField("gpu_counter_event")]
    assert (sample.counters[0].double_value, sample.counter_descriptor.specs[0].name) == (0.5, "SM")


def test_lanes_are_hardware_queues() -> None:
    _, packets = written(Job(ranks=1, steps=2, layers=2, cuda_graph="forward"), Dialect(lanes=2))
    queues = {each.gpu_render_stage_event.hw_queue_iid for each in packets}
    named = {each.name for packet in packets for each in packet.interned_data.gpu_specifications}
    assert {"[900] stream 900", "[901] stream 901"} <= named
    assert len(queues) > 2


@pytest.mark.skipif(not NEXT.is_dir(), reason="needs files of PyTorch's next backend")
def test_fields_are_those_that_pytorch_writes() -> None:
    def shapes(packets: Any) -> set[tuple[str, ...]]:
        return {
            tuple(sorted(field.name for field, _ in part.ListFields()))
            for packet in packets
            for part in (packet, packet.gpu_render_stage_event.launch, packet.clock_snapshot)
            if not packet.HasField("interned_data")
        }

    theirs = pb.Trace.FromString(gzip.decompress((NEXT / "demo_pftrace" / "rank-0.pftrace").read_bytes())).packet
    _, ours = written(Job(ranks=1, steps=2, layers=2))
    assert shapes(theirs) <= shapes(ours) | {("args", "grid_size", "workgroup_size")}


def test_numbers_of_any_size() -> None:
    assert message((4, -1)).hex() == "20ffffffffffffffffff01"
    assert message((5, 0.5)).hex() == "29000000000000e03f"
