"""What every command prints as JSON is what the schema says, column by column."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import htagraph as hg
from htagraph.output.render import to_json
from htagraph.output.reports.workers import job_report, job_stragglers_report
from htagraph.output.schema import COMMANDS, envelope_model, error_model, json_schema
from tests.reach import REPOSITORY
from tests.strategies import op, write

DEMO, HOST = (str(REPOSITORY / "data" / name) for name in ("demo", "gloo_ddp"))
RUNS: list[list[str]] = [
    ["summary", DEMO], ["critical-path", DEMO, "--segments"], ["what-if", DEMO, "--network", "0.5"],
    ["what-if", DEMO, "--network", "0.5", "--jitter", "0.05:5"], ["what-if", DEMO, "--sweep", "network=0.5,1"],
    ["plan", DEMO], ["stragglers", DEMO], ["collectives", DEMO, "--each"], ["diff", DEMO, HOST],
    ["diff", DEMO, HOST, "--names"], *(["kernels", DEMO, "--by", by] for by in ("name", "rank", "operator", "module")),
    ["kernels", HOST, "--by", "shape"], ["kernels", DEMO, "--by", "annotation"], ["idle", DEMO], ["idle", HOST],
    ["memory", DEMO], ["launches", DEMO], ["counters", DEMO, "--series"], ["roofline", HOST], ["phases", DEMO],
    ["patterns", DEMO, "--operator", "aten::addmm", "--min-length", "1"], ["validate", HOST, "--arguments"],
    ["cache", "info"],
]  # fmt: skip


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_what_a_command_prints_is_what_is_declared(words: list[str], run: Any) -> None:
    envelope = json.loads(run(*words, "-f", "json").out)
    envelope_model(envelope["command"], strict=True).model_validate(envelope)


def test_a_job_without_anything_is_valid_too(run: Any, tmp_path: Path) -> None:
    nothing = write([], tmp_path / "rank-0.json")
    for command in ("summary", "critical-path", "stragglers", "launches", "phases"):
        envelope = json.loads(run(command, nothing, "-f", "json").out)
        envelope_model(command, strict=True).model_validate(envelope)


def test_a_job_on_workers_is_valid() -> None:
    with ThreadPoolExecutor(2) as pool:
        job = hg.load(DEMO, engine=pool)
        for command, report in (("summary", job_report(job)), ("stragglers", job_stragglers_report(job))):
            envelope = json.loads(to_json(report.to_dict()))
            model = envelope_model(f"{command} --scheduler", strict=True)
            model.model_validate(envelope)
            with pytest.raises(ValidationError):
                model.model_validate(envelope | {"results": {}})


def test_an_error_is_valid(run: Any, tmp_path: Path) -> None:
    error_model().model_validate(json.loads(run("idle", tmp_path / "none", "-f", "json").out))


def test_a_column_of_another_type_or_name_is_not(run: Any, tmp_path: Path) -> None:
    trace = write([op("a", 0, 5)], tmp_path / "rank-0.json")
    envelope = json.loads(run("idle", trace, "-f", "json").out)
    model = envelope_model("idle", strict=True)
    model.model_validate(envelope)
    row = {"rank": 0, "device": 0, "stream": 7, "cause": "other", "idle_us": 1.0, "count": 1, "mean_us": 1.0,
           "max_us": None, "share_percent": 2.0}  # fmt: skip
    for more in ({"rank": "zero"}, {"new": 1}, {"cause": None}):
        envelope["results"]["streams"] = [row | more]
        with pytest.raises(ValidationError):
            model.model_validate(envelope)
    envelope["results"]["streams"] = [row]
    model.model_validate(envelope)


@pytest.mark.parametrize("command", [*COMMANDS, None])
def test_each_schema_is_one(command: str | None) -> None:
    schema = json_schema(command)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    assert not jsonschema.Draft202012Validator(schema).is_valid({"command": command})


def test_the_schema_accepts_what_is_printed_and_units_are_in_it(run: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    envelope = json.loads(run("plan", DEMO, "-f", "json").out)
    for schema in (json_schema("plan"), json_schema()):
        jsonschema.validate(envelope, schema)
    rows = json_schema("plan")["$defs"]["PlanOpportunitiesRow"]["properties"]
    assert rows["gain_us"]["description"] == "µs"
    envelope["results"]["opportunities"][0]["gain_us"] = "long"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(envelope, json_schema("plan"))
