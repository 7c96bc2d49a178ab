"""The command line: data on stdout, one line of error on stderr, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processor_time import least, seconds_by_name
from htagraph.cli.main import error_envelope, wants_json
from htagraph.cli.writing import wants_color
from tests.command_line import Ran, one_line_of_error
from tests.damage import document, healthy, kineto_text, written
from tests.strategies import COMPUTE, kernel, op, step, write

ESCAPE = "\x1b"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 77, "tid": 77, "ts": 50, "dur": 900}
    for rank in range(3):
        written(tmp_path / "job" / f"rank-{rank}.json.gz", document([step, *healthy()], rank))
    return tmp_path / "job"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["summary", "validate"])
@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_every_format_goes_to_stdout_and_nothing_to_stderr(command: str, form: str, traces: Path, run: Any) -> None:
    table = {"summary": "inputs", "validate": "issues"}[command]
    chosen = ["--table", table] if form == "csv" else []
    ran = run(command, traces, "--format", form, *chosen)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("\n")
    assert ESCAPE not in ran.out


def test_json_is_a_versioned_envelope_with_units_in_its_names(traces: Path, run: Any) -> None:
    envelope = json.loads(run("summary", traces, "-f", "json").out)
    assert {"schema_version", "inputs", "window_us", "warnings", "counts", "results"} <= envelope.keys()
    assert envelope["schema_version"] == 1
    assert [row["rank"] for row in envelope["inputs"]] == [0, 1, 2]
    breakdown = envelope["results"]["temporal_breakdown"][0]
    assert {key.rpartition("_")[2] for key, value in breakdown.items() if isinstance(value, float)} <= {"us", "percent"}
    assert envelope["counts"] == {row["what"]: row["count"] for row in envelope["warnings"]}


def test_json_of_validate_says_whether_files_are_usable(traces: Path, run: Any) -> None:
    report = json.loads(run("validate", traces, "-f", "json").out)
    assert (report["schema_version"], report["usable"]) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "read"), [("0,2", [0, 2]), ("1-2", [1, 2]), ("0-1,2", [0, 1, 2]), ("1", [1])])
def test_ranks_are_numbers_and_ranges(ranks: str, read: list[int], traces: Path, run: Any) -> None:
    envelope = json.loads(run("summary", traces, "--ranks", ranks, "-f", "json").out)
    assert [row["rank"] for row in envelope["inputs"]] == read


def test_steps_limit_what_is_read(traces: Path, run: Any) -> None:
    whole, part = (json.loads(run("summary", traces, "-f", "json", *more).out) for more in ([], ["--steps", "4"]))
    assert part["inputs"][0]["steps"] == "4"
    assert part["inputs"][0]["activities"] <= whole["inputs"][0]["activities"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["summary"],
        ["summary", "x", "--ranks", "a"],
        ["summary", "x", "--ranks", "3-1"],
        ["summary", "x", "--ranks", ""],
        ["summary", "x", "--steps", "1-"],
        ["summary", "x", "--steps", "0,3-1"],
        ["summary", "x", "--ranks", "0-99999999999"],
        ["summary", "x", "--steps", "-1"],
        ["summary", "x", "--format", "xml"],
        ["summary", "x", "--top", "0"],
        ["summary", "x", "--nope"],
        ["nope"],
    ],
)
def test_wrong_usage_has_exit_code_two_and_no_output(arguments: Sequence[str], run: Any) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert ran.err


@pytest.mark.parametrize(("arguments", "words"), [(["--ranks", "9"], "rank 9"), (["--steps", "8"], "steps 8")])
def test_what_is_not_there_is_one_line(arguments: list[str], words: str, traces: Path, run: Any) -> None:
    one_line_of_error(run("summary", traces, *arguments), words)


TEXT = kineto_text(healthy())
UNUSABLE = {
    "empty": b"",
    "no json": b"oops",
    "other json": b'{"a": 1}',
    "cut in the header": TEXT[:150].encode(),
    "two documents": (TEXT * 2).encode(),
    "zip": b"PK\x03\x04",
    "binary": b"\x0a\0\0\1",
    "cut gzip": b"\x1f\x8b\x08\0\0\0",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["summary", "validate"])
@pytest.mark.parametrize("data", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_file_is_one_line_that_names_it(command: str, data: bytes, tmp_path: Path, run: Any) -> None:
    one_line_of_error(run(command, written(tmp_path / "bad.json", data)), "bad.json")


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(len(TEXT) // 3, len(TEXT) - 2, len(TEXT) // 9))
def test_a_cut_file_is_summarized_with_a_warning(cut: int, tmp_path: Path, run: Any) -> None:
    ran = run("summary", written(tmp_path / "cut.json", TEXT[:cut]), "-f", "json")
    assert ran.code == 0
    assert "warning" in ran.err
    assert "cut.json" in ran.err
    assert json.loads(ran.out)["counts"]["truncated"] == 1


@pytest.mark.parametrize("numbers", ["1009", "10,12", "99-1009"])
def test_numbers_of_several_digits_are_read_as_such(numbers: str, traces: Path, run: Any) -> None:
    one_line_of_error(run("summary", traces, "--steps", numbers), numbers.split(",")[0].split("-")[0])


def test_validate_reports_the_unusable_among_others_and_fails(traces: Path, run: Any) -> None:
    written(traces / "rank-3.json", "oops")
    ran = run("validate", traces, "-f", "json")
    assert ran.code == 1
    assert json.loads(ran.out)["usable"] is False
    ran = run("summary", traces)
    assert (ran.code, "rank-3.json cannot be read" in ran.out) == (0, True)


@pytest.mark.parametrize("path", ["none.json", "none/*.json"])
def test_a_path_to_nothing_is_one_line(path: str, tmp_path: Path, run: Any) -> None:
    one_line_of_error(run("summary", tmp_path / path), path, "no such file")


def test_output_to_a_folder_that_is_not_there_is_one_line(traces: Path, tmp_path: Path, run: Any) -> None:
    one_line_of_error(run("summary", traces, "-o", tmp_path / "none" / "out.txt"), "out.txt", "No such file")


def test_names_with_markup_are_printed_as_they_are(tmp_path: Path, run: Any) -> None:
    text = document(healthy()).replace("gemm<", "[red]a|b[/red]<")
    ran = run("summary", written(tmp_path / "a.json", text))
    assert ran.code == 0
    assert "[red]a|b[/red]" in ran.out


def test_color_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_color(None)
    assert not wants_color(Path("out.txt"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(None)


def test_the_version_is_printed(run: Any) -> None:
    assert run("--version").out.startswith("htagraph ")


# as a process


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "htagraph", *map(str, arguments)]


def unexpected(error: str) -> list[str]:
    """Return the lines of stderr without the one of the first run on a machine."""
    return [line for line in error.splitlines() if not line.startswith("htagraph: compiling what this needs")]


@pytest.mark.slow
def test_a_reader_that_leaves_early_sees_no_traceback(traces: Path) -> None:
    pipe = "import sys; sys.stdin.readline()"
    with subprocess.Popen(command("summary", traces), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        subprocess.run([sys.executable, "-c", pipe], stdin=writer.stdout, check=True)
        assert writer.stdout is not None
        assert writer.stderr is not None
        writer.stdout.close()
        error = writer.stderr.read().decode()
    assert unexpected(error) == []


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback(traces: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(command("summary", traces), stdout=write_end, stderr=subprocess.PIPE, check=False)
    os.close(write_end)
    assert unexpected(done.stderr.decode()) == []
    assert done.returncode == 1


@pytest.mark.slow
def test_a_damaged_file_is_one_line_from_the_process_too(tmp_path: Path) -> None:
    path = written(tmp_path / "bad.json", "oops")
    done = subprocess.run(command("summary", path), capture_output=True, text=True, check=False)
    one_line_of_error(Ran(done.returncode, done.stdout, done.stderr), "bad.json")


def event(**more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 5} | more


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ({"traceEvents": [event(ts=int("9" * 400))]}, "no event has a time that can be read"),
        ({"baseTimeNanoseconds": 2**70, "traceEvents": [event()]}, "baseTimeNanoseconds"),
        ({"baseTimeNanoseconds": 2**63 - 1, "traceEvents": [event(), event(ts=10)]}, "baseTimeNanoseconds"),
    ],
)
def test_numbers_that_nothing_can_hold_are_one_line(root: Any, words: str, tmp_path: Path, run: Any) -> None:
    one_line_of_error(run("summary", written(tmp_path / "odd.json", json.dumps(root))), "odd.json", words)


@pytest.mark.slow
@pytest.mark.parametrize(
    "events",
    [
        [event(cat="kernel", tid="stream ²")],
        [event(cat="kernel", pid=2**70)],
        [event(cat=f"c{number}") for number in range(33_000)],
    ],
)
def test_odd_ids_and_many_categories_are_summarized(events: Any, tmp_path: Path, run: Any) -> None:
    assert run("summary", written(tmp_path / "odd.json", json.dumps({"traceEvents": events}))).code == 0


def test_events_of_unknown_categories_are_reported(tmp_path: Path, run: Any) -> None:
    trace = written(tmp_path / "odd.json", json.dumps({"traceEvents": [event(), event(cat="Kernels")]}))
    assert "Kernels" in run("summary", trace).err


def test_an_empty_path_is_not_the_current_folder(run: Any) -> None:
    one_line_of_error(run("summary", ""), "empty path")


def test_a_name_with_half_a_surrogate_can_be_shown(tmp_path: Path, run: Any) -> None:
    device = '"deviceProperties": [{"id": 0, "name": "\\ud800"}]'
    text = f'{{{device}, "traceEvents": [{json.dumps(event(cat="kernel", pid=0))}]}}'
    assert run("summary", written(tmp_path / "odd.json", text)).code == 0


@pytest.mark.slow
def test_many_unescaped_quotes_take_time_in_proportion(tmp_path: Path, run: Any) -> None:
    def trace_of(count: int) -> Path:
        one = json.dumps(event(name="f(12): {QdeviceQ: QcpuQ}", args={"Call stack": "x" * 100})).replace("Q", '"')
        return written(tmp_path / f"{count}.json", f'{{"traceEvents": [{", ".join([one] * count)}]}}')

    def validated(trace: Path) -> None:
        assert run("validate", trace).code == 0

    def too_slow(seconds: Mapping[int, float]) -> bool:
        return seconds[12_000] >= 8 * seconds[3_000] + 0.5

    traces = {count: trace_of(count) for count in (3_000, 12_000)}
    validated(trace_of(10))
    measured = partial(seconds_by_name, {count: partial(validated, trace) for count, trace in traces.items()})
    assert not too_slow(least(measured, too_slow, 5))


@pytest.mark.parametrize("job", ["one operator", "an empty kernel", "empty steps"])
def test_what_has_no_value_is_not_printed_as_a_number(job: str, run: Any, tmp_path: Path) -> None:
    jobs = {
        "one operator": [op("aten::mm", 0, 10)],
        "an empty kernel": [kernel(COMPUTE, 3, 0, 1)],
        "empty steps": [step(1, 0, 0), step(2, 10, 0)],
    }
    path = write(jobs[job], tmp_path / "rank-0.json")
    nothing = write([], tmp_path / "nothing.json")
    lines = [
        ["summary", path],
        ["kernels", path, "--by", "operator"],
        ["diff", nothing, path],
        ["what-if", path, "--infinite-host"],
    ]
    for line in lines:
        shown = run(*line)
        assert (shown.code, re.findall(r"\b(?:nan|inf)\b", shown.out + shown.err, re.IGNORECASE)) == (0, []), line


def test_what_a_file_holds_commands_no_terminal(tmp_path: Path, run: Any) -> None:
    events = [*healthy(), {"ph": "X", "cat": "a\x1b[31m\u202e", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]
    ran = run("summary", written(tmp_path / "rank-0.json", document(events)))
    assert "unknown categories" in ran.err
    other = run("summary", written(tmp_path / "other.json", json.dumps({"a\x1b[31m\u202e": 1})))
    for text in (ran.err, other.err):
        assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_no_error_line_is_long(tmp_path: Path, run: Any) -> None:
    for number, text in enumerate((json.dumps({"x" * 9000: 1}), document([{"ph": "X", "ts": "y" * 9000}]))):
        ran = run("summary", written(tmp_path / f"{number}.json", text))
        assert ran.code == 1
        assert len(ran.err) < 600


@pytest.mark.parametrize("form", ["table", "md"])
def test_what_would_be_taken_for_a_trace_is_not_written_beside_traces(form: str, traces: Path, run: Any) -> None:
    ran = run("validate", traces, "-f", form, "-o", traces / "out.json")
    one_line_of_error(ran, "would be taken for a trace")
    assert not (traces / "out.json").exists()
    assert run("validate", traces, "-f", form, "-o", traces / "out.txt").code == 0
    assert run("validate", traces, "-f", "json", "-o", traces / "out.json").code == 0
    assert run("validate", traces).code == 0


def test_too_little_memory_is_an_error_with_advice(traces: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("htagraph.graph.load.load", fail)
    one_line_of_error(run("summary", traces), "--ranks")


def test_a_terminated_command_leaves_no_temporary_file(traces: Path) -> None:
    code = f"""if True:
        import os, signal, sys
        real = os.fdopen
        def opened(*given, **more):
            os.kill(os.getpid(), signal.SIGTERM)
            return real(*given, **more)
        os.fdopen = opened
        sys.argv = ['htagraph', 'validate', {str(traces)!r}, '-o', {str(traces / "out.txt")!r}]
        from htagraph.cli.main import main
        main()
    """
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert left.returncode == 128 + 15
    assert sorted(file.name for file in traces.iterdir()) == [f"rank-{rank}.json.gz" for rank in range(3)]


def test_a_command_that_is_terminated_while_python_leaves_prints_no_traceback(traces: Path) -> None:
    code = f"""if True:
        import atexit, os, signal, sys
        atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
        sys.argv = ['htagraph', 'validate', {str(traces)!r}]
        from htagraph.cli.main import main
        main()
    """
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert left.returncode == -15
    assert left.stderr == b""


# help and completion


@pytest.mark.parametrize("words", [["-h"], ["summary", "-h"], ["cache", "-h"], ["cache", "info", "-h"]])
def test_the_short_help_is_the_long_one(words: list[str], run: Any) -> None:
    short, long = run(*words), run(*words[:-1], "--help")
    assert (short.code, short.out) == (0, long.out)
    assert "Usage:" in short.out


def test_verbs_are_completed() -> None:
    asked = {"_HTAGRAPH_COMPLETE": "complete_bash", "COMP_WORDS": "htagraph summ", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['htagraph']; from htagraph.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert ran.stdout.split() == ["summary"]
    assert ran.stderr == ""


def test_help_names_the_options_of_completion(run: Any) -> None:
    shown = run("--help").out
    assert "--install-completion" in shown
    assert "--show-completion" in shown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["x", "--format", "json"], True), (["x", "-f", "json"], True), (["x", "--format=json"], True),
        (["x", "-fjson"], True), (["x", "-f", "csv"], False), (["x", "--", "-f", "json"], False), ([], False),
    ],
)  # fmt: skip
def test_json_is_asked_for_by_the_option(words: list[str], expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert wants_json(words) is expected


def test_a_file_is_one_that_was_named_or_is_there(tmp_path: Path) -> None:
    named = error_envelope("a.json: is damaged; record it again", ["summary", "a.json"], 1)
    assert named["command"] == "summary"
    assert named["error"] == {
        "message": "a.json: is damaged; record it again", "file": "a.json", "hint": "record it again", "exit_code": 1,
    }  # fmt: skip
    assert error_envelope("rank 9: is absent", ["summary", "job"], 1)["error"]["file"] is None
    assert error_envelope("x" * 9000 + ": y", [], 1)["error"]["file"] is None
    assert error_envelope(f"{tmp_path}: is empty", [], 1)["error"]["file"] == str(tmp_path)


def test_bad_input_is_an_envelope_on_stdout_and_one_line_on_stderr(run: Any, tmp_path: Path) -> None:
    ran = run("summary", tmp_path / "none.json", "--format", "json")
    error = json.loads(ran.out)["error"]
    assert (ran.code, error["exit_code"], error["file"]) == (1, 1, str(tmp_path / "none.json"))
    assert ran.err.count("\n") == 1
    assert run("summary", tmp_path / "none.json").out == ""


def test_wrong_usage_is_an_envelope_too(run: Any) -> None:
    ran = run("summary", "x", "--nope", "-f", "json")
    assert (ran.code, json.loads(ran.out)["error"]["exit_code"]) == (2, 2)
    assert "--nope" in json.loads(ran.out)["error"]["message"]
