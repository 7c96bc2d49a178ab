"""Categories of events as trace files name them: device work, calls, host events, annotations."""

from __future__ import annotations

__all__ = [
    "COUNTER_RANGE",
    "DEVICE_ANNOTATION",
    "DEVICE_CATEGORIES",
    "FRAME",
    "HOST_CATEGORIES",
    "RUNTIME_CATEGORIES",
]

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"})
"""Categories whose events are work on a device stream."""


RUNTIME_CATEGORIES = frozenset({
    "cuda_runtime", "cuda_driver", "mtia_runtime", "xpu_runtime", "xpu_driver",
    "privateuse1_runtime", "privateuse1_driver", "glow_runtime",
})  # fmt: skip
"""Categories whose events are runtime or driver calls on a host thread."""


FRAME = "python_function"
"""The category of calls of Python functions."""

HOST_CATEGORIES = RUNTIME_CATEGORIES | {"cpu_op", "user_annotation", "hpu_op", FRAME}
"""Categories whose events run on host threads and nest."""


COUNTER_RANGE = "cuda_profiler_range"
"""The category of CUPTI's profiler ranges: one per kernel, with the kernel's hardware counters as arguments."""

DEVICE_ANNOTATION = "gpu_user_annotation"
"""The category of user annotations on a stream: each covers the device work launched under the annotation."""
