"""The files of a critical path: a saved graph comes back whole, and nothing else is read; an overlay marks the path."""

from __future__ import annotations

import gzip
import pickle
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from htagraph.core.errors import TraceError
from htagraph.hta.analyzers.critical_path_analysis import CPGraph, critical_path_analysis
from htagraph.hta.shapes.path_files import is_zero_weight_launch_edge, overlay_critical_path_analysis, restore_cpgraph
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.hta.critical_paths import ALEXNET, HTA, MEASURE, SHOW_ZERO_LAUNCHES, SIMPLE_ADD, analysed, job_of, shared
from tests.reach import raw_events
from tests.trace_processor import Perfetto, needs_perfetto


@shared
def test_a_saved_graph_comes_back_without_its_trace(tmp_path: Path) -> None:
    graph = analysed(ALEXNET, MEASURE, 1)
    name = graph.save(str(tmp_path / "folder" / "saved"))
    assert name == str(tmp_path / "folder" / "saved.zip")
    for trace in (job_of(ALEXNET), None):
        restored = restore_cpgraph(name, trace, 0)
        assert restored.critical_path_nodes == graph.critical_path_nodes
        assert restored.critical_path_edges_set == graph.critical_path_edges_set
        assert restored.edge_to_event_map == graph.edge_to_event_map
        assert restored.node_list == graph.node_list
        assert restored.summary().to_dict() == graph.summary().to_dict()
        assert nx.utils.graphs_equal(restored, graph)
        assert restored.critical_path()
        assert restored.critical_path_nodes == graph.critical_path_nodes
    with pytest.raises(ValueError, match="restored without its trace"):
        restored.waited_for()
    with pytest.raises(TraceError, match="rank 0, not 1"):
        restore_cpgraph(name, None, 1)


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("unpickled",)


@shared
def test_what_htagraph_did_not_save_is_refused_and_not_run(tmp_path: Path) -> None:
    name = analysed(ALEXNET, MEASURE, 1).save(str(tmp_path / "good"))
    theirs = tmp_path / "hta.zip"
    with zipfile.ZipFile(theirs, "w") as archive:
        archive.writestr("tmp/x/trace_data.csv", "_index_\n")
        archive.writestr("tmp/x/cp_graph.pkl", pickle.dumps(_Trap()))
    trapped = tmp_path / "trapped.zip"
    with zipfile.ZipFile(name) as good, zipfile.ZipFile(trapped, "w") as archive:
        for part in good.namelist():
            archive.writestr(part, pickle.dumps(_Trap()) if part.endswith("npz") else good.read(part))
    text = tmp_path / "text.zip"
    text.write_text("no archive")
    for bad in (theirs, trapped, text, tmp_path / "absent.zip"):
        with pytest.raises(TraceError, match="saved"):
            restore_cpgraph(str(bad), None, 0)


def events_of(name: str) -> list[dict[str, Any]]:
    return raw_events(Path(name))


def marked(events: list[dict[str, Any]], phase: str) -> int:
    return sum(event["args"].get("critical", 0) for event in events if event["ph"] == phase and "args" in event)


@shared
def test_an_overlay_marks_the_path(graph: CPGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of weight 0 are shown on demand."""
    job = job_of(SIMPLE_ADD)
    name = overlay_critical_path_analysis(
        job, 0, graph, str(tmp_path / "new"), only_show_critical_events=False, show_all_edges=True
    )
    assert Path(name) == tmp_path / "new" / "overlaid_critical_path_simple_add.json.gz"
    events = events_of(name)
    assert (marked(events, "X"), marked(events, "f")) == (159, 314)
    types = Counter(event["args"]["type"] for event in events if "critical_path" in str(event.get("cat")))
    edges = Counter(
        data["object"].type.value
        for _, _, data in graph.edges(data=True)
        if not is_zero_weight_launch_edge(data["object"])
    )
    assert types == {word: 2 * count for word, count in edges.items()}
    monkeypatch.setenv(SHOW_ZERO_LAUNCHES, "1")
    every = events_of(
        overlay_critical_path_analysis(
            job, 0, graph, str(tmp_path), only_show_critical_events=False, show_all_edges=True
        )
    )
    assert sum(event["ph"] == "f" and event["cat"] == "critical_path" for event in every) == len(graph.edges)
    assert len(graph.edges) > sum(edges.values())
    few = events_of(overlay_critical_path_analysis(job, 0, graph, str(tmp_path), only_show_critical_events=False))
    assert (marked(few, "X"), marked(few, "f")) == (159, 21)


@shared
def test_an_overlay_of_critical_events_has_no_others(graph: CPGraph, tmp_path: Path) -> None:
    events = events_of(overlay_critical_path_analysis(job_of(SIMPLE_ADD), 0, graph, str(tmp_path), show_all_edges=True))
    slices = [
        each for each in events if each["ph"] == "X" and each["cat"] not in ("user_annotation", "python_function")
    ]
    assert len(slices) == marked(events, "X") == 159
    assert marked(events, "f") == 21


@shared
def test_an_overlay_of_plain_json_is_plain_json(tmp_path: Path) -> None:
    """HTA compresses whatever the name says (D16)."""
    plain = tmp_path / "trace.json"
    plain.write_bytes(gzip.decompress(ALEXNET.read_bytes()))
    job = TraceAnalysis({0: str(plain)})
    found = critical_path_analysis(job, 0, MEASURE, 1)
    assert found is not None
    events = events_of(overlay_critical_path_analysis(job, 0, found[0], str(tmp_path / "out")))
    assert marked(events, "X") == len(found[0].critical_path_events_set)


@shared
def test_a_file_in_the_folders_place_is_left_alone(graph: CPGraph, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.warns(UserWarning, match="not a directory"):
        assert not overlay_critical_path_analysis(job_of(SIMPLE_ADD), 0, graph, str(tmp_path / "file"))


@pytest.mark.slow
@needs_perfetto
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",  # the engine's wrapper leaves its pipes
)
@pytest.mark.parametrize("only_critical", [True, False])
@pytest.mark.parametrize(("path", "rank"), [
    (SIMPLE_ADD, 0), (HTA / "trace_diff" / "control" / "control.json.gz", 3),
    (HTA / "nccl" / "nccl_data.json.gz", 0),
])  # fmt: skip
def test_perfetto_reads_all_of_it(path: Path, rank: int, *, only_critical: bool, tmp_path: Path) -> None:
    graph = analysed(path, "ProfilerStep" if path != SIMPLE_ADD else MEASURE, 0, rank=rank)
    name = overlay_critical_path_analysis(
        job_of(path, rank), rank, graph, str(tmp_path), only_show_critical_events=only_critical, show_all_edges=True
    )
    perfetto = Perfetto(Path(name))
    assert perfetto.complaints() == []
    arrows = "select count(*) n from flow where extract_arg(arg_set_id, 'cat') = 'critical_path'"
    written_arrows = sum(event["ph"] == "f" and event["cat"] == "critical_path" for event in raw_events(Path(name)))
    assert perfetto.rows(arrows) == [(written_arrows,)]
    assert written_arrows
    critical = "select count(*) n from slice where extract_arg(arg_set_id, 'args.critical') = 1"
    assert perfetto.rows(critical) == [(len(graph.critical_path_events_set),)]
