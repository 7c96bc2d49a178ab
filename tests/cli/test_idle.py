"""``htagraph idle`` on data/demo and on small jobs."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from htagraph.cli.idle import report
from tests.reach import REPOSITORY
from tests.strategies import COMPUTE, kernel, launch, load

DEMO = str(REPOSITORY / "data" / "demo")


def test_the_longest_pauses_come_first(run: Any) -> None:
    ran = run("idle", DEMO, "--top", "5", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)["results"]
    pauses = [row["pause_us"] for row in found["pauses"]]
    assert len(pauses) == 5
    assert pauses == sorted(pauses, reverse=True)
    assert pauses[0] == max(row["max_us"] for row in found["streams"])
    for sentence in found["conclusions"]:
        _, suggested, line = sentence.partition(": htagraph ")
        if suggested:
            assert run(*shlex.split(line)).code == 0


@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_every_format_can_be_written(form: str, run: Any) -> None:
    ran = run("idle", DEMO, "-f", form)
    assert (ran.code, ran.err) == (0, "")


def test_the_host_is_blamed_for_late_launches() -> None:
    late = load([launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(100, 2, 2), kernel(COMPUTE, 105, 5, 2)])
    said = report(late, ["x"]).sentences
    assert said[0].endswith("100 % of it is host_wait: the host launched the next kernel or copy too late.")
    assert said[1] == (
        "With an infinitely fast host the job would be 90 % shorter. To see what bounds it then: "
        "htagraph what-if x --infinite-host"
    )


def test_a_job_without_pauses_says_so() -> None:
    assert report(load([kernel(COMPUTE, 0, 5)]), []).sentences == [
        "No stream is idle between its first and its last kernel or copy."
    ]
    assert report(load([]), []).sentences[0].startswith("Nothing ran on a device")
