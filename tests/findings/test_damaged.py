"""Whether files that end early, and only these, make the verdict uncertain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htagraph.core.errors import Issue
from htagraph.findings.cut_short import CUT_SHORT
from htagraph.findings.results import Results
from htagraph.findings.verdict import in_brief
from tests.strategies import load, op


@pytest.mark.parametrize(
    ("what", "detail", "said"),
    [
        ("truncated", "the file ends early; events up to its end were read", True),
        ("gzip_truncated", "the compressed file ends early", True),
        ("truncated", "the file ends after its events, before the closing brace; all events were read", False),
        ("no_window_end", "no event", False),
    ],
)
def test_a_file_that_is_cut_short_makes_the_verdict_uncertain(what: str, detail: str, *, said: bool) -> None:
    """Without the kernels behind the cut, what waits for them is 'bound by host code'."""
    graph = replace(load([op("aten::mm", 0, 90)]), issues=(Issue("rank-2.json", what, detail, 1, 2),))
    text = in_brief(CUT_SHORT.when(Results(graph)))[0]
    words = "Caution: rank 2's file is cut short, and the time of what is missing, such as device work, looks like"
    assert [line.startswith(words) for line in text] == [True] * said
