"""The dialect of PyTorch's CUPTI backend, against facts of that backend's own writer."""

from __future__ import annotations

import json
from typing import Any

from htagraph.simulate import Job, simulate
from htagraph.simulate.next_json import Dialect, in_next_dialect


def traces(dialect: Dialect) -> tuple[dict[str, Any], dict[str, Any]]:
    text = simulate(Job(ranks=1, steps=2, layers=2, cuda_graph="forward")).text(0)
    return json.loads(text), in_next_dialect(json.loads(text), dialect)


def test_copies_say_by_arguments_what_names_said() -> None:
    before, after = traces(Dialect())
    for one, other in zip(before["traceEvents"], after["traceEvents"], strict=False):
        if one.get("cat") == "gpu_memcpy":
            assert other["name"] == "Memcpy"
            assert f"Memcpy {other['args']['copy kind']} (" in one["name"]
            assert other["args"]["src kind"] in one["name"].lower()
        if one.get("cat") == "gpu_memset":
            assert (other["name"], other["args"]["memory kind"]) == ("Memset", 3)


def test_each_node_but_the_first_depends_on_one() -> None:
    before, after = traces(Dialect())
    nodes = [event for event in before["traceEvents"] if event.get("args", {}).get("graph node id")]
    launches = {event["args"]["correlation"] for event in nodes}
    flows = after["traceEvents"][len(before["traceEvents"]) :]
    assert len(nodes) > len(launches) > 1
    assert len(flows) == 2 * (len(nodes) - len(launches))  # all nodes are on one stream
    assert min(flow["id"] for flow in flows) == 1 << 40


def test_lanes_keep_the_stream() -> None:
    _, after = traces(Dialect(lanes=2))
    moved = [event for event in after["traceEvents"] if "original_stream" in event.get("args", {})]
    assert {event["tid"] for event in moved} == {event["args"]["stream"] for event in moved} == {900, 901}
    assert {event["args"]["original_stream"] for event in moved} == {7}


def test_samples_are_counters() -> None:
    _, after = traces(Dialect(samples=[("Power (W)", 0, 12.5, 340.0)]))
    assert after["traceEvents"][-1] == {
        "ph": "C", "name": "Power (W)", "pid": "GPU 0 Counters", "ts": 12.5, "args": {"": 340.0},
    }  # fmt: skip


def test_a_job_of_that_backend_has_samples_of_how_busy_its_devices_are() -> None:
    done = simulate(Job(ranks=2, steps=2, layers=2, backend="cupti"))
    events = json.loads(done.text(1))["traceEvents"]
    busy = sum(event["dur"] for event in events if event.get("cat") == "kernel" and event["args"]["stream"] == 7)
    samples = [event for event in events if event["ph"] == "C" and event["name"] == "SM Active (%)"]
    assert {event["pid"] for event in samples} == {"GPU 1 Counters"}
    total = sum(event["args"][""] for event in samples)  # percent of 100 µs are µs
    every = [(event["ts"], event["ts"] + event["dur"]) for event in events if event.get("cat") == "kernel"]
    longest = max(end for _, end in every) - min(start for start, _ in every)
    assert busy <= total + 0.1 <= longest + 0.2
    assert [event.get("ts") for event in events[:-1] if event["ph"] == "X"] == [
        event.get("ts")
        for event in json.loads(simulate(Job(ranks=2, steps=2, layers=2)).text(1))["traceEvents"]
        if event["ph"] == "X"
    ]
