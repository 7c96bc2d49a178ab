"""Whether roofline ranks by what can be gained, and asks for nothing that was recorded."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.roofline import RecordedRates, roofline_sentences
from htagraph.queries.device_record import DeviceRecord

ON_DEVICE = RecordedRates()


def table(roof_percent: float) -> pd.DataFrame:
    row = {
        "rank": 0,
        "operator": "aten::mm",
        "shapes": "",
        "count": 1,
        "time_us": 100.0,
        "flop": 1e9,
        "bound": "memory",
    }
    peaks = {"at_most": False, "peak_tflop_s": 1.0, "peak_gb_s": 2.0}
    return pd.DataFrame([row | peaks | {"roof_percent": roof_percent, "share_percent": 90.0}])


def test_time_below_the_roof_is_that_beyond_what_it_reaches() -> None:
    lines = roofline_sentences(table(25.0), [], (True, False), ON_DEVICE)
    assert lines[2].startswith("The roof: at most 1 TFLOP/s (given with --peak-tflops) and 2 GB/s (the vendor's")
    assert lines[0] == (
        "aten::mm loses the most time below the roof: at 25 % of what memory allows. At the roof it would take 75.0 µs "
        "less."
    )


def test_closing_the_gap_is_advised_only_where_the_job_gains() -> None:
    asked: list[tuple[str, ...]] = []

    def saved_percent(options: tuple[str, ...]) -> float:
        asked.append(options)
        return 36.0

    said = roofline_sentences(table(25.0), ["x"], (True, True), ON_DEVICE, saved_percent)
    assert asked == [("--scale", "kind=computation,op=aten::mm:0.25")]
    assert said[1] == (
        "With aten::mm at its roof, the job would be 36 % shorter: htagraph what-if x --scale "
        "kind=computation,op=aten::mm:0.25"
    )
    little = roofline_sentences(table(25.0), ["x"], (True, True), ON_DEVICE, lambda _: 0.5)
    assert little[0].endswith("would take 75.0 µs less, but that would hardly make the job shorter.")


def test_unknown_peaks_and_shapes_say_what_to_give() -> None:
    assert (
        "give --peak-tflops and --peak-gbs" in roofline_sentences(table(float("nan")), [], (False, False), ON_DEVICE)[2]
    )
    assert "record_shapes=True" in roofline_sentences(table(1.0).iloc[:0], [], (False, False), ON_DEVICE)[0]


def test_times_of_the_host_are_no_times_of_a_device() -> None:
    """Without device work the times are those of calls, which return before a device has computed."""
    nothing = table(float("nan")).assign(share_percent=float("nan"))
    assert roofline_sentences(nothing, [], (False, False), ON_DEVICE)[0].endswith(
        "in 100.0 µs of host time, as no device work was recorded."
    )
    assert roofline_sentences(nothing.assign(time_us=0.0), [], (False, False), ON_DEVICE)[0].endswith(
        "in a time that was not recorded."
    )
    assert "at under 1 % of what memory allows" in roofline_sentences(table(0.2), [], (True, True), ON_DEVICE)[0]


def test_shapes_are_asked_for_only_where_they_were_not_recorded() -> None:
    nothing = table(1.0).iloc[:0]
    replayed = RecordedRates(has_shapes=True, replays=("CUDA graphs", "torch.compile"))
    assert roofline_sentences(nothing, ["x"], (False, False), replayed)[0].startswith(
        "No operator's FLOPs can be counted: CUDA graphs and torch.compile run kernels without operators. Record a "
        "step without CUDA graphs and torch.compile."
    )
    plain = RecordedRates(has_shapes=True)
    assert roofline_sentences(nothing, ["x"], (False, False), plain)[0].startswith("No operator with a formula")


def test_a_job_on_cpus_hears_of_its_cpu() -> None:
    on_cpu = RecordedRates(record=DeviceRecord.UNUSED)
    assert "CUPTI" not in roofline_sentences(table(1.0).iloc[:0], [], (False, False), on_cpu)[0]
    nothing = table(float("nan")).assign(share_percent=float("nan"))
    first, roof, then = roofline_sentences(nothing, ["x"], (False, False), on_cpu)
    assert then.endswith("htagraph kernels x")
    assert first.startswith("aten::mm takes the most time of them: 100.0 µs, at 10,000 GFLOP/s. 1 operator")
    assert roof.startswith("The roof of the CPU")
