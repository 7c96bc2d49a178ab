"""Which file is which rank, and what is refused because nobody can know."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

import htagraph
from htagraph.core.errors import HtagraphError, RankError, TraceError
from htagraph.trace import discover
from htagraph.trace.discover import (
    RankedFile,
    checked_rank,
    find_files,
    number_in_name,
    pattern_of_name,
    rank_files,
    rank_in_name,
    runs_of,
)
from htagraph.trace.readers import read_trace
from htagraph.trace.remote import TracePath
from tests.damage import document, header, healthy, kineto_text, written
from tests.trace.pftrace.made import small

EVENTS = healthy(1)


def trace(path: Path, rank: int | None = None, **info: Any) -> Path:
    """Write a trace whose header has `rank`, or no word of it."""
    root: dict[str, Any] = {"schemaVersion": 1}
    if rank is not None or info:
        root["distributedInfo"] = {**info, **({} if rank is None else {"rank": rank})}
    return written(path, json.dumps({**root, "traceEvents": EVENTS}))


def ranks(files: list[RankedFile]) -> dict[int, tuple[str, str]]:
    return {file.rank: (file.path.name, file.source) for file in files}


def test_the_header_says_the_rank_whatever_the_name_and_wherever_it_stands(tmp_path: Path) -> None:
    trace(tmp_path / "rank-7.json", 1)
    trace(tmp_path / "b.json.gz", 0)
    root = {"schemaVersion": 1, "traceEvents": EVENTS, "distributedInfo": {"rank": "2"}}
    written(tmp_path / "host5.json.gz", json.dumps(root))
    expected = {0: ("b.json.gz", "header"), 1: ("rank-7.json", "header"), 2: ("host5.json.gz", "header")}
    assert ranks(rank_files(tmp_path)) == expected


@pytest.mark.parametrize(("name", "rank"), [("rank4.json", 4), ("x_rank-6_2026.json", 6)])
def test_the_name_says_the_rank_where_the_header_does_not(name: str, rank: int, tmp_path: Path) -> None:
    trace(tmp_path / name)
    trace(tmp_path / "rank-1.json")
    assert ranks(rank_files(tmp_path))[rank] == (name, "name")


def test_the_number_in_which_names_differ_is_the_rank(tmp_path: Path) -> None:
    for number in range(11):
        trace(tmp_path / f"kineto_v2_{number}.json")
    found = rank_files(tmp_path)
    assert [(file.rank, file.path.name) for file in found] == [(i, f"kineto_v2_{i}.json") for i in range(11)]


def test_numbers_in_the_names_of_very_many_files_are_no_ranks_and_few_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover, "_MOST_BY_NUMBER", 11)
    for number in range(12):
        trace(tmp_path / f"kineto_v2_{number}.json")
    with pytest.raises(RankError, match=r"no rank in kineto_v2_0\.json, .* and 4 more \(neither"):
        rank_files(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.rename(tmp_path / f"rank0_{path.name}")
    with pytest.raises(RankError, match=r"run A: .*; run H: [^;]*; and 4 more runs\. Pass") as refused:
        rank_files(tmp_path)
    assert len(str(refused.value)) < 1_000


def test_a_single_file_is_rank_zero(tmp_path: Path) -> None:
    assert ranks(rank_files(trace(tmp_path / "pid44237.pt.trace.json"))) == {0: ("pid44237.pt.trace.json", "only file")}


@pytest.mark.parametrize("names", [("a.json", "b.json"), ("pid4.json", "pid9.json"), ("rank-0.json", "other.json")])
def test_files_that_name_no_rank_are_refused_with_a_way_out(names: tuple[str, str], tmp_path: Path) -> None:
    for name in names:
        trace(tmp_path / name)
    with pytest.raises(RankError, match=rf"no rank in .*{names[1]}.*give one file, such as"):
        rank_files(tmp_path)


def test_two_files_of_one_rank_are_listed_as_two_runs(tmp_path: Path) -> None:
    for number, name in enumerate(("rank-0.a.json", "rank-1.a.json", "rank-0.b.json", "rank-1.b.json")):
        os.utime(trace(tmp_path / name), (number, number))
    with pytest.raises(RankError) as error:
        rank_files(tmp_path)
    text = str(error.value)
    assert "several runs in one place (rank 0 has 2 files)" in text
    assert "run A: rank-0.a.json (rank 0), rank-1.a.json (rank 1)" in text
    assert "run B: rank-0.b.json (rank 0), rank-1.b.json (rank 1)" in text


def test_two_runs_are_told_apart_by_their_world_size_but_a_map_is_taken_at_its_word(tmp_path: Path) -> None:
    one, other = trace(tmp_path / "a.json", 0, world_size=2), trace(tmp_path / "b.json", 1, world_size=4)
    with pytest.raises(RankError, match=r"world size 2 and world size 4.*run A: a\.json.*run B: b\.json"):
        rank_files(tmp_path)
    assert ranks(rank_files({5: one, 2: other})) == {2: ("b.json", "given"), 5: ("a.json", "given")}


def test_globs_lists_and_folders_may_be_mixed_and_repeat(tmp_path: Path) -> None:
    one, two = trace(tmp_path / "x" / "rank-0.json"), trace(tmp_path / "y" / "rank-1.json")
    three = trace(tmp_path / "z[1]" / "rank-2.json")
    assert find_files(f"{tmp_path}/*/rank-[01].json") == [one, two]
    assert find_files([tmp_path / "x", one, f"{tmp_path}/**/rank-1*", str(three)]) == [one, two, three]


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.json.tmp", "a.json.gz.tmp", "a.pt.trace.json"])
def test_a_folder_yields_every_kind_of_trace_file(name: str, tmp_path: Path) -> None:
    path = trace(tmp_path / name)
    written(tmp_path / "README.md", "no trace")
    (tmp_path / "sub.json").mkdir()
    assert find_files(tmp_path) == [path]


def test_a_killed_exports_temporary_file_is_read(tmp_path: Path) -> None:
    written(tmp_path / "rank-0.json.tmp", kineto_text(EVENTS)[:-300])
    assert ranks(rank_files(tmp_path)) == {0: ("rank-0.json.tmp", "header")}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (
            "",
            r"no \.json, .*\.pftrace\.gz file in this folder; there are traces in .*run1",
        ),
        ("none.json", "no such file, folder or match"),
        ("none/", "no such file, folder or match"),
        ("*.none", "no such file, folder or match"),
        ("empty", "in this folder"),
        ({0: "none.json"}, r"none\.json: no such file"),
    ],
)
def test_paths_without_a_trace_are_refused(path: Any, says: str, tmp_path: Path) -> None:
    trace(tmp_path / "run1" / "rank-0.json")
    (tmp_path / "empty").mkdir()
    where: Any = (
        str(tmp_path / path) if isinstance(path, str) else {rank: tmp_path / each for rank, each in path.items()}
    )
    with pytest.raises(TraceError, match=says):
        rank_files(where)


def test_other_json_beside_a_trace_is_left_out_and_reported(tmp_path: Path) -> None:
    written(tmp_path / "rank-0.json", document(EVENTS))
    written(tmp_path / "config.json", '{"lr": 0.1}')
    written(tmp_path / "et.json", '{"schema": "1.1", "nodes": []}')
    left_out: list[tuple[TracePath, HtagraphError]] = []
    for where in (tmp_path, str(tmp_path / "*.json")):
        left_out.clear()
        files = rank_files(where, left_out=lambda path, error: left_out.append((path, error)))
        assert ranks(files) == {0: ("rank-0.json", "header")}
        assert [path.name for path, _ in left_out] == ["config.json", "et.json"]
        assert "without traceEvents (found: lr)" in str(left_out[0][1])


def test_other_json_that_was_asked_for_is_refused(tmp_path: Path) -> None:
    trace_file = written(tmp_path / "rank-0.json", document(EVENTS))
    other = written(tmp_path / "config.json", '{"lr": 0.1}')
    with pytest.raises(TraceError, match=r"config\.json: JSON, but without traceEvents \(found: lr\)"):
        rank_files([trace_file, other])
    trace_file.unlink()
    with pytest.raises(TraceError, match=r"config\.json: JSON, but without traceEvents"):
        rank_files(tmp_path)


def test_text_that_is_no_json_is_not_left_out(tmp_path: Path) -> None:
    trace(tmp_path / "rank-0.json", 0)
    written(tmp_path / "rank-1.json", "not JSON")
    with pytest.raises(TraceError, match="not JSON"):
        rank_files(tmp_path, left_out=lambda *_: None)


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    trace(tmp_path / "rank-0.json", 0)
    for paths in ("~", "~/rank-0.json", "~/*.json", {0: "~/rank-0.json"}):
        assert list(ranks(rank_files(paths))) == [0]


@pytest.mark.parametrize("info", [{"rank": None}, {"rank": -1}, {"rank": "x"}, [], "none", {"backend": "nccl"}])
def test_a_header_without_a_usable_rank_leaves_it_to_the_name(info: Any, tmp_path: Path) -> None:
    for rank in (0, 1):
        root = {**header(), "distributedInfo": info, "traceEvents": EVENTS}
        written(tmp_path / f"rank-{rank}.json", json.dumps(root))
    assert [file.source for file in rank_files(tmp_path)] == ["name", "name"]


def cut(path: Path, text: str, share: float = 0.5) -> Path:
    """Write the first part of a gzip file, as a killed job leaves it; its header and some events are in it."""
    noisy = re.sub(r"gemm<\d>", lambda _: f"gemm<{random.Random(str(_)).getrandbits(256):x}>", text)
    data = gzip.compress(noisy.encode(), 6)
    path.write_bytes(data[: int(len(data) * share)])
    return path


def behind(rank: int) -> str:
    """Return a trace whose header follows the events, as of traces on demand."""
    return json.dumps({"schemaVersion": 1, "traceEvents": healthy(60), "distributedInfo": {"rank": rank}})


@pytest.mark.parametrize("lost", [(0,), (1,), (2,), (3,), (0, 1), (1, 2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("name", ["rank-{}.json.gz", "job_rank{}.1719840000.pt.trace.json.gz"])
def test_a_file_that_ends_before_its_rank_has_the_rank_of_its_name(
    lost: tuple[int, ...], name: str, tmp_path: Path
) -> None:
    for rank in range(4):
        path = tmp_path / name.format(rank)
        cut(path, behind(rank)) if rank in lost else written(path, behind(rank))
    for rank in lost:  # alone, too
        path = tmp_path / name.format(rank)
        assert htagraph.load(path).ranks == (rank,)
    files = ranks(rank_files(tmp_path))
    assert {rank: file[0] for rank, file in files.items()} == {rank: name.format(rank) for rank in range(4)}
    assert {rank for rank, file in files.items() if file[1] == "name"} == set(lost)
    graph = htagraph.load(tmp_path)
    assert graph.ranks == (0, 1, 2, 3)
    assert {issue.rank for issue in graph.issues if issue.what in {"truncated", "gzip_truncated"}} == set(lost)


def test_wherever_a_file_is_cut_it_is_never_of_another_rank(tmp_path: Path) -> None:
    whole = gzip.compress(behind(3).encode(), 6)
    path = tmp_path / "rank-3.json.gz"
    seen = set()
    for end in range(20, len(whole), 41):
        path.write_bytes(whole[:end])
        try:
            seen.add(read_trace(path, rank_files(path)[0].rank_in).rank)
        except TraceError:
            continue
    assert seen == {3}


@pytest.mark.parametrize(("whole", "said"), [((0, 1, 2), True), ((0,), False), ((4, 5, 6), False)])
def test_numbers_in_names_count_for_cut_files_if_two_headers_bear_them_out(
    whole: tuple[int, ...],
    said: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    for rank, number in enumerate(whole):
        written(tmp_path / f"trace_{number}.json.gz", behind(rank))
    cut(tmp_path / "trace_3.json.gz", behind(3))
    if said:
        assert ranks(rank_files(tmp_path))[3] == ("trace_3.json.gz", "name")
        return
    with pytest.raises(RankError, match=r"no rank in trace_3\.json\.gz"):  # step 3 of rank 0, for all that is known
        rank_files(tmp_path)


def test_a_name_that_differs_from_the_header_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path / "rank-7.json", document(EVENTS, 1))
    said = [issue for issue in htagraph.load(path).issues if issue.what == "rank_differs"]
    assert [(issue.rank, issue.detail.split(";")[0]) for issue in said] == [
        (1, "the file's name says rank 7, its distributedInfo rank 1")
    ]
    assert not [issue for issue in htagraph.load({1: path}).issues if issue.what == "rank_differs"]


def test_a_cut_file_that_names_no_rank_anywhere_is_reported(tmp_path: Path) -> None:
    path = cut(tmp_path / "worker.json.gz", behind(3))
    assert [issue.what for issue in htagraph.load(path).issues if issue.what.startswith("rank")] == ["rank_unknown"]
    assert not [issue for issue in htagraph.load({3: path}).issues if issue.what.startswith("rank")]


def test_what_htagraph_made_of_traces_is_left_out_beside_them(tmp_path: Path) -> None:
    trace(tmp_path / "rank-0.json", 0)
    said: list[tuple[str, str]] = []

    def note(path: TracePath, why: HtagraphError) -> None:
        said.append((path.name, str(why)))

    view = json.dumps({"htagraph": {"made_for": "viewing"}, "traceEvents": EVENTS})
    written(tmp_path / "path.json.gz", view)
    assert ranks(rank_files(tmp_path, left_out=note)) == {0: ("rank-0.json", "header")}
    assert said == [("path.json.gz", "exported by htagraph from the traces beside it; left out")]
    assert ranks(rank_files(tmp_path)) == ranks(rank_files(tmp_path / "*.json*")) == {0: ("rank-0.json", "header")}
    # alone it is what there is
    assert ranks(rank_files(tmp_path / "path.json.gz")) == {0: ("path.json.gz", "only file")}
    assert ranks(rank_files({3: tmp_path / "path.json.gz"})) == {3: ("path.json.gz", "given")}


@pytest.mark.parametrize("to", ["rank-1.json", "nowhere.json"])
def test_a_link_to_itself_or_to_nothing_is_a_file_that_cannot_be_read(to: str, tmp_path: Path) -> None:
    (tmp_path / "rank-1.json").symlink_to(to)
    for path in (tmp_path / "rank-1.json", tmp_path, tmp_path / "*.json"):
        with pytest.raises(TraceError, match=r"rank-1\.json: cannot be read"):
            rank_files(path)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-3.json", 3),
        ("rank_12.json.gz", 12),
        ("job.Rank 5.pt.trace.json", 5),
        ("rank=4.json", 4),
        ("local_rank-0_rank-9.json", 9),
        ("global_rank9.local_rank1.json", 9),
        ("node-rank0.rank3.json", 3),
        ("local_rank-1.json", -1),
        ("rank-1_rank-2.json", -1),
        ("rank-1_rank-1.json", 1),
        ("frank-3.json", -1),
        ("ranking.json", -1),
        ("pid77.json", -1),
    ],
)
def test_a_name_says_one_rank_of_the_whole_job_or_none(name: str, rank: int) -> None:
    assert rank_in_name(Path(name)) == rank


def test_numbers_in_names(tmp_path: Path) -> None:
    with pytest.raises(RankError, match="2147483648 is not a rank"):
        rank_in_name(Path(f"rank-{2**31}.json"))
    with pytest.raises(RankError, match="-1 is not a rank"):
        checked_rank(-1, tmp_path)
    assert [number_in_name(Path(name)) for name in ("kineto_v2_10.json", "kineto.json")] == [10, -1]
    assert pattern_of_name(Path("kineto_v2_10.json")) == pattern_of_name(Path("kineto_v2_3.json")) == "kineto_v2_#.json"


def folder(path: Path, *names: str) -> None:
    path.mkdir(parents=True)
    for name in names:
        (path / name).touch()


def test_folders_of_traces_in_a_folder_without_are_runs(tmp_path: Path) -> None:
    for name in ("b", "a"):
        folder(tmp_path / "runs" / name, "rank-0.json.gz")
    folder(tmp_path / "runs" / "logs", "out.txt")
    assert runs_of(str(tmp_path / "runs")) == [str(tmp_path / "runs" / "a"), str(tmp_path / "runs" / "b")]


def test_everything_else_is_one_recording(tmp_path: Path) -> None:
    folder(tmp_path / "job", "rank-0.json")
    folder(tmp_path / "job" / "old", "rank-0.json")
    folder(tmp_path / "empty")
    names = [tmp_path / "job", tmp_path / "job" / "rank-0.json", tmp_path / "empty", tmp_path / "no", tmp_path / "*"]
    for name in map(str, names):
        assert runs_of(name) == [name]


@pytest.mark.parametrize(
    "names",
    [
        ["rank-0.pftrace", "rank-1.pftrace", "rank-2.pftrace.gz"],
        ["trace_rank0.pftrace", "trace_rank1.pftrace", "trace_rank2.pftrace"],
        ["job_0.pftrace.gz", "job_1.pftrace.gz", "job_2.pftrace.gz"],
    ],
)
def test_ranks_of_packets_are_those_of_the_files_names(names: list[str], tmp_path: Path) -> None:
    for name in names:
        small(tmp_path / name)
    found = [(file.path.name, file.rank, file.source) for file in rank_files(tmp_path)]
    assert found == [(name, rank, "name") for rank, name in enumerate(names)]


def test_packets_without_a_rank_are_one_file_or_refused(tmp_path: Path) -> None:
    small(tmp_path / "host_4711.1719840000000.pt.trace.pftrace")
    assert [file.source for file in rank_files(tmp_path)] == ["only file"]
    small(tmp_path / "host_4712.1719840000012.pt.trace.pftrace")
    with pytest.raises(RankError, match=r"no rank in host_4711.*give one file, such as"):
        rank_files(tmp_path)


def test_packets_beside_json_of_the_same_ranks_are_refused(tmp_path: Path) -> None:
    small(tmp_path / "rank-0.pftrace")
    (tmp_path / "rank-0.json").write_text('{"traceEvents": [], "distributedInfo": {"rank": 0}}')
    with pytest.raises(RankError, match="files of several formats"):
        rank_files(tmp_path)
