"""Tables as files that other programs read."""

from __future__ import annotations

import builtins
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.errors import HtagraphError
from htagraph.output.export.parquet import table_bytes, write_tables
from tests.reach import DATASETS, graph_of, label
from tests.strategies import COMPUTE, kernel, launch, load, op, step

pytest.importorskip("pyarrow")


def tables(graph: DependencyGraph, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    activities, edges, issues = hg.to_parquet(graph, folder)
    return pd.read_parquet(activities), pd.read_parquet(edges), pd.read_parquet(issues)


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_the_tables_say_what_the_graph_says(path: Path, tmp_path: Path) -> None:
    graph = graph_of(path)
    activities, edges, issues = tables(graph, tmp_path)
    acts = graph.activities
    assert activities["activity"].tolist() == list(range(len(acts)))
    assert activities["name"].tolist() == [graph.names[name] for name in acts.name]
    assert activities["kind"].tolist() == [hg.ActivityKind(kind).label for kind in acts.kind]
    assert activities["lane"].tolist() == [graph.lane_of(row).label for row in range(len(acts))]
    assert activities["parent"].fillna(-1).tolist() == graph.tree.parent.tolist()
    assert activities["cause"].fillna(-1).tolist() == acts.cause.tolist()
    assert activities["duration_ns"].tolist() == acts.duration.tolist()
    for name in {"correlation", "external_id"} & set(acts.args):
        assert activities[f"arg_{name}"].fillna(-1).tolist() == acts.arg(name).tolist()
    assert activities["rank"].isna().tolist() == (acts.kind == hg.ActivityKind.JOIN).tolist()
    assert (2 * edges["source"] + edges["from_end"]).tolist() == graph.edges.source.tolist()
    assert (2 * edges["target"] + edges["to_end"]).tolist() == graph.edges.target.tolist()
    assert edges["kind"].tolist() == [hg.EdgeKind(kind).label for kind in graph.edges.kind]
    assert edges["owner"].fillna(-1).tolist() == graph.edges.activity.tolist()
    assert np.flatnonzero(edges["binding"]).tolist() == sorted(graph.binding[graph.binding >= 0].tolist())
    assert issues["detail"].tolist() == [issue.detail for issue in graph.issues]


def test_times_and_gaps_add_up_along_binding_edges(tmp_path: Path) -> None:
    """The tables alone give back every recorded time: the source's moment plus lag and gap."""
    activities, edges, _ = tables(graph_of(DATASETS[0]), tmp_path)
    moments = activities["start_us"] * 1000, activities["start_us"] * 1000 + activities["duration_ns"]
    gaps = activities["start_gap_ns"], activities["end_gap_ns"]
    bound = edges[edges["binding"]]
    source = np.where(bound["from_end"], moments[1][bound["source"]], moments[0][bound["source"]])
    target = np.where(bound["to_end"], moments[1][bound["target"]], moments[0][bound["target"]])
    gap = np.where(bound["to_end"], gaps[1][bound["target"]], gaps[0][bound["target"]])
    np.testing.assert_allclose(source + bound["lag_ns"] + gap, target, atol=0.5)


def test_arguments_of_text_are_texts(tmp_path: Path) -> None:
    graph = load([step(1, 0, 9), launch(1, 1, 1), {**kernel(COMPUTE, 3, 5, 1)}])
    activities, _, _ = tables(graph, tmp_path)
    assert activities["arg_correlation"].dropna().tolist() == [1, 1]
    demo, _, _ = tables(graph_of(DATASETS[0]), tmp_path)
    names = demo["arg_collective_name"].dropna().astype(str)
    assert set(names) <= {"", *graph_of(DATASETS[0]).names}
    assert names.str.contains("all").any()


def test_names_that_no_encoding_has_are_written(tmp_path: Path) -> None:
    graph = load([op("whole", 0, 1)])
    graph = replace(graph, names=tuple(name.replace("whole", "half \ud800") for name in graph.names))
    assert tables(graph, tmp_path)[0]["name"].tolist() == ["half ?"]


def test_a_job_without_events_has_empty_tables(tmp_path: Path) -> None:
    activities, edges, issues = tables(load({0: []}), tmp_path)
    assert (len(activities), len(edges)) == (0, 0)
    assert list(issues.columns) == ["rank", "file", "what", "detail", "count"]


def test_the_docstring_names_every_column(tmp_path: Path) -> None:
    documented = hg.to_parquet.__doc__ or ""
    for table in tables(graph_of(DATASETS[0]), tmp_path):
        absent = [name for name in table.columns if not name.startswith("arg_") and f"``{name}``" not in documented]
        assert not absent


def test_nothing_but_the_tables_is_left_in_the_folder(tmp_path: Path) -> None:
    for _ in range(2):
        hg.to_parquet(graph_of(DATASETS[0]), tmp_path / "new")
    names = ["activities.parquet", "edges.parquet", "issues.parquet"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == names


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(hg.HtagraphError, match=r"pip install 'htagraph\[parquet\]'"):
        hg.to_parquet(graph_of(DATASETS[0]), tmp_path)


TABLES = {
    "kernels": pd.DataFrame({"name": ['a,b\n"c"', "=1"], "total_us": [1.5, math.inf], "rank": [0, -1]}),
    "empty": pd.DataFrame({"rank": pd.array([], dtype="int64")}),
    "figures": pd.DataFrame({"straggler": [None], "by": ["name"]}),
}


def test_pandas_reads_each_csv(tmp_path: Path) -> None:
    files = write_tables(TABLES, tmp_path / "out", "csv")
    assert sorted(file.name for file in files) == ["empty.csv", "figures.csv", "kernels.csv"]
    read = pd.read_csv(tmp_path / "out" / "kernels.csv")
    assert read["rank"].tolist() == [0, -1]
    assert read["total_us"].isna().tolist() == [False, True]
    assert read["name"].tolist() == ['a,b "c"', "'=1"]
    assert list(pd.read_csv(tmp_path / "out" / "empty.csv").columns) == ["rank"]


def test_parquet_has_the_names_and_types_of_the_tables(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_tables(TABLES, tmp_path / "out", "parquet")
    read = pd.read_parquet(tmp_path / "out" / "kernels.parquet")
    assert read["name"].tolist() == TABLES["kernels"]["name"].tolist()
    assert read.dtypes["rank"] == "int64"
    assert pd.read_parquet(tmp_path / "out" / "figures.parquet")["straggler"].isna().all()


def test_without_pyarrow_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(HtagraphError, match=r"htagraph\[parquet\]"):
        table_bytes(TABLES["kernels"], "parquet")
