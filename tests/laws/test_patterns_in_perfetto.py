"""What is written opens in the real Perfetto without a complaint; skipped where that is not here."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.output.export.patterns import export_patterns
from tests.reach import DATA, raw_events
from tests.trace_processor import Perfetto, Row, needs_perfetto

MARKED = "select count(distinct arg_set_id) from args where flat_key like 'args.Patterns%'"
SLICES = "select count(*), sum(dur), min(ts) from slice"


def asked(path: Path) -> tuple[list[Row], list[Row], list[Row]]:
    """Return Perfetto's complaints about a file, the number of marks, and the sums over its slices."""
    perfetto = Perfetto(path)
    return perfetto.complaints(), perfetto.rows(MARKED), perfetto.rows(SLICES)


@pytest.mark.slow
@needs_perfetto
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("style", ["compressed", "whole"])
def test_every_mark_is_found_in_perfetto_and_nothing_is_lost(style: str, tmp_path: Path) -> None:
    source = DATA / "demo" / "rank-0.json.gz"
    (path,) = export_patterns(hg.load({0: source}), tmp_path, "aten::addmm", min_length=1, compress=style != "whole")
    bad, ((marked,),), slices = asked(path)
    assert (bad, slices) == asked(source)[::2]
    assert marked == sum("Patterns" in event.get("args", {}) for event in raw_events(path))
