"""``htagraph what-if``: changes in their order, what they save, and changes that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.cli import main as cli
from htagraph.whatif.options import CHANGES
from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    tables: dict[str, Any] = json.loads(ran.out)["results"]
    return tables


CHANGED = ["--scale", "kind=computation:0.5", "--network", "0.5"]


def changes_of(run: Any, *arguments: str) -> list[tuple[str, float]]:
    rows = results(run, "what-if", DEMO, *arguments)["changes"]
    return [(row["change"], row["predicted_us"]) for row in rows]


@pytest.mark.slow
def test_changes_apply_in_the_order_of_the_command_line(run: Any) -> None:
    fixed, faster = ("--set", "kind=communication:1ms"), ("--network", "0.5")
    one, other = changes_of(run, *fixed, *faster), changes_of(run, *faster, *fixed)
    assert [change for change, _ in one] == [" ".join(fixed), " ".join(faster)]
    assert [change for change, _ in other] == [" ".join(faster), " ".join(fixed)]
    assert one[-1][1] < other[-1][1]  # half of 1 ms; 1 ms whatever it was before


@pytest.mark.slow
def test_a_prediction_is_that_of_the_library(run: Any) -> None:
    outcome = hg.what_if(hg.load(DEMO)).scale(factor=0.5, kind="computation").scale_network(factor=0.5).run()
    (row,) = results(run, "what-if", DEMO, *CHANGED)["prediction"]
    assert row["predicted_us"] * 1000 == pytest.approx(outcome.makespan_ns)
    assert (row["speedup"], row["low"], row["high"]) == (outcome.speedup, outcome.low, outcome.high)


def test_what_each_change_saves_sums_to_the_whole(run: Any) -> None:
    found = results(run, "what-if", DEMO, "--free-dataloader", "--network", "0.5", "--scale", "rank=2:0.9")
    (prediction,) = found["prediction"]
    assert sum(row["saved_us"] for row in found["changes"]) == pytest.approx(prediction["saved_us"])


def test_what_makes_the_job_slower_is_said_so(run: Any) -> None:
    assert "times as long" in results(run, "what-if", DEMO, "--scale", "kind=computation:2")["conclusions"][0]


def test_what_nobody_waits_for_changes_nothing(run: Any) -> None:
    said = results(run, "what-if", DEMO, "--scale", "rank=0,kind=launch:0.9")["conclusions"][0]
    assert "as long as before" in said


def test_noise_and_extrapolation_are_told(run: Any) -> None:
    found = results(run, "what-if", DEMO, "--jitter", "0.05:10", "--scale-ranks", "64")
    assert found["prediction"][0]["p50_us"] <= found["prediction"][0]["p99_us"]
    assert any("extrapolation" in note for note in found["notes"])


@pytest.mark.slow
@pytest.mark.parametrize("option", [option for option, form in CHANGES.items() if form.value == "optional"])
def test_an_optional_value_does_not_swallow_the_path(option: str, run: Any) -> None:
    ran = run("what-if", f"--{option}", DEMO, "-f", "json")
    if option == "free-outside":
        assert "no waits for something outside" in ran.err  # the path was read: the demo waits for nobody outside
        return
    assert ran.code == 0
    assert changes_of(run, f"--{option}")[0][0] == f"--{option}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "at least one change"),
        (["--scale", "name=a"], "--scale"),
        (["--scale", "nmae=a:2"], "--scale"),
        (["--set", "name=a:12"], "--set"),
        (["--fix-straggler", "slow"], "--fix-straggler"),
        (["--infinite-host=yes"], "--infinite-host"),
        (["--scale"], "--scale"),
        (["--scale", "kind=computation:-1"], "--scale: factor"),
        (["--network", "-1"], "--network: factor"),
    ],
)
def test_a_change_that_cannot_be_read_is_wrong_usage(arguments: list[str], words: str, run: Any) -> None:
    ran = run("what-if", DEMO, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scale", "name=*gem:0.5"], "gemm"),
        (["--scale", "kind=komputation:0.5"], "computation"),
        (["--fix-straggler", "9"], "ranks: 0, 1, 2, 3"),
        (["--scale", "rank=9:2"], "ranks: 0, 1, 2, 3"),
        (["--remove-sync", "name=Synchronize"], "cudaStreamSynchronize"),
        (["--perfect-overlap=tensor"], "default_pg"),
    ],
)
def test_what_nothing_fits_is_one_line_that_names_what_would(arguments: list[str], words: str, run: Any) -> None:
    one_line_of_error(run("what-if", DEMO, *arguments), words)


COMMANDS: Any = typer.main.get_command(cli.app)
WHAT_IF = COMMANDS.commands["what-if"]
GIVEN = st.sampled_from([
    ("network", "0.5"), ("network", "0.7"), ("scale", "kind=launch:2"), ("scale", "name=a:b:0"), ("infinite-host", ""),
    ("perfect-overlap", ""), ("perfect-overlap", "dp"), ("no-launch-overhead", ""), ("remove", "op=x"),
])  # fmt: skip


@pytest.mark.slow
@given(st.lists(GIVEN, max_size=8), st.integers(0, 8))
def test_any_sequence_of_options_is_kept_in_order(sequence: list[tuple[str, str]], place: int) -> None:
    words = [_words(option, text) for option, text in sequence]
    words.insert(min(place, len(words)), ["job"])
    context = WHAT_IF.make_context("what-if", [word for part in words for word in part])
    assert context.meta["htagraph.whatif.changes"] == sequence
    assert list(context.params["paths"]) == ["job"]


def _words(option: str, text: str) -> list[str]:
    if CHANGES[option].value == "optional" and text:
        return [f"--{option}={text}"]
    return [f"--{option}", text] if text else [f"--{option}"]


def test_the_predicted_timeline_is_written_beside_the_recorded_one(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "both.json"
    ran = run("what-if", DEMO, "--ranks", "0", *CHANGED, "--perfetto", target, "--counters")
    assert (ran.code, f"{target}: " in ran.err, "counter values" in ran.err) == (0, True, True)
    events = json.loads(target.read_text())["traceEvents"]
    assert {"critical path", "rank 0, predicted"} < {
        event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    native = run("what-if", DEMO, "--ranks", "0", *CHANGED, "--perfetto", tmp_path / "both.pftrace")
    assert (native.code, native.out) == (0, ran.out)
    sweep = run("what-if", DEMO, "--sweep", "network=0.5..2", "--perfetto", target)
    assert (sweep.code, "--perfetto" in sweep.err, "many timelines" in sweep.err) == (2, True, True)
    alone = run("what-if", DEMO, *CHANGED, "--counters")
    assert (alone.code, "--counters" in alone.err) == (2, True)
