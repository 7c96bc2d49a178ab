r"""What the names of events mean. The only place with literal names and patterns of events.

`Naming` holds the patterns that decide an event's kind; extend them for in-house kernels with `Naming.extend`:

    graph = hg.load("traces/", naming=DEFAULT_NAMING.extend(communication=r"acme_ring_\w+"))
"""

from htagraph.core.naming.categories import (
    COUNTER_RANGE,
    DEVICE_ANNOTATION,
    DEVICE_CATEGORIES,
    FRAME,
    HOST_CATEGORIES,
    RUNTIME_CATEGORIES,
)
from htagraph.core.naming.collective_ops import collective_op, is_collective_call, transfer_direction
from htagraph.core.naming.costs import (
    element_bytes,
    flop_formula,
    flop_per_count,
    is_complex,
    is_dram_bytes,
    is_dram_part,
    is_tf32_kernel,
    numbers_per_element,
)
from htagraph.core.naming.display import BETWEEN_OPERATORS, short_name, stable_name
from htagraph.core.naming.kinds_by_name import DEFAULT_NAMING, Naming, activity_kind
from htagraph.core.naming.patterns import exact_glob, names_like, names_that
from htagraph.core.naming.regions import (
    ANY_STEP,
    LINEAR,
    has_loader_workers,
    inference_phase,
    is_autograd_node,
    is_backward,
    is_compiled_region,
    is_compiling,
    is_data_loader,
    is_gradient_ready,
    is_module_frame,
    is_source_frame,
    is_wait,
    operator_of_frame,
    step_number,
)
from htagraph.core.naming.work import (
    copy_kind,
    is_graph_launch,
    is_kernel_launch,
    is_memory_call,
    is_poll,
    is_triton_kernel,
)

__all__ = [
    "ANY_STEP",
    "BETWEEN_OPERATORS",
    "COUNTER_RANGE",
    "DEFAULT_NAMING",
    "DEVICE_ANNOTATION",
    "DEVICE_CATEGORIES",
    "FRAME",
    "HOST_CATEGORIES",
    "LINEAR",
    "RUNTIME_CATEGORIES",
    "Naming",
    "activity_kind",
    "collective_op",
    "copy_kind",
    "element_bytes",
    "exact_glob",
    "flop_formula",
    "flop_per_count",
    "has_loader_workers",
    "inference_phase",
    "is_autograd_node",
    "is_backward",
    "is_collective_call",
    "is_compiled_region",
    "is_compiling",
    "is_complex",
    "is_data_loader",
    "is_dram_bytes",
    "is_dram_part",
    "is_gradient_ready",
    "is_graph_launch",
    "is_kernel_launch",
    "is_memory_call",
    "is_module_frame",
    "is_poll",
    "is_source_frame",
    "is_tf32_kernel",
    "is_triton_kernel",
    "is_wait",
    "names_like",
    "names_that",
    "numbers_per_element",
    "operator_of_frame",
    "short_name",
    "stable_name",
    "step_number",
    "transfer_direction",
]
