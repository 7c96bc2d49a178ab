"""Devices without a name: AMD's products by units, memory and architecture."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["DeviceShape", "name_by_shape"]


class DeviceShape(NamedTuple):
    """The size of a device as a recording has it; 0 for an unknown figure."""

    architecture: tuple[int, int]
    """Major and minor version."""
    units: int
    """Compute units, or streaming multiprocessors."""
    memory: int
    """Bytes."""
    lanes: int
    """Threads that run in step: 64 on AMD's accelerators."""


_LANES: Final = 64
"""Threads of AMD's accelerators that run in step. Source: AMD's data sheets; devices for graphics have 32."""
_GIB: Final = 2**30
"""Bytes of a GiB. Source: IEC 80000-13."""
_TAKEN: Final = 0.02
"""Share of a device's memory that its driver keeps. Chosen: an MI300X lacks 0.01 % of 192 GiB. Doubled, no product of
the table has the memory of another one."""
_SHAPES: Final = (
    ("MI100", (9, 0), 120, 32),
    ("MI210", (9, 0), 104, 64),
    ("MI250", (9, 0), 104, 64),
    ("MI250X", (9, 0), 110, 64),
    ("MI300A", (9, 4), 228, 128),
    ("MI300X", (9, 4), 304, 192),
    ("MI308X", (9, 4), 80, 192),
    ("MI325X", (9, 4), 304, 256),
    ("MI350X", (9, 5), 256, 288),
    ("MI355X", (9, 5), 256, 288),
)
"""Product, architecture, compute units, GiB. Source: AMD's data sheets; of an MI250 and MI250X one of its two dies."""


def name_by_shape(shape: DeviceShape) -> str:
    """Return the name of the only product that has a device's shape, else the shape; empty for no device of AMD.

    ROCm leaves the names of devices empty on hosts without a table of products (``amdgpu.ids``).

    Example:
        >>> name_by_shape(DeviceShape((9, 4), 304, 206_141_652_992, 64))
        'MI300X (304 units, 192 GiB)'
        >>> name_by_shape(DeviceShape((9, 0), 104, 68_702_699_520, 64))
        'AMD device (104 units, 64 GiB)'
    """
    if shape.lanes != _LANES or shape.units <= 0 or shape.memory <= 0:
        return ""
    products = [
        product
        for product, architecture, units, gib in _SHAPES
        if architecture == shape.architecture
        and units == shape.units
        and (1 - _TAKEN) * gib * _GIB <= shape.memory <= gib * _GIB
    ]
    kind = products[0] if len(products) == 1 else "AMD device"
    return f"{kind} ({shape.units:,} units, {round(shape.memory / _GIB):,} GiB)"
