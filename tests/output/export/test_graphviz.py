"""Pictures: what they show, how they fold, and what they refuse."""

from __future__ import annotations

import html
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened
from htagraph.output.export.graphviz import draw
from htagraph.output.export.path_drawing import fold_path
from tests.command_line import Ran
from tests.reach import DATA, JOBS, LARGE_BYTES, SHARED, graph_of, label
from tests.strategies import COMPUTE, kernel, launch, load, op

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
SMALL = [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES]
BIG = [path for name in ("megatron_tp8_a100", "torchrec_v100_equal") if (path := SHARED / name).is_dir()]
"""Jobs of several ranks, whose paths have thousands of segments."""


def nodes(source: str) -> list[str]:
    return re.findall(r"^\s+(n\d+) \[", source, re.MULTILINE)


def edges(source: str) -> list[tuple[str, str]]:
    return re.findall(r"^\s+(n\d+) -> (n\d+)", source, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL, ids=label)
def test_a_path_is_a_chain_of_few_boxes(path: Path) -> None:
    critical = hg.critical_path(graph_of(path))
    source = hg.to_graphviz(critical).source
    count = len(nodes(source))
    assert 0 < count == len(set(nodes(source))) <= 40
    assert edges(source) == [(f"n{at - 1}", f"n{at}") for at in range(1, count)]
    assert source == hg.to_graphviz(hg.critical_path(graph_of(path))).source
    assert len(nodes(hg.to_graphviz(critical, max_nodes=7).source)) <= 7


def test_a_path_shows_time_ranks_categories_and_who_waited() -> None:
    source = hg.to_graphviz(hg.critical_path(graph_of(DATA / "gloo_ddp"))).source
    for text in (
        "Critical path: 282.1 ms",
        "rank 2\\l275.4 ms (98 %)",
        "head 6.28 ms (2 %)",
        "50 ms",
        '"before reco',
    ):
        assert text in source
    assert "rank 0 had waited 51.1 ms" in source
    assert "tooltip" in source
    assert "rank 1" not in source


@pytest.mark.parametrize("most", [1, 7, 40])
def test_the_widths_of_boxes_are_their_time(most: int) -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    source = hg.to_graphviz(path, max_nodes=most).source
    widths = [float(width) for width in re.findall(r"^\tn\d+ \[.* width=([\d.]+)\]", source, re.MULTILINE)]
    boxes = fold_path(path, most)
    assert len(widths) == len(boxes)
    for width, box in zip(widths, boxes, strict=True):
        assert width / sum(widths) == pytest.approx(box.length_ns / path.makespan_ns, abs=0.01)


@needs_dot
@pytest.mark.parametrize("path", [*SMALL[:3], *BIG], ids=label)
def test_a_path_fits_a_screen(path: Path) -> None:
    drawn = draw_of(path)
    width, unit = re.search(r'<svg width="(\d+)(pt)"', drawn).groups()  # type: ignore[union-attr]
    assert int(width) * 96 / 72 <= 1600, unit  # a point is 1/72 inch, a pixel 1/96


@cache
def draw_of(path: Path) -> str:
    return str(hg.to_graphviz(hg.critical_path(hg.load(path))).pipe(format="svg", encoding="utf-8"))


def test_a_selection_shows_its_dependencies_and_what_is_critical() -> None:
    graph = graph_of(DATA / "demo")
    some = graph.select(rank=0, step=5, op="DistributedDataParallel.forward")
    source = hg.to_graphviz(some).source
    assert 0 < len(nodes(source)) <= len(some)
    assert set(sum(edges(source), ())) <= set(nodes(source))
    assert "launch" in source
    assert "dashed" in source
    whole = load([launch(0, 2, 1), launch(3, 2, 2), kernel(COMPUTE, 5, 9, 1), kernel("other", 15, 5, 2)])
    small = hg.to_graphviz(whole.select(kind="device")).source
    assert edges(small) == [("n2", "n3")]
    assert "stream" in small
    assert "#d00000" in small


def test_a_long_chain_is_one_node() -> None:
    work = [kernel(f"k{i % 2}", 10 * i + 5, 9, i) for i in range(40)]
    graph = load([*(launch(2 * i, 1, i) for i in range(1)), *work])
    source = hg.to_graphviz(graph.select(kind="device")).source
    assert len(nodes(source)) == 3
    assert "… 38 activities, 342.0 µs" in source


def test_too_many_nodes_are_refused_with_advice() -> None:
    graph = graph_of(DATA / "demo")
    with pytest.raises(SelectionError, match=r"nodes would be drawn.*rank="):
        hg.to_graphviz(graph.select())
    with pytest.raises(SelectionError, match="more than 3"):
        hg.to_graphviz(graph.select(rank=0, step=5, op="DistributedDataParallel.forward"), max_nodes=3)
    with pytest.raises(SelectionError, match="max_nodes=0"):
        hg.to_graphviz(hg.critical_path(graph), max_nodes=0)
    with pytest.raises(SelectionError, match="nothing to draw"):
        hg.to_graphviz(load([]).select())


ODD = ['a"b', "a\\nb\\", "<b>bold</b>", "{x|y}", "ümläut 核", "tab\there\nline", "\\L\\N", "-> n1", "&amp;", "x" * 300]


@needs_dot
@pytest.mark.parametrize("name", ODD)
def test_names_are_shown_as_they_are(name: str, tmp_path: Path) -> None:
    graph = load([op(name, 0, 5), op("next", 6, 3)])
    picture = draw(graph.select(), tmp_path / "new" / "o.svg").read_text()
    shown = html.unescape(picture).replace("\xa0", " ")
    expected = re.sub(r"[\x00-\x1f]+", " ", short_name(name))
    assert shortened(expected, 40) in shown
    path = draw(hg.critical_path(graph), tmp_path / "path.svg").read_text()
    assert shortened(re.sub(r"[\x00-\x1f]+", " ", name), 400) in html.unescape(path).replace("\xa0", " ")


@needs_dot
@pytest.mark.parametrize("path", [DATA / "demo", DATA / "gloo_ddp"], ids=label)
@pytest.mark.parametrize("suffix", ["svg", "pdf", "png", "dot"])
def test_pictures_are_drawn_in_every_format(path: Path, suffix: str, tmp_path: Path) -> None:
    begins = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "dot": b"digraph"}
    assert draw(hg.critical_path(graph_of(path)), tmp_path / f"o.{suffix}").read_bytes().startswith(begins[suffix])


def test_without_graphviz_the_source_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = hg.critical_path(graph_of(DATA / "demo"))
    assert draw(path, tmp_path / "o.gv") == tmp_path / "o.gv"
    assert draw(path, tmp_path / "o.svg") == tmp_path / "o.dot"
    assert (tmp_path / "o.dot").read_text() == (tmp_path / "o.gv").read_text() == hg.to_graphviz(path).source
    ran: Ran = run("critical-path", DATA / "demo", "--graphviz", tmp_path / "p.png")
    assert ran.code == 0
    said = "".join(ran.err.split())
    assert f"dot-Tpng{tmp_path}/p.dot-o{tmp_path}/p.png" in said
    assert (tmp_path / "p.dot").is_file()
    assert not (tmp_path / "p.png").exists()
    with pytest.raises(HtagraphError, match=r"pictures end in \.svg"):
        draw(path, tmp_path / "o.jpeg")
    (tmp_path / "file").write_text("")
    with pytest.raises(HtagraphError, match="cannot be written"):
        draw(path, tmp_path / "file" / "o.dot")


@pytest.mark.slow
def test_the_command_line_writes_both(run: Any, tmp_path: Path) -> None:
    out, picture = tmp_path / "o.json.gz", tmp_path / "o.dot"
    ran: Ran = run("critical-path", DATA / "demo", "--perfetto", out, "--graphviz", picture)
    assert ran.code == 0
    assert out.is_file()
    assert picture.is_file()
    assert "12 arrows added" in ran.err.replace("\n", " ")


def test_a_whole_graph_is_not_drawn_but_what_is_selected_of_it() -> None:
    graph: Any = hg.load(DATA / "demo", ranks=[0])
    with pytest.raises(TypeError, match=r"DependencyGraph is not drawn: .*graph\.select"):
        hg.to_graphviz(graph)
