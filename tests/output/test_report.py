"""Whether a report says what was read, and its envelope is JSON."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
import typer

from htagraph.cli import main as cli
from htagraph.core.tables import Table
from htagraph.findings.phrases import CATEGORY_WORDS
from htagraph.output.report import CONTENTS, SCHEMA_VERSION, Report, report_on, wording_of
from htagraph.output.schema import ASKED, COMMANDS
from htagraph.queries.inputs import INPUTS, ISSUES, inputs_of, issues_of, window_us
from tests.reach import REPOSITORY
from tests.strategies import COMPUTE, kernel, launch, load, step

TYPES = {"int64", "float64", "str", "bool", "list", "any", "int64?"}
BANNED = (
    "told by", "is its doing", "works", "their own masters", "on its way", "what would be critical next",
    "stand still", "such as it is", "that nothing explains",
)  # fmt: skip


def test_a_report_on_a_graph_carries_what_was_read() -> None:
    graph = load({0: [step(4, 0, 90), launch(5, 2, 1), kernel(COMPUTE, 10, 20, 1)], 2: [step(6, 0, 90)]})
    report = report_on(graph, "idle", {"streams": pd.DataFrame({"rank": [0]})}, ["It is idle."])
    assert isinstance(report, Report)
    assert report.inputs["rank"].tolist() == inputs_of(graph)["rank"].tolist() == [0, 2]
    assert report.inputs["steps"].tolist() == ["4", "6"]
    assert len(report.issues) == len(issues_of(graph))
    assert report.window_us == window_us(graph)


def test_its_envelope_is_json_without_nan() -> None:
    table = pd.DataFrame({"us": [1.5, float("nan")]})
    report = report_on(load([step(4, 0, 90)]), "idle", {"streams": table}, ["a"], figures={"low": float("inf")})
    envelope = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (envelope["schema_version"], envelope["command"]) == (SCHEMA_VERSION, "idle")
    assert envelope["results"] == {"low": None, "streams": [{"us": 1.5}, {"us": None}], "conclusions": ["a"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tables_of_a_command_are_declared_well(command: str) -> None:
    contents = CONTENTS[command]
    assert set(contents.maybe) <= set(contents.tables)
    for table in (*contents.tables.values(), Table("Figures", *contents.figures), INPUTS, ISSUES):
        names = [name for col in table.cols for name in col.names.split()]
        assert len(names) == len(set(names))
        assert {col.type for col in table.cols} <= TYPES
        assert all(" " not in col.names for col in table.cols if col.heading)
        assert set(table.rank_by.split()) <= set(names)


@pytest.mark.parametrize("command", COMMANDS)
def test_titles_are_one_capitalized_line(command: str) -> None:
    titles = wording_of(command).titles.values()
    assert all(title[0].isupper() or title.startswith("torch.") for title in titles)
    assert max(map(len, titles), default=0) <= 100


def test_what_gives_something_is_a_command_or_what_servers_are_asked() -> None:
    known = set(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined] # of a group
    assert {command.split()[0] for command in COMMANDS} <= known | set(ASKED)


def test_no_title_or_sentence_has_a_banned_phrase() -> None:
    texts = [*CATEGORY_WORDS.values(), *(title for each in COMMANDS for title in wording_of(each).titles.values())]
    for path in [REPOSITORY / "htagraph/output/validation.py", *(REPOSITORY / "htagraph/findings").glob("verbs/*.py")]:
        texts += re.findall(r'f?"([^"\n]* [^"\n]*)"', path.read_text(encoding="utf-8"))
    assert [text for text in texts for phrase in BANNED if phrase in text.lower().replace("networks", "")] == []
