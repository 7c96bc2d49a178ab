"""HTA's import paths: write `htagraph.hta` for `hta`, and a notebook made for Holistic Trace Analysis runs on htagraph.

`trace_analysis`, `trace_diff`, `memory_analysis`, `common`, `configs`, `analyzers` and `utils` are HTA's own names;
`shapes` gives native results HTA's columns, index, units and rounding. A module of HTA whose names lie in another file
here is no file, but a row of `MODULES`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MODULES"]

MODULES: dict[str, str | dict[str, int]] = {
    "analyzers.breakdown_analysis": "shapes.breakdowns",
    "analyzers.communication_analysis": "shapes.breakdowns",
    "analyzers.cuda_kernel_analysis": "shapes.launches",
    "analyzers.cupti_counter_analysis": "shapes.counters",
    "analyzers.straggler": "shapes.launches",
    "analyzers.straggler_analysis": "shapes.launches",
    "analyzers.timeline": "common.timeline",
    "analyzers.trace_counters": "shapes.counters",
    "common.constants": {"CUDA_MAX_LAUNCH_QUEUE_PER_STREAM": 1024, "MAX_EVENT_DURATION_US": 7 * 24 * 3600 * 10**6},
    "common.execution_trace": "common.trace",
    "common.trace_call_stack": "common.trace_call_graph",
    "common.trace_df": "common.trace_filter",
    "common.trace_file": "common.trace",
    "common.trace_parser": "common.trace",
    "common.trace_stack_filter": "common.trace_filter",
    "common.types": "common.trace_symbol_table",
    "configs.default_event_args": "configs.parser_config",
    "configs.default_values": "configs.config",
    "configs.env_options": "configs.config",
    "configs.event_args_yaml_parser": "configs.parser_config",
    "memory_analysis": "shapes.figures",
    "utils.checker": "utils.utils",
    "utils.test_utils": "utils.utils",
    "utils.validate_trace": "common.trace",
}
"""HTA's modules that are no files here: where the names of each are, under `htagraph.hta`, or its names and values."""


class _Rows(MetaPathFinder, Loader):
    """Finds the modules that are rows of `MODULES`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a module that is a row, None of others."""
        row = fullname.removeprefix(f"{__name__}.")
        return ModuleSpec(fullname, self) if row != fullname and row in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        """Give a module its names, and whatever else lies where they are."""
        row = MODULES[module.__name__.removeprefix(f"{__name__}.")]
        names = vars(import_module(f"{__name__}.{row}")) if isinstance(row, str) else row
        module.__dict__.update((name, value) for name, value in names.items() if not name.startswith("_"))


sys.meta_path.append(_Rows())
