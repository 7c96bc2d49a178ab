"""Memory snapshots: real ones reconcile, made-up ones give what is obvious, and a pickle cannot run anything."""

from __future__ import annotations

import gzip
import os
import pickle
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.trace.profiler_files import memory_snapshot
from htagraph.trace.profiler_files.files import kind_of
from htagraph.trace.profiler_files.memory_snapshot import lifetimes
from tests.command_line import one_line_of_error
from tests.reach import SHARED

REAL = sorted((SHARED / "memory_snapshot").glob("*.pickle.gz"))
FRAMES = [
    {"filename": "??", "line": 0, "name": "torch::unwind::unwind()"},
    {"filename": "RegisterCUDA.cpp", "line": 0, "name": "at::_ops::mul_Tensor::call(at::Tensor const&)"},
    {"filename": "/env/site-packages/torch/nn/functional.py", "line": 7, "name": "mul"},
    {"filename": "model.py", "line": 3, "name": "forward"},
]


def block(address: int, size: int, state: str = "active_allocated", frames: Any = ()) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": list(frames)}


def segment(blocks: list[dict[str, Any]], device: int = 0) -> dict[str, Any]:
    used = sum(each["size"] for each in blocks if each["state"] == "active_allocated")
    return {
        "device": device, "address": blocks[0]["address"] if blocks else 0, "stream": 0, "segment_type": "small",
        "total_size": sum(each["size"] for each in blocks), "allocated_size": used, "active_size": used,
        "blocks": blocks,
    }  # fmt: skip


def event(action: str, address: int, size: int, time: int = 0, frames: Any = ()) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "time_us": time, "stream": 0, "frames": list(frames)}


def written(root: Any, folder: Path) -> Path:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(root))
    return path


def snapshot_of(root: Any, folder: Path) -> hg.memory.Snapshot:
    return hg.memory.read_snapshot(written(root, folder))


def test_whose_memory_it_was_at_the_peak(tmp_path: Path) -> None:
    history = [
        event("alloc", 100, 10, 5, FRAMES),
        event("alloc", 200, 30, 7, FRAMES[:1]),
        event("free_requested", 100, 10, 9),
        event("free_completed", 100, 10, 9),
        event("alloc", 100, 5, 11, FRAMES),
        event("free_requested", 300, 4, 12),
    ]
    blocks = [block(100, 5), block(200, 30), block(400, 60, frames=FRAMES), block(500, 8, "inactive")]
    made = snapshot_of({"segments": [segment(blocks)], "device_traces": [history]}, tmp_path)
    (whole,) = made.to_frame().to_dict("records")
    assert (whole["reserved_bytes"], whole["allocated_bytes"], whole["inactive_bytes"]) == (103, 95, 8)
    assert (whole["peak_bytes"], whole["peak_us"], whole["largest_free_bytes"]) == (104, 2.0, 8)
    assert made.events["allocated_bytes"].tolist() == [74, 104, 94, 94, 99, 95]
    rows = made.at_peak().to_dict("records")
    assert [(row["bytes"], row["allocations"], row["operator"], row["where"]) for row in rows] == [
        (70, 2, "mul_Tensor", "model.py:3 forward"), (30, 1, "", ""), (4, 1, "", ""),
    ]  # fmt: skip
    assert made.in_use()["bytes"].sum() == 95
    assert made.stacks[rows[0]["stack"]].splitlines()[-1] == "model.py:3 forward"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=40), st.integers(0, 30))
@settings(max_examples=60)
def test_what_is_in_use_sums_to_the_running_total(ops: list[tuple[int, int]], skipped: int) -> None:
    """A history of allocations and frees of five addresses, whose first part was forgotten as rings forget it."""
    alive: dict[int, int] = {}
    history: list[dict[str, Any]] = []
    totals: list[int] = []
    for address, size in ops:
        if address in alive:
            history.append(event("free_requested", address, alive.pop(address)))
        else:
            alive[address] = size
            history.append(event("alloc", address, size, frames=FRAMES[:1]))
        totals.append(sum(alive.values()))
    blocks = [block(address, size) for address, size in alive.items()]
    root = {"segments": [segment(blocks)], "device_traces": [history[skipped:]]}
    with tempfile.TemporaryDirectory() as folder:
        made = snapshot_of(root, Path(folder))
    assert made.events["allocated_bytes"].tolist() == totals[skipped:]
    for row, total in enumerate(totals[skipped:]):
        assert made.in_use(0, row)["bytes"].sum() == total


_ROUNDING = 512
_STEPS = st.lists(st.tuples(st.sampled_from(["use", "segment"]), st.integers(0, 5), st.integers(1, 5000)), max_size=40)


@given(_STEPS, st.integers(0, 40))
@settings(max_examples=80)
def test_in_use_and_the_peak_are_of_one_measure(steps: list[tuple[str, int, int]], skipped: int) -> None:
    """Blocks are larger than requested; the allocator holds segments that come and go beside those in use."""
    alive: dict[int, int] = {}
    held: dict[int, int] = {}
    history: list[dict[str, Any]] = []
    states: list[tuple[int, int]] = []
    for kind, number, size in steps:
        pool, grows, gives_back = (
            (alive, "alloc", "free_requested") if kind == "use" else (held, "segment_alloc", "segment_free")
        )
        if number in pool:
            history.append(event(gives_back, number, pool.pop(number)))
        else:
            pool[number] = size
            history.append(event(grows, number, size))
        states.append((sum(alive.values()), sum(held.values())))
    blocks = [{**block(number, size + -size % _ROUNDING), "requested_size": size} for number, size in alive.items()]
    used = segment(blocks)
    others = [{**segment([block(10_000, size, "inactive")]), "address": 10_000} for size in held.values()]
    with tempfile.TemporaryDirectory() as folder:
        made = snapshot_of({"segments": [used, *others], "device_traces": [history[skipped:]]}, Path(folder))
    (whole,) = made.to_frame().to_dict("records")
    kept = states[skipped:]
    if not kept:
        assert np.isnan([whole["peak_bytes"], whole["peak_reserved_bytes"], whole["peak_us"]]).all()
        assert not len(made.at_peak())
        return
    most, held_then = max(kept, key=lambda state: state[0])
    assert whole["peak_bytes"] >= whole["allocated_bytes"]
    assert whole["peak_bytes"] - whole["allocated_bytes"] == most - kept[-1][0]
    assert whole["peak_reserved_bytes"] - used["total_size"] == held_then
    assert made.at_peak()["bytes"].sum() == most


@pytest.mark.skipif(not REAL, reason="the shared traces are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_a_real_snapshot_reconciles(path: Path) -> None:
    made = _real(path)
    (whole,) = made.to_frame().to_dict("records")
    assert whole["allocated_bytes"] == made.blocks.loc[made.blocks["state"] == "active_allocated", "bytes"].sum()
    assert made.at_peak()["bytes"].sum() == made.events["allocated_bytes"].max()
    rounding = whole["allocated_bytes"] - whole["requested_bytes"]
    assert whole["peak_bytes"] == made.events["allocated_bytes"].max() + rounding
    assert whole["allocated_bytes"] <= whole["peak_bytes"] <= whole["peak_reserved_bytes"]
    assert whole["requested_bytes"] == made.in_use()["bytes"].sum() == made.events["allocated_bytes"].iloc[-1]
    assert (made.events["allocated_bytes"] >= 0).all()
    for row in np.linspace(0, len(made.events) - 1, 20).astype(int).tolist():
        assert made.in_use(event=row)["bytes"].sum() == made.events["allocated_bytes"][row]


@pytest.mark.skipif(not REAL, reason="the shared traces are not here")
def test_the_training_needs_most_for_softmax() -> None:
    made = _real(next(path for path in REAL if "training" in path.name))
    first = made.at_peak().iloc[0]
    assert (first["bytes"], first["allocations"], first["operator"]) == (6_442_450_944, 24, "exp")
    assert first["where"].endswith("nn_utils.py:6 softmax")


@cache
def _real(path: Path) -> hg.memory.Snapshot:
    return hg.memory.read_snapshot(path)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (pickle.dumps({"segments": []})[:-4], hg.TraceError, "ends early|not a readable pickle"),
        (b"", hg.DamagedTraceError, "ends early"),
        (b"{}", hg.NotATraceError, "not a readable pickle"),
        (gzip.compress(b"\x80\x04.", mtime=0)[:-6], hg.DamagedTraceError, "gzip stream is damaged"),
        (pickle.dumps([1, 2]), hg.NotATraceError, "of an unknown format"),
        (pickle.dumps(3), hg.NotATraceError, "no 'segments'"),
        (gzip.compress(pickle.dumps({"segments": print}), mtime=0), hg.NotATraceError, r"names builtins\.print"),
        (pickle.dumps({"segments": [{}]}), hg.NotATraceError, "of an unknown format"),
    ],
)
def test_what_is_no_snapshot_is_refused_in_words(
    data: bytes, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "odd.pickle"
    path.write_bytes(data)
    with pytest.raises(error, match=message):
        hg.memory.read_snapshot(path)


def test_older_snapshots_are_lists_of_segments(tmp_path: Path) -> None:
    old = {"size": 7, "state": "active_allocated", "history": [{"frames": FRAMES, "real_size": 7}]}
    made = snapshot_of([{**segment([block(0, 7)]), "blocks": [old]}], tmp_path)
    assert made.in_use()[["bytes", "operator"]].values.tolist() == [[7, "mul_Tensor"]]
    assert not len(made.at_peak())  # without a history the peak is unknown


def test_an_empty_snapshot_has_empty_tables(tmp_path: Path) -> None:
    made = snapshot_of({"segments": [], "device_traces": []}, tmp_path)
    assert len(made.to_frame()) == len(made.in_use()) == len(made.at_peak()) == 0
    assert made.devices == ()


def test_what_waits_for_another_stream_is_neither_in_use_nor_free(tmp_path: Path) -> None:
    blocks = [block(0, 512), block(512, 256, "active_pending_free")]
    row = snapshot_of({"segments": [segment(blocks)]}, tmp_path).to_frame().iloc[0]
    assert (row["allocated_bytes"], row["largest_free_bytes"]) == (512, 0)


def test_half_characters_in_names_are_replaced(tmp_path: Path) -> None:
    frames = [{"filename": "\ud83d.py", "line": 1, "name": "f\udc00"}]
    found = snapshot_of({"segments": [segment([block(0, 512, frames=frames)])]}, tmp_path)
    assert found.in_use()["where"].tolist() == ["?.py:1 f?"]


@pytest.mark.parametrize("size", [-1, 2**62, 1.5, "12", None])
def test_what_is_no_number_of_bytes_is_refused(size: Any, tmp_path: Path) -> None:
    odd = [
        {"segments": [segment([block(0, 512)]) | {"total_size": size}]},
        {"segments": [segment([block(0, 512)]) | {"blocks": [block(0, 512) | {"requested_size": size}]}]},
        {"segments": [], "device_traces": [[event("alloc", 0, 8) | {"size": size}]]},
    ]
    for root in odd:
        with pytest.raises(hg.NotATraceError, match="not a number of bytes"):
            snapshot_of(root, tmp_path)


def test_names_nested_beyond_measure_are_refused(tmp_path: Path) -> None:
    # by hand: nor can Python's pickle write so deep a list
    deep = b"]" * 100_000 + b"a" * 99_999
    start = pickle.dumps({"segments": [segment([block(0, 512, frames=[{"filename": "", "line": 0, "name": "NAME"}])])]})
    at = start.index(b"\x8c\x04NAME\x94")
    path = tmp_path / "deep.pickle"
    data = start[:at] + deep + start[at + 7 :]
    path.write_bytes(data[:2] + data[11:] if data[2:3] == b"\x95" else data)  # without the length of its frame
    with pytest.raises(hg.NotATraceError, match="list is not text"):
        hg.memory.read_snapshot(path)


def test_a_pipe_is_not_read_to_see_what_it_is(tmp_path: Path, run: Any) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert kind_of(tmp_path / "pipe") == "trace"
    one_line_of_error(run("memory", tmp_path / "pipe"), "not a regular file")


@pytest.mark.parametrize("what", ["segments", "history", "word", "frames"])
def test_a_small_file_holds_no_large_snapshot(what: str, tmp_path: Path) -> None:
    few = [event("alloc", number, 1) for number in range(50)]
    lists: Any = []
    for _ in range(40):
        lists = [lists, lists]  # as text, 2 to the power of 40 brackets
    root: Any = {
        "segments": {"segments": [segment([block(0, 512)])] * 50, "device_traces": []},
        "history": {"segments": [], "device_traces": [few] * 50},
        "word": {"segments": [segment([block(0, 512, state=lists)])]},
        "frames": {"segments": [segment([block(0, 512, frames=[{"filename": lists, "line": 0, "name": ""}])])]},
    }[what]
    with pytest.raises(hg.NotATraceError, match="of an unknown format") as error:
        snapshot_of(root, tmp_path)
    assert len(str(error.value)) < 400


def test_a_list_of_frames_that_many_events_share_is_looked_at_once(tmp_path: Path) -> None:
    class Frames(list[Any]):
        walks = 0

        def __iter__(self) -> Any:
            Frames.walks += 1
            return super().__iter__()

    stacks = memory_snapshot._Stacks()
    frames = Frames([{"filename": "a.py", "line": 1, "name": "f"}] * 3)
    assert [stacks.number(frames) for _ in range(100)] == [0] * 100
    assert Frames.walks == 1


def test_stacks_have_a_limit_of_text() -> None:
    stacks = memory_snapshot._Stacks()
    frame = {"filename": "a" * 100, "line": 1, "name": "f"}
    with patch.object(memory_snapshot, "_MAX_STACK_CHARS", 1000), pytest.raises(ValueError, match="MiB of text"):
        for count in range(9):
            stacks.number([frame] * count)


GROWS, SHRINKS = ("alloc",), ("free_requested", "free")
_EVENT = ["device", "address", "bytes", "stack", "action"]
_BLOCK = ["device", "address", "bytes", "requested_bytes", "stack"]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return events and blocks in use of a memory of two devices with three addresses each."""
    places = [(device, address) for device in (0, 1) for address in (0, 512, 1024)]
    alive = {place: (draw(st.integers(1, 9)), -1) for place in places if draw(st.booleans())}
    events = []
    for number in range(draw(st.integers(0, 10))):
        place = draw(st.sampled_from(places))
        if draw(st.booleans()) and draw(st.booleans()):
            events.append((*place, 1, 7, "snapshot"))  # neither allocates nor frees
        elif place in alive:
            events.append((*place, alive.pop(place)[0], 50 + number, draw(st.sampled_from(SHRINKS))))
        else:
            alive[place] = (draw(st.integers(1, 9)), number)
            events.append((*place, alive[place][0], number, "alloc"))
    return events, [(*place, 512, size, stack) for place, (size, stack) in alive.items()]


def expected(events: list[tuple[Any, ...]], blocks: list[tuple[Any, ...]]) -> list[tuple[int, ...]]:
    """Return every allocation by following the history event by event."""
    alive: dict[tuple[int, int], tuple[int, int, int]] = {}
    done = []
    for number, (device, address, size, stack, action) in enumerate(events):
        if action in GROWS:
            alive[device, address] = size, stack, number
        elif action in SHRINKS:
            size_then, stack_then, born = alive.pop((device, address), (size, -1, -1))
            done.append((device, address, size_then, stack_then, born, number))
    for device, address, _, requested, stack in blocks:
        size, stack_then, born = alive.pop((device, address), (requested, stack, -1))
        done.append((device, address, size, stack_then, born, len(events)))
    return sorted(done)


@given(histories())
def test_lifetimes_are_those_of_the_history_followed_event_by_event(
    made: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]],
) -> None:
    events, blocks = made
    kinds = dict.fromkeys(_EVENT[:-1], "int64") | {"action": "str"}
    table = lifetimes(
        pd.DataFrame(events, columns=_EVENT).astype(kinds),
        pd.DataFrame(blocks, columns=_BLOCK).astype("int64"), GROWS, SHRINKS,
    )  # fmt: skip
    assert sorted(table.itertuples(index=False, name=None)) == expected(events, blocks)
    assert (table["died"] > table["born"]).all()
