"""The name lists of HTA 0.6.1, for results that are defined by them."""

from __future__ import annotations

import re

__all__ = ["DEVICE_CATEGORIES", "HOST_CATEGORIES", "is_step", "memory_type", "shorten", "step_of"]

HOST_CATEGORIES = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function", "mtia_runtime")
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events")

_STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")
_MEMORY = re.compile(r"(hip)?Mem(cpy|set)|dma")


def is_step(name: str) -> bool:
    """Return whether HTA takes an event of this name for a profiler step.

    Example:
        >>> is_step("ProfilerStep#7"), is_step("step 7")
        (True, False)
    """
    return name.startswith("ProfilerStep")


def step_of(name: str) -> int:
    """Return N of ``ProfilerStep#N``, -1 of other names.

    Example:
        >>> step_of("ProfilerStep#7")
        7
    """
    match = _STEP.match(name)
    return int(match[1]) if match else -1


def memory_type(name: str) -> str:
    """Return the kind of copy or set that HTA sums up bandwidths by.

    Example:
        >>> memory_type("Memcpy DtoH (Device -> Pinned)"), memory_type("Memset (Device)")
        ('Memcpy DtoH', 'Memset')
    """
    if name.startswith("Memset"):
        return "Memset"
    return name[:11] if name.startswith("Memcpy") else "Memcpy Unknown"


def shorten(name: str) -> str:
    """Return a kernel's name without template arguments, parameters and return type; copies and sets stay as they are.

    Example:
        >>> shorten("void at::native::fill<float>(float*, int)")
        'at::native::fill'
    """
    if _MEMORY.match(name) or ("<" not in name and "(" not in name):
        return name
    kept = ""
    for letter in name.replace("->", ""):
        if letter in ">)":  # back to where the bracket was opened; a name that opens none loses all before
            kept = kept[: max(0, kept.rfind("<" if letter == ">" else "("))]
        else:
            kept += letter
    return kept.split(" ")[-1]
