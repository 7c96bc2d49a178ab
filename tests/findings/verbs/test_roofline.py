"""Whether what cannot be known is said, and what to give."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.roofline import sentences


def table(roof_percent: float) -> pd.DataFrame:
    row = {
        "rank": 0,
        "operator": "aten::mm",
        "shapes": "",
        "count": 1,
        "time_us": 100.0,
        "flop": 1e9,
        "bound": "memory",
        "at_most": False,
    }
    return pd.DataFrame(
        [row | {"peak_tflop_s": 1.0, "peak_gb_s": 2.0, "roof_percent": roof_percent, "share_percent": 90.0}]
    )


def test_time_below_the_roof_is_that_beyond_what_it_reaches() -> None:
    lines = sentences(table(25.0), [], (True, False))
    assert lines[1].startswith("The roof: at most 1 TFLOP/s (given with --peak-tflops) and 2 GB/s (the vendor's")
    assert lines[2].endswith("it reaches 25 % of what memory allows; at the roof it would take 75.0 µs less.")


def test_unknown_peaks_and_shapes_say_what_to_give() -> None:
    assert "give --peak-tflops and --peak-gbs" in sentences(table(float("nan")), [], (False, False))[2]
    assert "record_shapes=True" in sentences(table(1.0).iloc[:0], [], (False, False))[0]


def test_times_of_the_host_are_no_times_of_a_device() -> None:
    """Without device work the times are those of calls, which return before a device has computed."""
    nothing = table(float("nan")).assign(share_percent=float("nan"))
    assert sentences(nothing, [], (False, False))[0].endswith(
        "in 100.0 µs of host time, as no device work was recorded."
    )
    assert sentences(nothing.assign(time_us=0.0), [], (False, False))[0].endswith("in a time that was not recorded.")
    assert "reaches under 1 % of what memory allows" in sentences(table(0.2), [], (True, True))[2]
