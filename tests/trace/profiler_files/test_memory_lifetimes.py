from __future__ import annotations

from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.profiler_files.memory_lifetimes import lifetimes

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
