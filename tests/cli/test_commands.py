"""The commands on data/demo: every format, the envelope, what is shown, and the order of changes."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.cli import main as cli
from htagraph.cli.words import command_line, time_text
from htagraph.simulate import REGIMES, Job, simulate
from htagraph.whatif.change_options import CHANGES, criteria
from tests.command_line import one_line_of_error
from tests.damage import document, healthy, written
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")
COMMANDS = {
    "critical-path": [],
    "what-if": ["--scale", "kind=computation:0.5", "--network", "0.5"],
    "opportunities": ["--top", "3"],
    "stragglers": [],
    "collectives": [],
}
TABLES = {
    "critical-path": {"shares", "hops", "near"},
    "what-if": {"prediction", "changes", "step_times", "bounds"},
    "opportunities": {"opportunities"},
    "stragglers": {"stragglers", "causes"},
    "collectives": {"collectives", "last_arrivals"},
}
every_command = pytest.mark.parametrize("command", COMMANDS)


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)["results"]
    return found


# every command


@every_command
def test_json_is_the_envelope_of_all_commands(command: str, run: Any) -> None:
    ran = run(command, DEMO, *COMMANDS[command], "-f", "json")
    envelope = json.loads(ran.out)
    assert list(envelope) == [
        "schema_version", "tool", "tool_version", "command", "inputs", "window_us", "warnings", "counts", "results",
    ]  # fmt: skip
    assert (envelope["schema_version"], envelope["command"]) == (1, command)
    assert [row["rank"] for row in envelope["inputs"]] == [0, 1, 2, 3]
    assert TABLES[command] | {"conclusions"} <= set(envelope["results"])
    assert "NaN" not in ran.out
    assert "Infinity" not in ran.out


@every_command
def test_numbers_have_units_in_their_names(command: str, run: Any) -> None:
    found = results(run, command, DEMO, *COMMANDS[command])
    rows = [row for name in TABLES[command] for row in found[name]]
    fractions = {key for row in rows for key, value in row.items() if isinstance(value, float)}
    no_unit = {"speedup", "low", "high", "mean_bytes"}
    assert {key.rpartition("_")[2] for key in fractions - no_unit} <= {"us", "percent", "s"}


@every_command
def test_csv_has_a_table_behind_each_title(command: str, run: Any) -> None:
    ran = run(command, DEMO, *COMMANDS[command], "-f", "csv")
    blocks = dict(block.split("\n", 1) for block in f"\n{ran.out}".split("\n# ") if block.strip())
    tables = {name: list(csv.reader(io.StringIO(text.strip()))) for name, text in blocks.items()}
    assert TABLES[command] | {"inputs", "issues", "conclusions"} <= set(tables)
    assert all(len({len(row) for row in rows}) == 1 for rows in tables.values())


@every_command
def test_markdown_has_tables_of_even_rows_and_a_conclusion(command: str, run: Any) -> None:
    ran = run(command, DEMO, *COMMANDS[command], "-f", "md")
    tables = [part.splitlines()[2:] for part in f"\n{ran.out}".split("\n## ")[1:]]
    for table in tables[:-1]:
        assert len({line.count(" | ") for line in table if line}) == 1
    assert "## Conclusion\n\n- " in ran.out


@every_command
@pytest.mark.parametrize("width", [60, 80, 200])
def test_tables_fit_the_terminal_and_end_in_a_conclusion(
    command: str, width: int, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = run(command, DEMO, *COMMANDS[command])
    assert (ran.code, ran.err) == (0, "")
    tables, _, conclusion = ran.out.partition("Conclusion\n")
    assert max(map(len, tables.splitlines())) <= max(width, 72)  # numbers are never cut
    said = [line for line in conclusion.splitlines() if "htagraph " not in line]
    assert said
    assert max(map(len, said)) <= width
    assert "\x1b" not in ran.out


@every_command
def test_a_command_that_is_suggested_can_be_run(command: str, run: Any) -> None:
    for sentence in results(run, command, DEMO, *COMMANDS[command])["conclusions"]:
        _, found, line = sentence.partition(": htagraph ")
        if found:
            assert run(*shlex.split(line)).code == 0


@every_command
def test_output_goes_to_a_file(command: str, run: Any, tmp_path: Path) -> None:
    ran = run(command, DEMO, *COMMANDS[command], "-o", tmp_path / "out.txt")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "Conclusion" in (tmp_path / "out.txt").read_text(encoding="utf-8")


@every_command
def test_an_absent_rank_and_an_unusable_file_are_one_line(command: str, run: Any, tmp_path: Path) -> None:
    one_line_of_error(run(command, DEMO, *COMMANDS[command], "--ranks", "9"), "rank 9")
    one_line_of_error(run(command, DEMO, *COMMANDS[command], "--steps", "77"), "77", "5, 6, 7")
    one_line_of_error(run(command, written(tmp_path / "bad.json", "oops"), *COMMANDS[command]), "bad.json")


@every_command
@pytest.mark.parametrize("wrong", [["--top", "0"], ["--ranks", "a"], ["--steps", "3-1"], ["--format", "xml"], ["--x"]])
def test_wrong_usage_has_exit_code_two(command: str, wrong: list[str], run: Any) -> None:
    ran = run(command, DEMO, *COMMANDS[command], *wrong)
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err


@every_command
def test_the_help_of_a_command_says_what_it_answers(command: str, run: Any) -> None:
    ran = run(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "--format" in ran.out


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "what-if"])
@pytest.mark.parametrize("events", [[], healthy()], ids=["nothing", "one rank"])
def test_small_jobs_get_an_answer(command: str, events: list[Any], run: Any, tmp_path: Path) -> None:
    ran = run(command, written(tmp_path / "small.json", document(events)))
    assert (ran.code, ran.err) == (0, "")
    assert "Conclusion\n• " in ran.out


# critical path


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function that gives a folder with the traces of two steps of a regime."""

    @cache
    def folder(regime: str) -> str:
        job = Job.model_validate(REGIMES[regime]().model_dump() | {"steps": 2})
        path = tmp_path_factory.mktemp(regime)
        simulate(job).write(path, level=1)
        return str(path)

    return folder


@pytest.mark.parametrize(
    ("regime", "option"),
    [("gpu_bound", "--scale"), ("host_bound", "--infinite-host"), ("communication_bound", "--network")],
)
def test_the_path_names_what_bounds_the_job_and_a_change_that_helps(
    regime: str, option: str, simulated: Callable[[str], str], run: Any
) -> None:
    said = results(run, "critical-path", simulated(regime))["conclusions"]
    line = shlex.split(said[-1].partition(": htagraph ")[2])
    assert line[2] == option
    (prediction,) = results(run, *line)["prediction"]
    assert prediction["saved_us"] > 0
    assert f"shorter by {time_text(prediction['saved_us'])}" in said[-2]


def test_halving_never_saves_more_than_the_path_allows(simulated: Callable[[str], str], run: Any) -> None:
    found = results(run, "critical-path", simulated("communication_bound"))
    (row,) = [row for row in found["shares"] if row["key"] == "communication"]
    (prediction,) = results(run, "what-if", simulated("communication_bound"), "--network", "0.5")["prediction"]
    assert 0 < prediction["saved_us"] <= row["time_us"] / 2
    assert f"at most {time_text(row['time_us'] / 2)}" in " ".join(found["conclusions"])


def test_the_segments_of_the_path_sum_to_its_makespan(run: Any) -> None:
    found = results(run, "critical-path", DEMO, "--segments")
    assert sum(row["duration_us"] for row in found["segments"]) == pytest.approx(found["makespan_us"], abs=1e-6)
    assert len(found["segments"]) == found["segments_count"]


def test_a_step_has_a_path_of_its_own(run: Any) -> None:
    whole, part, same = (
        results(run, "critical-path", DEMO, *more) for more in ([], ["--step", "6"], ["--steps", "6-6"])
    )
    assert part == same
    assert 0 < part["makespan_us"] < 0.5 * whole["makespan_us"]


def test_top_limits_each_group_of_shares(run: Any) -> None:
    rows = results(run, "critical-path", DEMO, "--top", "2")["shares"]
    assert {group: sum(row["group"] == group for row in rows) for group in ("category", "operator")} == {
        "category": 2, "operator": 2,
    }  # fmt: skip


# what-if


def changes_of(run: Any, *arguments: str) -> list[tuple[str, float]]:
    rows = results(run, "what-if", DEMO, *arguments)["changes"]
    return [(row["change"], row["predicted_us"]) for row in rows]


def test_changes_apply_in_the_order_of_the_command_line(run: Any) -> None:
    fixed, faster = ("--set", "kind=communication:1ms"), ("--network", "0.5")
    one, other = changes_of(run, *fixed, *faster), changes_of(run, *faster, *fixed)
    assert [change for change, _ in one] == [" ".join(fixed), " ".join(faster)]
    assert [change for change, _ in other] == [" ".join(faster), " ".join(fixed)]
    assert one[-1][1] < other[-1][1]  # half of 1 ms; 1 ms whatever it was before


def test_a_prediction_is_that_of_the_library(run: Any) -> None:
    outcome = hg.what_if(hg.load(DEMO)).scale(factor=0.5, kind="computation").scale_network(factor=0.5).run()
    (row,) = results(run, "what-if", DEMO, *COMMANDS["what-if"])["prediction"]
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


@pytest.mark.parametrize("option", [option for option, form in CHANGES.items() if form.value == "optional"])
def test_an_optional_value_does_not_swallow_the_path(option: str, run: Any) -> None:
    assert changes_of(run, f"--{option}")[0][0] == f"--{option}"
    ran = run("what-if", f"--{option}", DEMO, "-f", "json")
    assert ran.code == 0


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
    ],
)
def test_a_change_that_cannot_be_read_is_wrong_usage(arguments: list[str], words: str, run: Any) -> None:
    ran = run("what-if", DEMO, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scale", "name=*gem:0.5"], "gemm"),
        (["--scale", "kind=komputation:0.5"], "computation"),
        (["--scale", "kind=computation:-1"], "factor"),
        (["--fix-straggler", "9"], "ranks: 0, 1, 2, 3"),
        (["--scale", "rank=9:2"], "ranks: 0, 1, 2, 3"),
        (["--remove-sync", "name=Synchronize"], "cudaStreamSynchronize"),
        (["--perfect-overlap=tensor"], "default_pg"),
    ],
)
def test_what_nothing_fits_is_one_line_that_names_what_would(arguments: list[str], words: str, run: Any) -> None:
    one_line_of_error(run("what-if", DEMO, *arguments), words)


GIVEN = st.sampled_from([
    ("network", "0.5"), ("network", "0.7"), ("scale", "kind=launch:2"), ("scale", "name=a:b:0"), ("infinite-host", ""),
    ("perfect-overlap", ""), ("perfect-overlap", "dp"), ("no-launch-overhead", ""), ("remove", "op=x"),
])  # fmt: skip


@given(st.lists(GIVEN, max_size=8), st.integers(0, 8))
@settings(deadline=None)
def test_any_sequence_of_options_is_kept_in_order(sequence: list[tuple[str, str]], place: int) -> None:
    words = [_words(option, text) for option, text in sequence]
    words.insert(min(place, len(words)), ["job"])
    command: Any = typer.main.get_command(cli.app)
    context = command.commands["what-if"].make_context("what-if", [word for part in words for word in part])
    assert context.meta["htagraph.whatif.changes"] == sequence
    assert list(context.params["paths"]) == ["job"]


def _words(option: str, text: str) -> list[str]:
    if CHANGES[option].value == "optional" and text:
        return [f"--{option}={text}"]
    return [f"--{option}", text] if text else [f"--{option}"]


# stragglers, collectives, opportunities


def test_the_straggler_of_the_demo_is_named_with_its_cause(run: Any) -> None:
    found = results(run, "stragglers", DEMO)
    assert found["straggler"] == 2
    assert found["stragglers"][0]["cause"] == "kernels"
    assert sum(row["blamed_us"] for row in found["stragglers"]) == pytest.approx(found["total_wait_us"])
    assert "Rank 2 is the straggler" in found["conclusions"][0]


def test_lateness_by_chance_has_no_straggler_but_a_first_suspect(simulated: Callable[[str], str], run: Any) -> None:
    found = results(run, "stragglers", simulated("gpu_bound"))
    assert found["straggler"] is None
    most = max(found["stragglers"], key=lambda row: row["blamed_us"])
    assert f"is charged to rank {most['rank']}" in found["conclusions"][1]


def test_one_rank_alone_has_nobody_to_wait_for(run: Any) -> None:
    assert "Only one rank" in results(run, "stragglers", DEMO, "--ranks", "0")["conclusions"][0]


def test_transfers_that_prevail_suggest_another_network(simulated: Callable[[str], str], run: Any) -> None:
    said = results(run, "collectives", simulated("communication_bound"))["conclusions"]
    assert said[-1].endswith("--network 0.5")


def test_collectives_are_summed_up_or_shown_each(run: Any) -> None:
    found = results(run, "collectives", DEMO, "--each")
    (row,) = found["collectives"]
    parts = found["parts"]
    assert len(parts) == row["ranks"] * row["collectives"]
    assert row["wait_us"] + row["transfer_us"] + row["excess_us"] == pytest.approx(row["total_us"])
    assert sum(part["wait_us"] for part in parts) == pytest.approx(row["wait_us"])
    assert found["last_arrivals"][0]["last_rank"] == 2


def test_parts_that_no_other_rank_matches_are_told(run: Any) -> None:
    found = results(run, "collectives", DEMO, "--ranks", "1")
    assert "could not be matched" in " ".join(found["conclusions"])
    assert found["collectives"][0]["op"] == "all_reduce"


def test_an_opportunity_is_what_the_same_change_gives(run: Any) -> None:
    rows = [row for row in results(run, "opportunities", DEMO, "--top", "4")["opportunities"] if row["target"]]
    for row in rows:
        (prediction,) = results(run, "what-if", DEMO, "--scale", f"{row['target']}:0")["prediction"]
        assert prediction["saved_us"] == pytest.approx(row["gain_us"], abs=0.01)
        assert criteria(row["target"])


def test_the_files_of_a_suggested_command_are_quoted() -> None:
    assert shlex.split(command_line("what-if", ["my job"], "--scale", "name=*a b*:0.5"))[1:] == [
        "what-if", "my job", "--scale", "name=*a b*:0.5",
    ]  # fmt: skip
