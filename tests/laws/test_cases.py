"""Small inputs whose right answers are known, each with the fault that it showed: what the commands print is right.

Each input lies in a folder of the shared cases, whose README says the right value and how it is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Ran
from tests.reach import SHARED

CASES = SHARED.parent / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="needs the shared cases")
Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print every column, however wide the terminal is in which the tests run."""
    monkeypatch.setenv("COLUMNS", "140")


def case(number: str) -> Path:
    """Return the folder of a case by its number, such as ``K01``."""
    (folder,) = CASES.glob(f"{number}_*")
    return folder


def printed(run: Run, verb: str, number: str, *options: str) -> str:
    """Return what a verb prints about a case, on one line."""
    ran = run(verb, case(number), *options)
    assert ran.code == 0, ran.err
    return re.sub(r"\s+", " ", ran.out)


def first_line(text: str) -> str:
    """Return the first line of a summary: what to do first, up to the line about the job."""
    said = re.match(r"First: (.*?) \d+ ranks?[ ,:]", text)
    assert said is not None, text[:200]
    return said[1]


def share_after(text: str, words: str) -> float:
    """Return the first percentage behind some words of a text, as a number."""
    found = re.search(rf"{re.escape(words)} (?:over )?([\d.]+) %", text)
    assert found is not None, words
    return float(found[1])


def test_k01_overlaps_of_a_clocks_grain_are_an_order(run: Run) -> None:
    text = printed(run, "summary", "K01", "--full")
    assert share_after(text, "Bound by computation:") >= 99
    assert "without it a step takes 29.9 ms less" in text
    assert "unexplained" not in text
    half = printed(run, "what-if", "K01", "--scale", "kind=computation,regex=sgemm:0.5")
    assert "91.0 68.5 22.5 " in half  # the job before and after, and what it saves: 7.5 ms of each step
    assert "30.0 22.5 Step times" in half
    assert "to 7.50 ms less" in text  # at twice the speed; the device may gain less
    assert "unexplained" not in printed(run, "critical-path", "K01")


def test_k02_a_cold_start_is_named_on_both_ranks(run: Run) -> None:
    text = printed(run, "summary", "K02", "--full")
    assert "cudaFree 14.6 ms" in text
    assert "first launches of 3 kernels 33.0 ms" in text
    assert share_after(text, "Start-up is") >= 85
    assert "85 % of the recording is the start of its process: record after a warm-up" in first_line(text)
    assert "expandable_segments" not in text


def test_k03_one_flush_of_the_allocator_is_named(run: Run) -> None:
    text = printed(run, "summary", "K03", "--full")
    assert first_line(text).startswith("Use less memory")
    assert "39.6 ms less" in first_line(text)
    assert "The allocator ran out of its cache and flushed it" in text
    assert "6.44 GB of them given back" in text


def test_k04_launches_without_kernels_give_no_verdict(run: Run) -> None:
    text = printed(run, "summary", "K04", "--full")
    assert first_line(text).startswith("Record again")
    assert "300 of 300 launch calls have no kernel or copy in the file" in text
    assert "45.0 ms of 57.1 ms" in text
    assert "likely the limit" in text
    assert "Bound by" not in text
    assert "saves" not in text
    assert "activities=" not in printed(run, "validate", "K04")


def test_k05_replays_without_kernels_are_counted(run: Run) -> None:
    text = printed(run, "summary", "K05")
    assert "38 of 40 launch calls of CUDA graphs have no kernels in the file" in text
    assert not re.search(r"Bound by|saves|device busy", text)


def test_k07_times_on_a_binary_grid_are_read_as_written(run: Run) -> None:
    text = printed(run, "kernels", "K07")
    assert re.search(r"300 750\.2 2\.50", text)  # 750.25 us
    assert "corrected" not in printed(run, "summary", "K07")


def test_k08_a_bfloat16_kernel_gets_no_advice_on_precision(run: Run) -> None:
    text = printed(run, "summary", "K08")
    assert not re.search(r"autocast|TF32|[Ss]ingle precision", text)


def test_k09_a_device_that_others_use_is_no_fault_of_the_host(run: Run) -> None:
    text = printed(run, "summary", "K09")
    assert "Bound by other work of the device" in text
    assert "a faster host gains nothing there" in first_line(text).lower()
    assert "busy with earlier work" not in text
    assert "free CPU" not in text
    idle = printed(run, "idle", "K09")
    assert not re.search(r"infinitely fast host the job would be [1-9]\d %", idle)


def test_k10_a_snapshot_without_history_knows_no_peak(run: Run) -> None:
    ran = run("memory", case("K10") / "snapshot.pickle")
    text = re.sub(r"\s+", " ", ran.out)
    assert "671.1 MB is in use. The most that was in use is unknown" in text
    assert not re.search(r"at most|fragmented", text)


def test_k11_rows_within_one_another_are_one_piece_of_work(run: Run) -> None:
    text = printed(run, "kernels", "K11")
    assert re.search(r"aten::cudnn_convolution 1 1 15\.6 15\.6 15\.6 15\.6 99\.4", text)
    assert "aten::conv2d" not in text


def test_k12_no_name_is_shown_as_the_linker_writes_it(run: Run) -> None:
    for verb in ("summary", "kernels", "critical-path", "plan"):
        assert "_ZN" not in printed(run, verb, "K12"), verb
    assert "cudnn::bn_fw_tr_1C11_kernel_NCHW" in printed(run, "kernels", "K12")


def test_k13_a_recording_of_devices_alone_asks_for_the_host(run: Run) -> None:
    text = printed(run, "summary", "K13")
    assert first_line(text) == "Record with activities=[CPU, CUDA]."
    assert "with_stack" not in text
    support = printed(run, "validate", "K13")
    assert "operators of the host no" in support
    for verb in ("idle", "plan", "critical-path"):
        assert not re.search(r"fast host|infinite-host|between operators", printed(run, verb, "K13")), verb


def test_k14_rows_of_another_program_get_no_verdict(run: Run) -> None:
    text = printed(run, "summary", "K14")
    assert "another program wrote the file" in text
    assert not re.search(r"Bound by|saves|with_stack|activities=", text)


def test_k15_two_devices_of_one_process_are_two(run: Run) -> None:
    text = printed(run, "summary", "K15")
    assert "devices busy 48 %" in text
    assert re.findall(r"device (\d) 8,263 4,000 \(48 %\)", text) == ["0", "1"]


def test_k06_no_share_is_more_than_the_whole(run: Run) -> None:
    for options in ((), ("--full",)):
        text = printed(run, "summary", "K06", *options)
        shares = [float(share) for share in re.findall(r"([\d.]+) %", text)]
        assert max(shares) <= 100
    assert "35 % of the path" not in text


def test_k16_a_gain_that_may_be_nothing_is_not_first(run: Run) -> None:
    text = printed(run, "summary", "K16")
    assert first_line(text) == "Record with with_stack=True, to see what the host does."
    assert share_after(text, "most of it without any event:") == 54


def test_k17_a_cut_duration_leads_nothing(run: Run) -> None:
    text = printed(run, "summary", "K17")
    assert "30 of 32 steps have no device work in the file" in text
    assert "device busy" not in text
    table = text[text.index("What takes the most time") :]
    assert table.index("sm90_xmma_gemm") < table.index("at::native::elementwise_kernel")
    assert "≤ 47.0" in table


def test_k18_a_collective_is_slow_beside_copies(run: Run) -> None:
    first = first_line(printed(run, "summary", "K18"))
    assert "beside all_gather: 11.0 ms less per step" in first
    text = printed(run, "summary", "K18", "--full")
    assert "all_gather takes 3.0 times as long beside Memcpy DtoH (Device -> Pinned): 15.0 ms, not 5.00 ms" in text
    assert "1.03 ms less" not in text  # what the copies alone would gain, were the all-gather as slow without them
