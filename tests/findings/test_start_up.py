"""Whether first calls on the critical path are told, and nobody is advised to halve them."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.start_up import NOTES, START_UP, StartUpClaim, start_up_note, start_up_text
from tests.findings.claims_by_hand import gained
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime

MS = 1000


def starting() -> list[Json]:
    """Return a job of which half is the first call of a function."""
    events = [op("aten::empty", 0, 300 * MS), runtime("cudaFree", 0, 250 * MS), runtime("cudaFree", 251 * MS, 50)]
    return [*events, op("aten::mm", 300 * MS, 200 * MS), launch(499 * MS, 20, 5), kernel(COMPUTE, 500 * MS, 10, 5)]


def test_start_up_is_said_and_nobody_is_told_to_halve_it() -> None:
    summary = hg.summarize(load(starting()))
    claims = summary.claims
    (claim,) = [each for each in claims if each.says == "start_up"]
    assert claim.about == "start-up"
    assert START_UP.whole(claim) == "Start-up is 50 % of the critical path of 500.0 ms: 249.9 ms (cudaFree)."
    gains = [each for each in claims if each.says == "gain"]
    assert [each.about for each in gains if "Free" in each.about] == []
    assert not any("cudaFree" in option for row in summary.changes for option in row.options)
    first = summary.changes.first
    assert first is not None
    assert first.text == "Record after a warm-up, to see the steady job."


def first_iteration(rank: int, load_ms: int = 9, count: int = 6) -> list[Json]:
    """Return a job that loads a module in the first launch of each kernel, after cuBLAS made its handle."""
    events = [op("aten::addmm", 0, 30 * MS), runtime("cudaFree", 1 * MS, 12 * MS), launch(29 * MS, 12, 1)]
    events.append(kernel("gemm", 29 * MS + 20, 3, 1))
    at = 31 * MS
    for number in range(count):
        call = 10 + number
        events += [op(f"aten::kernel_{number}", at, load_ms * MS + 50), launch(at + 10, load_ms * MS, call)]
        events.append(kernel(f"kernel_{number}", at + load_ms * MS + 20, 3, call))
        at += load_ms * MS + 200
    return [each | {"pid": each.get("pid", 0)} for each in events] if rank >= 0 else []


def test_a_first_iteration_is_told_first_with_its_parts() -> None:
    summary = hg.summarize(load(first_iteration(0)))
    claims = summary.claims
    assert claims[0].says == "start_up"
    words = START_UP.whole(claims[0])
    assert "first launches of 6 kernels 5" in words
    assert "cudaFree 12.0 ms" in words
    assert summary.changes.first is not None
    first = summary.changes.first.text
    assert first.endswith(" % of the recording is the start of its process: record after a warm-up.")
    assert not [each for each in claims if each.says == "remedy"]


def test_every_report_names_the_same_start_up() -> None:
    graph = load(first_iteration(0))
    text = start_up_text(graph)
    (claim,) = [each for each in hg.summarize(graph).claims if each.says == "start_up"]
    assert text in START_UP.whole(claim)
    assert start_up_note(graph, "kernels") == [], "no kernels are tried out"
    for command in NOTES.keys() - {"kernels"}:
        (note,) = start_up_note(graph, command)
        assert text in note
        assert "ranks wait for it" not in note, "there is one rank"
        (bare,) = start_up_note(graph, command, has_times=False)
        assert "above" not in bare, "nothing is above"
    assert start_up_note(load([op("aten::mm", 0, 10)]), "idle") == []


def test_start_up_beside_the_path_has_no_share_of_it() -> None:
    claim = StartUpClaim(
        "start_up",
        "a",
        0.0,
        "percent",
        gain=gained(0.0, 0.0),
        text="3.00 ms (a)",
        mostly="a",
        longest_us=3e3,
        path_us=9e3,
    )
    assert START_UP.whole(claim) == "Start-up takes 3.00 ms (a)."


def test_start_up_beside_the_path_and_on_it_are_two_figures() -> None:
    gain = gained(3.91e6, 73.8)
    claim = StartUpClaim(
        "start_up", "a", 73.8, "percent", gain=gain, text="4.29 s (a)", mostly="a", longest_us=4.29e6, path_us=5.3e6
    )
    assert START_UP.whole(claim) == (
        "Start-up takes 4.29 s (a); 74 % of the critical path of 5.30 s is start-up, 3.91 s."
    )
