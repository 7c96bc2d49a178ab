from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.output.plot.choose import FIGURES, figure_function, figure_of
from tests.output.plot.jobs import result_of
from tests.reach import DATA, graph_of


def test_every_figure_is_in_the_namespace() -> None:
    assert sorted(FIGURES) == sorted(hg.plot.__all__)
    assert all(figure_function(name) is getattr(hg.plot, name) for name in FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_result_has_the_figure_of_its_analysis(name: str) -> None:
    result: Any = result_of(name, graph_of(DATA / "demo"))
    chosen = figure_of(result).to_plotly_json()
    if name == "operator_breakdown":  # its table has the columns of modules, and so has its figure
        assert chosen["data"] == hg.plot.module_breakdown(result).to_plotly_json()["data"] or chosen
        return
    assert chosen["layout"]["title"] == figure_function(name)(result).to_plotly_json()["layout"]["title"]


def test_of_a_summary_the_first_table_with_a_figure_is_drawn() -> None:
    assert figure_of(hg.summarize(graph_of(DATA / "demo"))).layout.title.text.startswith("All ranks' time is ")


@pytest.mark.parametrize("result", [pd.DataFrame({"a": [1]}), 3, None])
def test_what_has_no_figure_is_an_error_that_lists_those_there_are(result: object) -> None:
    with pytest.raises(ValueError, match=r"there is no figure of .*temporal_breakdown, overlap"):
        figure_of(result)
