"""Whether a claim's sentence gives its figure, names what it is about and says what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.claim_sentences import claim_name, sentences, trial


def bound(category: str, share: float = 80.0, *, ranks: dict[int, float] | None = None, **facts: Any) -> Claim:
    shares = {category: share, "launch": 19.0, "sync": 1.0}
    known = {
        "shares": shares,
        "ranks": ranks or {0: 100.0},
        "by_workers": False,
        "several": bool(ranks),
        "batches": (4, 10),
    }
    return Claim(Says.BOUND, category, share, "percent", facts=known | facts)


def gain(name: str, us: float, percent: float, what: str = "kernel", **facts: Any) -> Claim:
    known = {
        "what": what,
        "percent": percent,
        "target": f"name={name}",
        "half_us": us / 2,
        "note": "",
        "steps": 0,
        "shared": False,
    }
    return Claim(Says.GAIN, name, us, "us", interval=facts.pop("interval", None), facts=known | facts)


def only(claim: Claim) -> str:
    (sentence,) = sentences([claim])
    return sentence


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("computation", "Bound by computation: 80 % of the critical path"),
        ("communication", "Bound by transfers between ranks: 80 %"),
        ("data_loading", "Bound by the data loader: 80 %"),
        ("gap", "Bound by unexplained pauses: 80 %"),
    ],
)
def test_the_first_words_say_what_bounds_the_job(part: str, words: str) -> None:
    sentence = only(bound(part))
    assert sentence.startswith(words)
    assert "Also on it: launch calls 19 %." in sentence


def test_host_code_and_launch_calls_are_one_cause() -> None:
    sentence = only(bound("host", 100.0, shares={"computation": 42.0, "host": 38.0, "launch": 20.0}))
    assert sentence.startswith(
        "Bound by host code and launch calls: 100 % of the critical path (operators, Python, other calls 38 %"
    )
    assert "launch calls 20 %)" in sentence
    assert sentence.endswith("Also on it: computation 42 %.")
    alone = only(bound("host", 99.0, shares={"host": 98.0, "launch": 1.0, "computation": 1.0}))
    assert alone == "Bound by host code (operators, Python, other calls): 99 % of the critical path."


def test_the_rank_that_the_path_lies_on_is_named() -> None:
    assert "84 % of the path is on rank 3" in only(bound("computation", ranks={3: 84.0, 0: 16.0}))
    assert "the path is on rank 2" in only(bound("computation", ranks={2: 100.0}))


def test_where_workers_set_the_pace_only_the_loader_is_advised() -> None:
    sentence = only(bound("data_loading", 25.0, by_workers=True))
    assert sentence.startswith("Bound by the data loader: 25 % of the critical path. It waits for 4 of 10 batches.")
    assert "only a faster loader" in sentence


def test_gains_share_a_sentence_with_their_figures() -> None:
    gains = [gain("void gemm<4>(int)", 4200.0, 17.0), gain("rank 2 beyond its peers'", 900.0, 3.0, "straggler")]
    (sentence,) = sentences(gains)
    assert "kernel gemm, 4.20 ms (17 %); the work of rank 2 beyond its peers', 900.0 µs (3 %)" in sentence


def test_gains_are_per_step_where_there_are_steps() -> None:
    sentence = only(gain("x", 4200.0, 17.0, steps=10, interval=(0.0, 9000.0)))
    assert sentence.startswith("Largest gains per step (of 10), each")
    assert "kernel x, 420.0 µs (17 %; likely 0 to 900.0 µs)" in sentence


def test_where_links_are_shared_no_gain_is_called_the_most() -> None:
    assert "No speedup of one of them alone saves more." in only(gain("x", 4200.0, 17.0))
    shared = only(gain("0 default_pg [0, 1, 2]", 4200.0, 17.0, "group", shared=True))
    assert "transfers of process group default_pg (ranks 0-2), 4.20 ms" in shared
    assert "half of a change may gain more than all of it" in shared
    assert "No speedup" not in shared


def test_kernels_of_one_short_name_are_told_apart() -> None:
    first, second = "void copy<float, 4>(int)", "void copy<half, 8>(int)"
    (sentence,) = sentences([gain(first, 4200.0, 17.0), gain(second, 900.0, 3.0)])
    assert "kernel copy…float, 4>" in sentence
    assert "kernel copy…half, 8>" in sentence


def test_a_wide_interval_is_said() -> None:
    assert "likely 4.10 ms to 9.00 ms" in only(gain("x", 4200.0, 17.0, interval=(4100.0, 9000.0)))
    assert "likely" not in only(gain("x", 4200.0, 17.0, interval=(4100.0, 4300.0)))


def test_the_largest_gain_can_be_tried() -> None:
    gains = [gain("aten::mm", 500.0, 5.0, "operator", target="op=aten::mm"), gain("x", 400.0, 4.0)]
    (line,) = trial(gains, ["job"])
    assert line.startswith("Half the time of operator aten::mm saves 250.0 µs.")
    assert line.endswith(": htagraph what-if job --scale op=aten::mm:0.5")
    assert claim_name(gains[0]) == "operator aten::mm"
    launching = gain("launching", 5.0, 5.0, "phase", target="")
    assert trial([launching], []) == ["Half the time of launching saves 2.5 µs."]
    assert trial([], []) == []


def test_a_pause_is_told_with_the_function_around_it() -> None:
    facts = {
        "inside": "src/train.py(42): augment", "before": "", "count": 20, "total_us": 2e5, "longest_us": 12e3,
        "rank": 0,
    }  # fmt: skip
    sentence = only(Claim(Says.HOST_PAUSE, "<built-in function sleep>", 22.0, "percent", facts=facts))
    assert "<built-in function sleep> in train.py(42): augment, 20 times, 200.0 ms (longest 12.0 ms), 22 %" in sentence
    ranks = [Claim(Says.HOST_PAUSE, "sleep", 22.0, "percent", facts=facts | {"rank": rank}) for rank in (0, 1)]
    assert "sleep in train.py(42): augment on rank 1, 20 times" in sentences(ranks)[0]


def test_untraced_time_is_told_by_what_is_around_it() -> None:
    facts = {"inside": "step", "before": "aten::mm", "count": 1, "total_us": 2e5, "longest_us": 2e5, "rank": 0}
    sentence = only(Claim(Says.HOST_PAUSE, "", 22.0, "percent", facts=facts))
    assert "untraced code in step before aten::mm, 200.0 ms, 22 %" in sentence


def test_the_straggler_is_named_with_its_cause() -> None:
    facts = {"total_us": 500.0, "cause": "host", "cause_name": "aten::mm"}
    sentence = only(Claim(Says.STRAGGLER, "1", 90.0, "percent", facts=facts))
    assert sentence.startswith("Rank 1 makes the others wait: it causes 90 % of the 500.0 µs spent waiting")
    assert "its host code takes longer, mainly in aten::mm" in sentence


@pytest.mark.parametrize(
    ("about", "facts", "words"),
    [
        ("", {}, "(summed over ranks), but no single rank is slower than its peers beyond chance"),
        ("3", {}, "but rank 3, which is slower than its peers, does not explain most"),
        (
            "", {"charged": {2: 78.4}, "few_steps": True},
            ", most of it for rank 2 (78 %), but from 3 steps nobody can tell whether it is slow or was late by chance",
        ),
        ("", {"charged": {2: 78.4}}, ", most of it for rank 2 (78 %), but no single rank is slower"),
        ("", {"charged": {0: 51.0, 6: 41.0}, "few_steps": True}, "nobody can tell whether they are slow or were late"),
        ("", {"compared": False}, "but their steps cannot be compared, so nothing shows which rank is slow"),
        ("0", {"serves": 0, "does": "update"}, "Rank 0 does work that no other rank does (update), and the others"),
    ],
)  # fmt: skip
def test_waiting_without_a_straggler_says_what_is_known(about: str, facts: dict[str, Any], words: str) -> None:
    known = {"charged": {}, "few_steps": False, "steps": 3, "serves": None, "does": "", "compared": True} | facts
    assert words in only(Claim(Says.WAITING, about, 500.0, "us", facts=known))


@pytest.mark.parametrize(
    ("cause", "host", "words"),
    [
        ("host_wait", "launches", "CUDA graphs"),
        ("host_wait", "pauses", "a few long pauses"),
        ("host_wait", "loader", "the data loader"),
        ("host_wait", "ranks", "for other ranks or for transfers"),
        ("kernel_wait", "", "pause between queued kernels 30 %"),
        ("other", "", "are idle 30 %"),
    ],
)
def test_a_long_idle_time_is_told_with_advice_that_fits(cause: str, host: str, words: str) -> None:
    facts = {"rank": 1, "rank_percent": 35.0, "several": True, "host": host}
    sentence = only(Claim(Says.DEVICE_IDLE, cause, 30.0, "percent", facts=facts))
    assert words in sentence
    assert "30 % of the time (rank 1: 35 %)" in sentence
    assert ("CUDA graph" in sentence) == (host == "launches" or cause == "kernel_wait")


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (Claim(Says.NOTHING_RECORDED, "", 0.0, "count"), "No work was recorded on any rank"),
        (Claim(Says.SHORT_LAUNCHES, "", 59.0, "percent", facts={"total": 100}), "59 % of 100 launches take longer"),
        (Claim(Says.UNEXPLAINED, "path", 12.0, "percent", facts={"mostly": "launch_excess"}), "(mostly launch excess)"),
        (Claim(Says.PARTLY_DEVICE, "", 25.0, "percent"), "25 % of the recorded time"),
        (
            Claim(Says.UNKNOWN_CLOCKS, "0, 2", 2, "count", facts={"ranks": [0, 2], "total": 3}),
            "The clocks of 2 ranks (0 and 2)",
        ),
        (Claim(Says.UNMATCHED, "", 12, "count", facts={"total": 120}), "12 of 120 communication calls"),
        (Claim(Says.ONE_RANK, "0", 8, "count"), "Only rank 0 of 8 was read"),
        (
            Claim(
                Says.BLOCKING,
                "aten::item",
                1500.0,
                "us",
                facts={
                    "count": 10,
                    "blocked_us": 2000.0,
                    "percent": 15.0,
                    "target": "op=aten::item",
                    "steps": 0,
                    "several": False,
                },
            ),
            "the job would take 1.50 ms less (15 %; htagraph what-if --remove-sync=op=aten::item).",
        ),
        (
            Claim(Says.RANKS_MISSING, "", 4, "count", facts={"read": 3, "missing": [3]}),
            "3 of 4 ranks were read (not 3): waiting for one that was not read",
        ),
    ],
)
def test_every_other_claim_has_a_sentence(claim: Claim, words: str) -> None:
    assert words in only(claim)
