"""A saved critical-path graph: it comes back whole, and nothing else is read."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from htagraph.core.errors import TraceError
from htagraph.hta.critical_path.analysis import (
    restore_cpgraph,
)
from tests.hta.critical_path.made import (
    ALEXNET,
    MEASURE,
    analysed,
    job_of,
    shared,
)


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
