"""hg.profile: what it asks of PyTorch, and what htagraph reads of its recordings."""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.trace.discover import SUFFIXES
from htagraph.trace.kineto.read import survey
from htagraph.trace.recording.profile import (
    SETTINGS_KEY,
    Plan,
    TraceHandler,
    execution_trace_into,
    folder_of,
    memory_snapshot_into,
    plan_of,
    rank_of_process,
    running,
    settings_as_json,
    usable_cores,
    whole,
    write_packed,
)
from tests.trace.recording.torch_python import needs_torch, record


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


def fake_torch(monkeypatch: pytest.MonkeyPatch, **config: Any) -> dict[str, Any]:
    """Put a PyTorch in place that records nothing; return the options that its profiler is given."""
    given: dict[str, Any] = {}

    class Profile:
        def __init__(self, *, schedule: Any, on_trace_ready: Any, record_shapes: bool = False, with_stack: bool = False,
                     experimental_config: Any = None) -> None:  # fmt: skip
            given.update(schedule=schedule(0), record_shapes=record_shapes, with_stack=with_stack,
                         experimental_config=experimental_config)  # fmt: skip

        def __enter__(self) -> Profile:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    torch, profiler = types.ModuleType("torch"), types.ModuleType("torch.profiler")
    vars(profiler).update(profile=Profile, schedule=lambda **numbers: lambda _step: numbers)
    vars(torch).update(profiler=profiler, __version__="2.1", **config)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.profiler", profiler)
    return given


def test_without_pytorch_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HtagraphError, match="pip install torch"), hg.profile(out=tmp_path / "traces"):
        pass
    assert not (tmp_path / "traces").exists()


def test_shapes_are_recorded_and_stacks_are_not_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = fake_torch(monkeypatch)
    with hg.profile("5-7", tmp_path):
        pass
    assert given == {
        "schedule": {"wait": 3, "warmup": 2, "active": 3, "repeat": 1}, "record_shapes": True, "with_stack": False,
        "experimental_config": None,
    }  # fmt: skip
    with hg.profile("5-7", tmp_path, with_stack=True, record_shapes=False):
        pass
    assert given["with_stack"]
    assert not given["record_shapes"]


def test_synchronization_is_recorded_where_pytorch_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = types.SimpleNamespace(_profiler=types.SimpleNamespace(_ExperimentalConfig=dict))
    given = fake_torch(monkeypatch, _C=part)
    with hg.profile(3, tmp_path):
        pass
    assert given["experimental_config"] == {"enable_cuda_sync_events": True}
    with hg.profile(3, tmp_path, experimental_config=None):
        pass
    assert given["experimental_config"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [({"schedule": None}, "set by htagraph.profile"), ({"with_glacks": True}, "PyTorch 2.1 has no option with_glacks")],
)
def test_an_option_that_cannot_be_is_an_error(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_torch(monkeypatch)
    with pytest.raises(HtagraphError, match=message), hg.profile(3, tmp_path, **options):
        pass


def test_steps_that_are_none_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(SelectionError), hg.profile("x", tmp_path / "traces"):
        pass
    assert not (tmp_path / "traces").exists()


@needs_torch
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_job_of_several_ranks_is_read_as_it_was(ranks: int, recordings: Path) -> None:
    folder = record(recordings, "ranks", str(ranks))
    traces = sorted(file.name for file in folder.iterdir() if file.name.endswith(".gz"))
    assert traces == [f"rank-{rank}.json.gz" for rank in range(ranks)]
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]
    graph = hg.load(folder)
    graph.check()
    assert graph.ranks == tuple(range(ranks))
    assert graph.steps == (2, 3, 4)
    assert {"nn.Module: Linear_0", "nn.Module: Model_0"} <= set(hg.module_breakdown(graph)["name"])
    assert set(hg.memory.timeline(graph)["rank"]) == set(range(ranks))
    assert "[4, 32]" in " ".join(hg.operator_breakdown(graph, by_shape=True)["input_dims"])
    collectives = hg.collectives(graph)
    assert set(collectives["rank"]) == set(range(ranks))
    assert collectives["matched"].all() == (ranks > 1)
    facts = survey(folder / "rank-0.json.gz", and_tail=False)
    assert (facts.rank, facts.world_size) == (0, ranks)
    linked = hg.execution_trace.read(folder / "rank-0.execution_trace.json")
    assert len(linked) > 0


@needs_torch
def test_a_recording_says_how_it_was_made(recordings: Path) -> None:
    said = survey(record(recordings, "variants") / "all" / "rank-0.json.gz", and_tail=False).settings
    assert (said["steps"], said["warmup"], said["with_stack"]) == ([2, 3], 1, True)
    assert json.dumps(said)
    assert said["cores"] == usable_cores()


def test_cores_are_those_of_the_process_or_all_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {3, 1}, raising=False)
    assert usable_cores() == [1, 3]
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert usable_cores() == [0, 1, 2, 3]
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == []


def test_cores_are_in_the_header_and_facts_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {3, 1}, raising=False)
    written = json.loads(settings_as_json(types.SimpleNamespace(__version__="2.1"), plan_of(3, 2), {}))
    file = tmp_path / "rank-0.json"
    file.write_text(json.dumps({SETTINGS_KEY: written, "traceEvents": []}))
    assert survey(file, and_tail=False).cores == {1, 3}


@needs_torch
@pytest.mark.parametrize(
    ("variant", "analysis", "setting"),
    [
        ("no_shapes", "roofline, kernels by shape", "record_shapes=True"),
        ("no_stack", "module_breakdown", "with_stack=True"),
        ("only_with_modules", "module_breakdown", "with_stack=True"),
        ("no_memory", "memory", "profile_memory=True"),
        ("no_steps", "step_times", "schedule=… and prof.step() in the loop"),
    ],
)
def test_validation_names_the_setting_that_was_off_and_no_other(
    variant: str, analysis: str, setting: str, recordings: Path
) -> None:
    folder = record(recordings, "variants")
    lacks = hg.validate(folder / variant).support.set_index("analysis")["setting"]
    has = hg.validate(folder / "all").support.set_index("analysis")["setting"]
    assert lacks[analysis] == setting
    assert has[analysis] == ""
    if variant.startswith("no_") and variant != "no_steps":
        assert (lacks.drop(analysis) == has.drop(analysis)).all()


@needs_torch
def test_validation_of_one_rank_of_two_asks_for_the_other(recordings: Path) -> None:
    folder = record(recordings, "ranks", "2")
    support = hg.validate(folder / "rank-1.json.gz").support.set_index("analysis")
    assert support.loc["several ranks", "why"] == "1 of 2 ranks: waits for the others look like communication"
    assert "every rank" in str(support.loc["several ranks", "setting"])


@needs_torch
@pytest.mark.parametrize(
    ("variant", "files", "said"),
    [
        ("never", 0, "prof.step() was called 0 times: no file was written; call prof.step()"),
        ("early", 0, "prof.step() was called 2 times: no file was written; record sooner, or run longer"),
        ("half", 1, "prof.step() was called 4 times: what ran after the last prof.step() is in the file as step 4"),
        ("enough", 1, ""),
    ],
)
def test_a_loop_that_ends_too_soon_is_a_warning(variant: str, files: int, said: str, recordings: Path) -> None:
    folder = record(recordings, "variants") / variant
    assert len(list(folder.glob("*.gz"))) == files
    text = (folder / "warnings.txt").read_text()
    assert said in text
    assert bool(text) == bool(said)


def test_one_recording_at_a_time_since_two_end_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_torch(monkeypatch)
    beside = hg.profile(3, tmp_path / "b")
    with hg.profile(3, tmp_path / "a"), pytest.raises(HtagraphError, match="recording already"):
        beside.__enter__()
    with pytest.raises(ZeroDivisionError), hg.profile(3, tmp_path / "a"):
        _ = 1 / 0
    with hg.profile(3, tmp_path / "b"):  # what ended, by an error or not, is in nobody's way
        pass


@pytest.mark.parametrize(
    ("steps", "warmup", "plan"),
    [
        (1, 0, Plan(1, 0, 1)),
        (3, 2, Plan(1, 2, 3)),
        ("5-7", 2, Plan(3, 2, 3)),
        (" 5 - 5 ", 2, Plan(3, 2, 1)),
        ("5", 9, Plan(0, 5, 1)),
        ("0", 2, Plan(0, 0, 1)),
    ],
)
def test_steps_are_as_many_or_those_of_a_range_with_a_warm_up_before(steps: Any, warmup: int, plan: Plan) -> None:
    assert plan_of(steps, warmup) == plan


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("last", range(6))
def test_a_range_records_exactly_its_steps(first: int, last: int) -> None:
    if last < first:
        with pytest.raises(SelectionError, match="such as '5-7'"):
            plan_of(f"{first}-{last}", 1)
        return
    plan = plan_of(f"{first}-{last}", 1)
    assert list(range(plan.first, plan.end)) == list(range(first, last + 1))


@pytest.mark.parametrize("steps", [0, -1, True, 2.0, None, "", "-3", "x", "1-", "1,2", "9" * 12])
def test_what_is_no_step_is_an_error(steps: Any) -> None:
    with pytest.raises(SelectionError, match="steps="):
        plan_of(steps, 1)


@pytest.mark.parametrize("warmup", [-1, 1.5, None])
def test_what_is_no_warm_up_is_an_error(warmup: Any) -> None:
    with pytest.raises(SelectionError, match="warmup="):
        plan_of(3, warmup)


@pytest.fixture(scope="session")
def recordings_running(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ends")


class Profiler:
    """Writes a file when it ends, or fails to."""

    def __init__(self, handler: TraceHandler, fault: Exception | None = None) -> None:
        self.handler, self.fault, self.ended = handler, fault, 0

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *error: object) -> None:
        self.ended += 1
        if self.fault:
            raise self.fault
        self.handler(self)

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text("{}")


def leave(profiler: Profiler, error: BaseException | None = None) -> None:
    with running(profiler, profiler.handler):
        if error:
            raise error


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes before Python 3.11")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError()])
def test_after_an_error_the_file_is_there_and_the_error_says_so(error: BaseException, tmp_path: Path) -> None:
    with pytest.raises(type(error)) as raised:
        leave(Profiler(TraceHandler(tmp_path, 3)), error)
    file = tmp_path / "rank-3.json.gz"
    assert file.exists()
    notes: Any = vars(raised.value)["__notes__"]
    assert notes == [f"htagraph.profile: {file} has what was recorded until this was raised"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes before Python 3.11")
def test_a_profiler_that_cannot_end_hides_no_error_of_the_job(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        leave(Profiler(TraceHandler(tmp_path, 3), OSError("disk full")), KeyboardInterrupt())
    notes: Any = vars(raised.value)["__notes__"]
    assert notes == ["htagraph.profile: the recording could not be written: disk full"]
    with pytest.raises(OSError, match="disk full"):
        leave(Profiler(TraceHandler(tmp_path, 3), OSError("disk full")))


@pytest.mark.parametrize("error", [None, SystemExit(0)])
def test_a_forked_process_leaves_the_profiler_to_its_parent(
    error: BaseException | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = Profiler(TraceHandler(tmp_path, 3))
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    if error:
        with pytest.raises(SystemExit):
            leave(profiler, error)
    else:
        leave(profiler)
    assert profiler.ended == 0
    assert list(tmp_path.iterdir()) == []


@needs_torch
@pytest.mark.parametrize(
    ("end", "files", "said"),
    [
        ("raises", ["rank-0.json.gz"], "rank-0.json.gz has what was recorded until this was raised"),
        ("raises early", [], ""),
        ("profiler inside", [], "no file was written: another profiler of PyTorch ran while this one recorded"),
        ("profiler around", [], "another profiler of PyTorch is recording in this process"),
        ("forked", ["rank-0.json.gz"], ""),
        ("left the group", ["rank-5.json.gz"], ""),
    ],
)
def test_what_a_real_profiler_leaves_behind(end: str, files: list[str], said: str, recordings_running: Path) -> None:
    out = record(recordings_running, "ends") / end
    assert sorted(file.name for file in out.glob("*.gz")) == files
    text = (out / "said.txt").read_text()
    assert said in text
    assert bool(said) == bool(text)


class Memory:
    """An allocator that keeps its history."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def _record_memory_history(self, enabled: Any = "all", max_entries: int = 0) -> None:
        self.asked.append(enabled)

    def _dump_snapshot(self, path: str) -> None:
        Path(path).write_bytes(b"snapshot")


def with_cuda(memory: object, *, available: bool = True) -> Any:
    return types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: available, memory=memory))


def test_a_snapshot_is_written_after_a_recording_and_the_history_ends(tmp_path: Path) -> None:
    memory, handler = Memory(), TraceHandler(tmp_path, 3)
    with memory_snapshot_into(with_cuda(memory), handler):
        handler.written.append(tmp_path / "rank-3.json.gz")
    assert (tmp_path / "rank-3.memory.pickle").read_bytes() == b"snapshot"
    assert memory.asked == ["all", None]


def test_without_a_recording_there_is_no_snapshot(tmp_path: Path) -> None:
    memory = Memory()
    with memory_snapshot_into(with_cuda(memory), TraceHandler(tmp_path, 0)):
        pass
    assert list(tmp_path.iterdir()) == []
    assert memory.asked == ["all", None]


@pytest.mark.parametrize("torch", [with_cuda(Memory(), available=False), with_cuda(object())])
def test_a_snapshot_without_cuda_is_refused(torch: Any, tmp_path: Path) -> None:
    with pytest.raises(HtagraphError, match="needs a CUDA device"):
        memory_snapshot_into(torch, TraceHandler(tmp_path, 0)).__enter__()


def test_an_execution_trace_with_an_old_pytorch_is_refused(tmp_path: Path) -> None:
    torch = types.SimpleNamespace(__version__="2.1", profiler=types.SimpleNamespace(profile=Memory))
    with pytest.raises(HtagraphError, match=r"PyTorch 2\.1 cannot"):
        execution_trace_into(torch, TraceHandler(tmp_path, 0)).__enter__()


VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.gz", "a.pickle"])
def test_a_folder_named_like_a_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HtagraphError, match="give a folder"):
        folder_of(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert folder_of(tmp_path / "a" / "b").is_dir()
    assert folder_of(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"


def test_what_is_no_folder_to_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").touch()
    for out, words in (
        ("", "give a folder"),
        (tmp_path / "notes", "is a file; give"),
        (tmp_path / "notes" / "a", "give"),
        (tmp_path / ("a" * 300), "give a folder"),
        ("a\nb", "line break"),
        ("a\0b", "not shown"),
    ):
        with pytest.raises(HtagraphError, match=words):
            folder_of(out)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(HtagraphError, match="may not write there"):
        folder_of(tmp_path)


@pytest.mark.parametrize(
    ("environment", "rank"),
    [({}, 0), ({"RANK": "3", "SLURM_PROCID": "1"}, 3), ({"SLURM_PROCID": "5"}, 5), ({"RANK": "", "PMI_RANK": "2"}, 2),
     ({"RANK": "-1"}, 0), ({"RANK": "²"}, 0)],
)  # fmt: skip
def test_the_rank_is_that_of_the_environment(
    environment: dict[str, str], rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert rank_of_process() == rank


def test_until_a_file_is_whole_the_folder_has_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "rank-0.json.gz"
    target.write_bytes(b"old")

    def export(path: str) -> None:
        Path(path).write_text("{}")
        traces = [file.name for file in tmp_path.iterdir() if file.name.endswith((*SUFFIXES, ".tmp"))]
        assert traces == ["rank-0.json.gz"]
        assert target.read_bytes() == b"old"

    write_packed(target, export)
    assert gzip.decompress(target.read_bytes()) == b"{}"
    assert list(tmp_path.iterdir()) == [target]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "rank-0.json.gz"
    target.write_bytes(b"old")

    def export(path: str) -> None:
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_packed(target, export)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_was_not_written_replaces_nothing(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with whole(target):
        pass
    assert target.read_bytes() == b"old"


def test_the_same_text_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_packed(tmp_path / name, lambda path: Path(path).write_text("text"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


class Recorded:
    """All that a handler needs of a profiler."""

    def __init__(self, text: str) -> None:
        self.text = text

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text(self.text)


def test_each_rank_has_its_file(tmp_path: Path) -> None:
    for rank in (0, 3):
        hg.trace_handler(tmp_path, rank=rank)(Recorded(f"{rank}"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rank-0.json.gz", "rank-3.json.gz"]
    assert gzip.decompress((tmp_path / "rank-3.json.gz").read_bytes()) == b"3"


def test_the_rank_is_asked_for_when_a_recording_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = hg.trace_handler(tmp_path)
    monkeypatch.setenv("RANK", "5")
    handler(Recorded(""))
    assert [file.name for file in tmp_path.iterdir()] == ["rank-5.json.gz"]


def test_a_second_recording_is_another_folder_and_not_part_of_the_job(tmp_path: Path) -> None:
    handler = hg.trace_handler(tmp_path, rank=1)
    for text in ("a", "b", "c"):
        handler(Recorded(text))
    found = {str(file.relative_to(tmp_path)): gzip.decompress(file.read_bytes()) for file in tmp_path.rglob("*.gz")}
    assert found == {
        "rank-1.json.gz": b"a", "recording-2/rank-1.json.gz": b"b", "recording-3/rank-1.json.gz": b"c",
    }  # fmt: skip


ACTIONS = types.SimpleNamespace(RECORD_AND_SAVE="save")


def test_captures_are_step_0_in_a_folder_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = fake_torch(monkeypatch)
    monkeypatch.setattr(sys.modules["torch.profiler"], "ProfilerAction", ACTIONS, raising=False)
    with hg.profile(out=tmp_path, captures=True):
        assert given["schedule"] == "save"
    with pytest.raises(SelectionError, match="records step 0"), hg.profile("0-2", out=tmp_path, captures=True):
        pass
    handler = TraceHandler(tmp_path, 0)
    handler.has_captures = True
    for _ in range(2):
        handler(Recorded("a"))
    assert [path.parent for path in handler.written] == [tmp_path / "captures", tmp_path]


def test_a_recording_that_was_lost_is_said_and_not_written(tmp_path: Path) -> None:
    lost = Recorded("")
    lost.profiler = types.SimpleNamespace(kineto_results=types.SimpleNamespace(trace_start_ns=lambda: 0))  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="no file was written: another profiler"):
        hg.trace_handler(tmp_path, rank=1)(lost)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_of_one_rank_are_said(tmp_path: Path) -> None:
    first, second = hg.trace_handler(tmp_path, rank=1), hg.trace_handler(tmp_path, rank=1)
    first(Recorded("a"))
    later = time.time() + 1
    os.utime(tmp_path / "rank-1.json.gz", (later, later))
    with pytest.warns(UserWarning, match=r"rank-1\.json\.gz was just written by another process and is replaced"):
        second(Recorded("b"))
    assert gzip.decompress((tmp_path / "rank-1.json.gz").read_bytes()) == b"b"
