"""Memory events by hand."""

from __future__ import annotations

from typing import Any

from tests.strategies import MAIN, PID, Json


def allocation(start: float, size: int, address: int = 1, device: int = 0, tid: int = MAIN, **args: Any) -> Json:
    """Return a ``[memory]`` event; device -1 is the host."""
    kind = {"Device Type": 0 if device < 0 else 1, "Device Id": device, "Addr": address, "Bytes": size}
    return {
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PID, "tid": tid, "ts": start,
        "args": kind | args,
    }  # fmt: skip
