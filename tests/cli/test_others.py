"""Verbs that read no graph."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.schema import json_schema
from tests.command_line import one_line_of_error
from tests.reach import DATA, REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def test_what_can_be_read_is_usable(run: Any) -> None:
    ran = run("validate", DEMO)
    assert (ran.code, ran.err) == (0, "")
    assert "Nothing had to be repaired or dropped." in ran.out


def test_an_unusable_file_is_listed_and_sets_the_exit_code(tmp_path: Path, run: Any) -> None:
    (tmp_path / "rank-0.json").write_bytes((Path(DEMO).parent / "demo" / "rank-0.json.gz").read_bytes()[:100])
    (tmp_path / "rank-1.json.gz").write_bytes((Path(DEMO) / "rank-1.json.gz").read_bytes())
    ran = run("validate", tmp_path, "-f", "json")
    assert ran.code == 1
    assert json.loads(ran.out)["usable"] is False


def test_arguments_are_checked_where_asked_for(run: Any) -> None:
    assert "arguments" not in json.loads(run("validate", DEMO, "-f", "json").out)


def test_it_prints_the_schema_of_a_command_or_of_all(run: Any, tmp_path: Path) -> None:
    assert json.loads(run("schema", "idle").out) == json_schema("idle")
    assert run("schema", "-o", tmp_path / "all.json").code == 0
    whole = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert whole["title"] == "htagraph --format json"


def test_an_unknown_command_is_wrong_usage_with_the_nearest(run: Any) -> None:
    ran = run("schema", "sumary")
    assert (ran.code, ran.out) == (2, "")
    assert "summary" in ran.err


@pytest.mark.slow
def test_the_job_is_that_of_the_repository_and_its_summary_the_same(tmp_path: Path, run: Any) -> None:
    folder = tmp_path / "job"
    ran = run("demo", "-o", folder)
    assert ran.code == 0
    assert str(folder) in ran.err
    shown, recorded = (
        _words(text, path) for text, path in ((ran.out, folder), (run("summary", DATA / "demo").out, DATA / "demo"))
    )
    assert shown == recorded


def _words(text: str, folder: Path) -> list[str]:
    """Return the words of a summary, whatever its folder and however its lines are broken."""
    return text.replace(str(folder), "FOLDER").split()


@pytest.mark.slow
def test_without_a_folder_it_is_a_temporary_one_that_the_output_names(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("htagraph.simulate.simulate", _Copied)
    ran = run("demo")
    (folder,) = tmp_path.iterdir()
    assert str(folder) in ran.err
    assert (folder / "rank-0.json.gz").is_file()


class _Copied:
    """What is simulated, as it lies in the repository."""

    def __init__(self, job: object) -> None:
        del job

    def write(self, folder: Path) -> list[Path]:
        return [Path(shutil.copy(path, folder)) for path in sorted((DATA / "demo").glob("*.json.gz"))]


def test_a_folder_with_other_files_is_left_as_it_is(tmp_path: Path, run: Any) -> None:
    (tmp_path / "mine.json").write_text("{}")
    ran = run("demo", "-o", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "not an empty folder" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


def test_as_many_traces_are_written_as_ranks(tmp_path: Path, run: Any) -> None:
    assert run("simulate", "--ranks", "2", "--steps", "1", "--set", "layers=1", "-o", tmp_path / "job").code == 0
    assert len(hg.load(tmp_path / "job").ranks) == 2
    assert (tmp_path / "job" / "truth").is_dir()


@pytest.mark.parametrize(
    ("wrong", "nearest"), [(["--regime", "gpu_bond"], "gpu_bound"), (["--set", "layer=1"], "layers")]
)
def test_a_misspelt_word_is_answered_with_the_nearest(wrong: list[str], nearest: str, tmp_path: Path, run: Any) -> None:
    ran = run("simulate", *wrong, "-o", tmp_path / "job")
    assert ran.code == 2
    assert f"'{nearest}'" in ran.err
    assert not (tmp_path / "job").exists()


def test_a_setting_needs_a_value(tmp_path: Path, run: Any) -> None:
    assert run("simulate", "--set", "layers", "-o", tmp_path / "job").code == 2


def test_a_setting_may_be_a_list(tmp_path: Path, run: Any) -> None:
    slow = 'slow_ranks=[{"rank": 1, "factor": 1.5}]'
    options = ["--ranks", "2", "--steps", "1", "--set", "clock_offsets_us=[0, 900]", "--set", slow]
    assert run("simulate", *options, "-o", tmp_path / "job").code == 0
    ran = run("simulate", "--set", "clock_offsets_us=[0,", "-o", tmp_path / "other")
    assert ran.code == 2
    assert "no list in JSON" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("kernel_us=1e300", "at most"),
        ("clock_offsets_us=[NaN, 1]", "at most"),
        ("clock_offsets_us=[0, -1e400]", "at most"),
        ('slow_ranks=[{"rank": 0, "factor": Infinity}]', "at most"),
        ("network_gb_s=1e-300", "longer than the clock"),
        ("pcie_gb_s=1e-300", "longer than the clock"),
    ],
)
def test_a_job_beyond_all_clocks_is_refused(setting: str, says: str, tmp_path: Path, run: Any) -> None:
    ran = run("simulate", "--ranks", "2", "--steps", "1", "--set", "layers=2", "--set", setting, "-o", tmp_path / "job")
    assert ran.code == 2
    assert says in " ".join(ran.err.split())
    assert not (tmp_path / "job").exists()


def test_a_client_lists_the_tools_and_asks_for_the_summary() -> None:
    pytest.importorskip("mcp.server.mcpserver")
    import anyio
    from mcp import Client, StdioServerParameters, stdio_client

    async def asked() -> tuple[list[str], str]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "htagraph", "mcp", str(REPOSITORY / "data" / "demo")],
            env=dict(os.environ), cwd=REPOSITORY,
        )  # fmt: skip
        async with Client(stdio_client(server)) as client:
            tools = await client.list_tools()
            answer = await client.call_tool("summary", {})
            return [tool.name for tool in tools.tools], str(getattr(answer.content[0], "text", ""))

    names, text = anyio.run(asked)
    assert {"jobs", "summary", "what_if", "diff", "event"} <= set(names)
    assert json.loads(text)["results"]["verdict"]


def test_without_the_package_it_says_what_to_install(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    one_line_of_error(run("mcp", str(REPOSITORY / "data" / "demo")), "pip install 'htagraph[mcp]'")
