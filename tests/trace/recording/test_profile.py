"""hg.profile: what it asks of PyTorch, and what htagraph reads of its recordings."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.trace.reading.read import read_header
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
    info = read_header(folder / "rank-0.json.gz", and_tail=False).distributed_info
    assert info is not None
    assert (info.rank, info.world_size) == (0, ranks)
    linked = hg.execution_trace.read(folder / "rank-0.execution_trace.json")
    assert len(linked) > 0


@needs_torch
def test_a_recording_says_how_it_was_made(recordings: Path) -> None:
    header = read_header(record(recordings, "variants") / "all" / "rank-0.json.gz", and_tail=False)
    said = (header.model_extra or {})["htagraph_profile"]
    assert (said["steps"], said["warmup"], said["with_stack"]) == ([2, 3], 1, True)
    assert json.dumps(said)


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
