from __future__ import annotations

import htagraph as hg
from htagraph.output.html.report import report_bytes
from htagraph.output.html.samples import samples_section
from tests.strategies import kernel, load
from tests.trace.kineto.test_samples import counter


def test_a_curve_and_a_row_of_each_counter() -> None:
    samples = [counter(f"Power {number} (W)", moment, 100 + moment) for number in range(9) for moment in range(5)]
    section = samples_section(load([kernel("gemm", 0, 5), *samples]))
    assert section is not None
    page = str(section.body)
    assert page.count("Power 0 (W), rank 0, device 0") >= 1
    assert "Power 8 (W), rank 0" not in page
    assert "1 further counter in the table only." in page
    assert "Power 8 (W)" in page


def test_names_are_data() -> None:
    page = report_bytes(load([kernel("gemm", 0, 5), counter("<script>alert(1)</script>", 1, 1.0)])).decode()
    assert "Sampled counters" in page
    assert "<script>alert(1)" not in page


def test_no_section_without_samples() -> None:
    assert samples_section(hg.load("data/demo", ranks=[0])) is None
    assert samples_section(load([kernel("gemm", 0, 5), counter("Power (W)", 1, None)])) is None
