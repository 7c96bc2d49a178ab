"""The facade as users of HTA call it: its signatures, every method on jobs of every kind, and how jobs are given."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from htagraph.core.errors import HtagraphError, RankError
from htagraph.hta.trace_analysis import TraceAnalysis
from htagraph.hta.trace_diff import LabeledTrace, TraceDiff
from tests.reach import DATA, REAL, label
from tests.strategies import annotation, kernel, launch, op, step, write

ANALYSIS = {
    "get_temporal_breakdown": "visualize=True",
    "get_comm_comp_overlap": "visualize=True",
    "get_idle_time_breakdown": "ranks=None, streams=None, visualize=True, visualize_pctg=True, "
    "show_idle_interval_stats=False, consecutive_kernel_delay=30",
    "get_gpu_kernel_breakdown": "visualize=True, duration_ratio=0.8, num_kernels=10, include_memory_kernels=True, "
    "image_renderer=''",
    "get_gpu_user_annotation_breakdown": "use_gpu_annotation=True, visualize=True, duration_ratio=0.8, "
    "num_kernels=1000, allowlist_patterns=None, image_renderer=None",
    "get_gpu_kernels_with_user_annotations": "rank, expand_names=True, shorten_names=True",
    "get_cuda_kernel_launch_stats": "ranks=None, runtime_cutoff=50, launch_delay_cutoff=100, "
    "include_memory_events=True, visualize=True",
    "get_aten_op_kernels_and_delay": "ranks=None, sort_by=None",
    "get_frequent_cuda_kernel_sequences": "operator_name, output_dir, min_pattern_len=3, rank=0, top_k=5, "
    "visualize=False, compress_other_kernels=True",
    "get_queue_length_time_series": "ranks=None",
    "get_queue_length_summary": "ranks=None",
    "get_queue_length_summary_from_time_series": "queue_length_dict",
    "get_time_spent_blocked_on_full_queue": "queue_length_dict, max_queue_length=1024",
    "get_memory_bw_time_series": "ranks=None",
    "get_memory_bw_summary": "ranks=None",
    "generate_trace_with_counters": "time_series=None, ranks=None, output_suffix='_with_counters'",
    "get_profiler_steps": "",
    "get_potential_stragglers": "profiler_steps=None, num_candidates=2, visualize=False, "
    "straggler_identification_impl=None",
    "get_cupti_counter_data_with_operators": "ranks=None",
    "critical_path_analysis": "rank, annotation, instance_id, data_load_events=None",
    "overlay_critical_path_analysis": "rank, critical_path_graph, output_dir, only_show_critical_events=True, "
    "show_all_edges=False",
}
"""HTA 0.6.1's, by `inspect.signature`; the default of `straggler_identification_impl` is a function there."""
OPS = "control, test, control_rank=None, test_rank=None, control_iteration=None, test_iteration=None, device_type=ALL"
DIFF = {
    "compare_traces": f"{OPS}, use_short_name=False",
    "ops_diff": OPS,
    "visualize_counts_diff": "df, show_image=True, export_image_path=None",
    "visualize_duration_diff": "df, show_image=True, export_image_path=None",
}
LABELED = {
    "__init__": "label=None, t=None, trace_dir=None",
    "extract_ops": "rank=None, iteration=None, device_type=ALL",
    "get_ops_summary": "ops",
    "iterations": "",
    "ranks": "",
}
OURS = {"get_aten_op_kernels_and_delay": ", visualize=True"}
"""What our signatures have more, at their ends."""


def signature(function: Callable[..., Any]) -> str:
    parameters = list(inspect.signature(function).parameters.values())
    shown = parameters[1:] if inspect.isfunction(function) else parameters  # without the instance
    return ", ".join(
        each.name if each.default is each.empty else f"{each.name}={getattr(each.default, 'name', repr(each.default))}"
        for each in shown
    )


@pytest.mark.parametrize(("kind", "expected"), [(TraceAnalysis, ANALYSIS), (TraceDiff, DIFF), (LabeledTrace, LABELED)])
def test_signatures_are_htas(kind: type, expected: dict[str, str]) -> None:
    ours = {name: signature(getattr(kind, name)) for name in expected}
    assert ours == {name: text + OURS.get(name, "") for name, text in expected.items()}


def test_the_constructor_takes_htas_arguments() -> None:
    assert signature(TraceAnalysis.__init__) == "trace_files=None, trace_dir='', include_last_profiler_step=False"


# every method, on every kind of job


def ask_everything(analysis: TraceAnalysis, rank: int, folder: Path, *, visualize: bool) -> dict[str, Any]:
    """Call every method; what it warns of is checked to name the trace, once."""
    shown: Any = {"visualize": visualize}
    series = analysis.get_queue_length_time_series
    calls: dict[str, Callable[[], Any]] = {
        "temporal": lambda: analysis.get_temporal_breakdown(**shown),
        "overlap": lambda: analysis.get_comm_comp_overlap(**shown),
        "idle": lambda: analysis.get_idle_time_breakdown(ranks=[rank], show_idle_interval_stats=True, **shown),
        "kernels": lambda: analysis.get_gpu_kernel_breakdown(**shown),
        "annotations": lambda: analysis.get_gpu_user_annotation_breakdown(**shown),
        "host annotations": lambda: analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, **shown),
        "annotated": lambda: analysis.get_gpu_kernels_with_user_annotations(rank),
        "launches": lambda: analysis.get_cuda_kernel_launch_stats(ranks=[rank], **shown),
        "aten": lambda: analysis.get_aten_op_kernels_and_delay(ranks=[rank], **shown),
        "patterns": lambda: analysis.get_frequent_cuda_kernel_sequences("aten", str(folder), rank=rank, **shown),
        "queues": lambda: series([rank]),
        "queue summary": lambda: analysis.get_queue_length_summary([rank]),
        "blocked": lambda: analysis.get_time_spent_blocked_on_full_queue(quiet(lambda: series([rank])), 1),
        "bandwidth": lambda: analysis.get_memory_bw_time_series([rank]),
        "bandwidth summary": lambda: analysis.get_memory_bw_summary([rank]),
        "written": lambda: analysis.generate_trace_with_counters(ranks=[rank]),
        "steps": analysis.get_profiler_steps,
        "stragglers": lambda: analysis.get_potential_stragglers(**shown),
        "counters": lambda: analysis.get_cupti_counter_data_with_operators([rank]),
        "path": lambda: path_and_overlay(analysis, rank, folder),
    }
    return {name: warned_at_most_once(name, call) for name, call in calls.items()}


def path_and_overlay(analysis: TraceAnalysis, rank: int, folder: Path) -> Any:
    found = analysis.critical_path_analysis(rank, "", None)
    return found and analysis.overlay_critical_path_analysis(rank, found[0], str(folder / "overlaid"))


def quiet(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def warned_at_most_once(name: str, call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    texts = [str(each.message) for each in caught]
    assert len(texts) <= 1, (name, texts)
    assert all("rank" in text or "frequent kernel sequences" in text for text in texts), (name, texts)
    return found


@pytest.fixture
def no_screen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of figures that are shown from now on, each checked to be one that plotly can write."""
    figures: list[Any] = []

    def collect(figure: Any, *_: Any, **__: Any) -> None:
        json.loads(figure.to_json())
        figures.append(figure)

    monkeypatch.setattr("plotly.basedatatypes.BaseFigure.show", collect)
    return figures


META = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}
TWO = [op("aten::mm", 0, 20), launch(2, 3, 1), launch(8, 3, 2), kernel("sgemm", 10, 5, 1), kernel("sgemm", 30, 5, 2)]
ODD: dict[str, list[dict[str, Any]]] = {
    "empty": [],
    "only metadata": [META],
    "one kernel": [kernel("sgemm", 10, 5, 1)],
    "one operator": [op("aten::mm", 0, 20)],
    "one empty operator": [op("aten::mm", 0, 0)],
    "host": [step(1, 0, 50), op("aten::mm", 1, 20), annotation("## forward ##", 0, 30)],
    "two kernels": TWO,
    "stream 0": [op("aten::mm", 0, 20), launch(2, 3, 1), kernel("Cijk_gemm", 10, 5, 1, stream=0)],
}


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("name", ODD)
def test_odd_jobs_have_answers_of_the_usual_shape(name: str, rank: int, tmp_path: Path, no_screen: list[Any]) -> None:
    usual = TraceAnalysis({rank: str(write(TWO, tmp_path / "usual.json"))})
    analysis = TraceAnalysis({rank: str(write(ODD[name], tmp_path / "trace.json"))})
    expected = quiet(lambda: ask_everything(usual, rank, tmp_path, visualize=False))
    found = ask_everything(analysis, rank, tmp_path, visualize=True)
    assert no_screen
    for key in ("temporal", "overlap", "blocked", "patterns"):
        assert list(found[key].columns) == list(expected[key].columns), key
    for key in ("idle", "kernels"):
        assert [list(table.columns) for table in found[key]] == [list(table.columns) for table in expected[key]], key
    for key in ("launches", "aten"):
        assert list(found[key][rank].columns) == list(expected[key][rank].columns), key


@pytest.mark.slow
@pytest.mark.parametrize("path", [DATA / "demo", *(path for path in REAL if path.stat().st_size < 100_000)], ids=label)
def test_every_method_has_an_answer(path: Path, tmp_path: Path, no_screen: list[Any]) -> None:
    if path.is_dir():
        shutil.copytree(path, tmp_path / "job")
        analysis, rank = TraceAnalysis(trace_dir=str(tmp_path / "job")), 0
    else:
        copied = shutil.copy(path, tmp_path / path.name)  # counters are written beside the trace
        analysis, rank = TraceAnalysis({3: str(copied)}), 3
    ask_everything(analysis, rank, tmp_path, visualize=True)
    assert no_screen


# what is read


def job(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "job"
    folder.mkdir()
    events = [step(1, 0, 50), *TWO, step(2, 50, 50), op("aten::add", 60, 5)]
    for rank in (0, 1):
        content = {"distributedInfo": {"rank": rank, "world_size": 2, "backend": "nccl"}, "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(content), encoding="utf-8")
    return sorted(folder.iterdir())


def test_files_are_given_as_dict_list_or_folder(tmp_path: Path) -> None:
    files = [str(path) for path in job(tmp_path)]
    named = dict(enumerate(files))
    for analysis in (
        TraceAnalysis(trace_files=named),
        TraceAnalysis(trace_files=files),
        TraceAnalysis(trace_dir=str(tmp_path / "job")),
        TraceAnalysis(trace_files={0: "rank0.json", 1: "rank1.json"}, trace_dir=str(tmp_path / "job")),
    ):
        assert {rank: str(path) for rank, path in analysis.t.trace_files.items()} == named
        assert analysis.get_temporal_breakdown(visualize=False)["rank"].tolist() == [0, 1]


@pytest.mark.parametrize(("given", "steps"), [(False, [1]), (None, [1]), (True, [1, 2])])
def test_the_last_step_is_left_out_unless_asked_for(
    given: bool | None,  # noqa: FBT001 - pytest fills it in by name
    steps: list[int],
    tmp_path: Path,
) -> None:
    files = dict(enumerate(map(str, job(tmp_path))))
    analysis = TraceAnalysis(trace_files=files, include_last_profiler_step=given)
    assert analysis.get_profiler_steps() == steps
    names = set(analysis.t.symbol_table.sym_table[i] for i in analysis.t.get_trace(0)["name"])
    assert ("aten::add" in names) is bool(given)


@pytest.mark.parametrize("method", [name for name, text in ANALYSIS.items() if "ranks=" in text])
def test_ranks_that_were_not_read_are_named(method: str, tmp_path: Path) -> None:
    analysis = TraceAnalysis(trace_files=dict(enumerate(map(str, job(tmp_path)))))
    with pytest.raises(RankError, match="rank 7 was not read; there are ranks 0, 1"):
        getattr(analysis, method)(ranks=[7])


def test_a_rank_that_was_not_read_is_named(tmp_path: Path) -> None:
    analysis = TraceAnalysis(trace_files=dict(enumerate(map(str, job(tmp_path)))))
    for call in (
        lambda: analysis.get_gpu_kernels_with_user_annotations(7),
        lambda: analysis.get_frequent_cuda_kernel_sequences("aten", str(tmp_path), rank=7),
        lambda: analysis.critical_path_analysis(7, "", None),
    ):
        with pytest.raises((RankError, ValueError), match="rank 7"):
            call()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(HtagraphError, match="absent"):
        TraceAnalysis(trace_dir=str(tmp_path / "absent"))
    with pytest.raises(HtagraphError, match=r"no\.json"):
        TraceAnalysis(trace_files={0: str(tmp_path / "no.json")})


@pytest.mark.slow
def test_what_takes_long_to_import_is_not_imported_on_the_way(tmp_path: Path) -> None:
    path = write(TWO, tmp_path / "trace.json")
    code = (
        "import sys; from htagraph.hta.trace_analysis import TraceAnalysis; "
        f"TraceAnalysis({{0: {str(path)!r}}}).get_temporal_breakdown(visualize=False); "
        "print([name for name in ('plotly', 'networkx', 'graphviz') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
