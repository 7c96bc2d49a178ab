"""The commands on data/demo: every format, the envelope, what is shown, and the order of changes."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import one_line_of_error
from tests.damage import document, healthy, written
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")
COMMANDS = {
    "critical-path": [],
    "what-if": ["--scale", "kind=computation:0.5", "--network", "0.5"],
    "plan": ["--top", "3"],
    "stragglers": [],
    "collectives": [],
    "launches": [],
    "counters": [],
}
TABLES = {
    "critical-path": {"shares", "hops", "near"},
    "what-if": {"prediction", "changes", "step_times", "bounds"},
    "plan": {"proposed", "opportunities", "plan", "curve"},
    "stragglers": {"stragglers", "causes"},
    "collectives": {"collectives", "last_arrivals"},
    "launches": {"calls", "operators"},
    "counters": set(),
}
every_command = pytest.mark.parametrize("command", COMMANDS)


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)["results"]
    return found


# every command


@pytest.mark.slow
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


@pytest.mark.slow
@every_command
def test_numbers_have_units_in_their_names(command: str, run: Any) -> None:
    found = results(run, command, DEMO, *COMMANDS[command])
    rows = [row for name in TABLES[command] for row in found[name]]
    fractions = {key for row in rows for key, value in row.items() if isinstance(value, float)}
    no_unit = {"speedup", "low", "high", "mean_bytes"}
    assert {key.rpartition("_")[2] for key in fractions - no_unit} <= {"us", "percent", "s"}


@pytest.mark.slow
@every_command
def test_csv_has_each_table_of_json(command: str, run: Any) -> None:
    for name in TABLES[command] | {"inputs", "issues", "conclusions"}:
        ran = run(command, DEMO, *COMMANDS[command], "-f", "csv", "--table", name)
        assert len({len(row) for row in csv.reader(io.StringIO(ran.out))}) == 1


@pytest.mark.slow
@every_command
def test_markdown_has_an_answer_and_tables_of_even_rows(command: str, run: Any) -> None:
    ran = run(command, DEMO, *COMMANDS[command], "-f", "md")
    tables = [part.splitlines()[2:] for part in f"\n{ran.out}".split("\n## ")[1:]]
    for table in tables[:-1]:
        assert len({line.count(" | ") for line in table if line}) == 1
    assert not ran.out.startswith(("#", "|", "-", "\n"))  # the answer


@pytest.mark.slow
@every_command
@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_answer_comes_first_and_all_fits_the_terminal(
    command: str, width: int, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = run(command, DEMO, *COMMANDS[command])
    assert (ran.code, ran.err) == (0, "")
    answer, _, below = ran.out.partition("\n\n")
    tables, _, conclusion = below.partition("Conclusion\n")
    of_tables = [line for line in tables.splitlines() if "htagraph " not in line]  # a command is one line, to be copied
    assert max(map(len, of_tables)) <= max(width, 72)  # numbers are never cut
    said = [line for line in f"{answer}\n{conclusion}".splitlines() if "htagraph " not in line]
    assert said
    assert max(map(len, said)) <= width
    assert "\x1b" not in ran.out


@pytest.mark.slow
@every_command
def test_a_command_that_is_suggested_can_be_run(command: str, run: Any) -> None:
    for sentence in results(run, command, DEMO, *COMMANDS[command])["conclusions"]:
        _, found, line = sentence.partition(": htagraph ")
        if found:
            assert run(*shlex.split(line)).code == 0


@pytest.mark.slow
@every_command
def test_output_goes_to_a_file(command: str, run: Any, tmp_path: Path) -> None:
    ran = run(command, DEMO, *COMMANDS[command], "-o", tmp_path / "out.txt")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    answer = (tmp_path / "out.txt").read_text(encoding="utf-8").partition("\n\n")[0]
    assert " ".join(answer.split()) == results(run, command, DEMO, *COMMANDS[command])["conclusions"][0]


@pytest.mark.slow
@every_command
def test_an_absent_rank_and_an_unusable_file_are_one_line(command: str, run: Any, tmp_path: Path) -> None:
    one_line_of_error(run(command, DEMO, *COMMANDS[command], "--ranks", "9"), "rank 9")
    one_line_of_error(run(command, DEMO, *COMMANDS[command], "--steps", "77"), "77", "5, 6, 7")
    one_line_of_error(run(command, written(tmp_path / "bad.json", "oops"), *COMMANDS[command]), "bad.json")


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "what-if"])
@pytest.mark.parametrize("events", [[], healthy()], ids=["nothing", "one rank"])
def test_small_jobs_get_an_answer(command: str, events: list[Any], run: Any, tmp_path: Path) -> None:
    ran = run(command, written(tmp_path / "small.json", document(events)))
    assert (ran.code, ran.err) == (0, "")
    answer = ran.out.partition("\n\n")[0]
    assert " ".join(answer.split()) == results(run, command, str(tmp_path / "small.json"))["conclusions"][0]
