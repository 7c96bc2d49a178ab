"""Whether a report says what was read, and its envelope is JSON."""

from __future__ import annotations

import json

import pandas as pd

from htagraph.output.report import SCHEMA_VERSION, Report, report_on
from htagraph.queries.inputs import inputs_of, issues_of, window_us
from tests.strategies import COMPUTE, kernel, launch, load, step


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
