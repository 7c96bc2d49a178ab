"""Where the time of devices goes: each report on data/demo, on small jobs, and on jobs without this or that."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.reports.device_time import idle_report, kernels_report
from htagraph.simulate import Job, simulate
from tests.analyses.test_cupti_counters import FMA, ranges
from tests.analyses.test_kernel_patterns import linear
from tests.damage import document, written
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, complete, kernel, launch, load, op, runtime, write

DEMO, HOST = str(DATA / "demo"), str(DATA / "gloo_ddp")
WAYS = ("name", "rank", "operator", "shape", "module", "annotation")
every_way = pytest.mark.parametrize("by", WAYS)
Results = Callable[..., dict[str, Any]]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "json", "md"])
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        *(([f"kernels --by {by} --top 3", DEMO], "evice") for by in WAYS),
        (["idle", DEMO], "onclusion"),
        (["patterns --operator aten::addmm --min-length 1", DEMO], "aten::addmm"),
        (["roofline --top 3", HOST], "aten::addmm"),
    ],
    ids=str,
)
def test_every_format_can_be_written(
    words: list[str], shown: str, form: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # narrower tables cut names
    ran = run(*words[0].split(), words[1], "-f", form)
    assert (ran.code, "error" in ran.err) == (0, False)
    assert shown in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("words", ["idle", *(f"kernels --by {by}" for by in WAYS), "launches"])
def test_a_command_that_is_suggested_can_be_run(words: str, results: Results, run: Any) -> None:
    for sentence in results(*words.split(), DEMO)["conclusions"]:
        _, found, line = sentence.partition(": htagraph ")
        if found:
            assert run(*shlex.split(line)).code == 0


# idle


@pytest.mark.slow
def test_the_longest_pauses_come_first(results: Results) -> None:
    found = results("idle", DEMO, "--top", "5")
    pauses = [row["pause_us"] for row in found["pauses"]]
    assert len(pauses) == 5
    assert pauses == sorted(pauses, reverse=True)
    assert pauses[0] == max(row["max_us"] for row in found["streams"])


def test_the_host_is_blamed_for_late_launches() -> None:
    late = load([launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(100, 2, 2), kernel(COMPUTE, 105, 5, 2)])
    report = idle_report(late, ["x"])
    assert report.sentences[0] == (
        "The device waits 95.0 µs (90 % of the time from its first to last work) for its host, most of it in code that "
        "no event covers, before cudaLaunchKernel (1 time, 90.0 µs)."
    )
    assert report.tables["pauses"]["waited_for"].tolist() == ["host: before cudaLaunchKernel"]


def test_the_answer_on_the_demo_names_the_loader_and_what_a_faster_one_gains() -> None:
    answer, *others = idle_report(graph_of(DATA / "demo"), ["x"]).sentences
    assert answer == (
        "Devices wait 9.74 ms (10 % of the time from their first to last work, summed over 4 devices) for their data "
        "loaders, in "
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ (8 times)."
    )
    gain = hg.what_if(graph_of(DATA / "demo")).free_dataloader().run()
    assert others[-1] == (
        f"With a data loader that is never late the job would be {100 * gain.saved_ns / gain.baseline_ns:.0f} % "
        "shorter: htagraph what-if x --free-dataloader"
    )


def test_a_job_without_pauses_says_so() -> None:
    assert idle_report(load([kernel(COMPUTE, 0, 5)]), []).sentences == [
        "No device is idle between its first and its last kernel or copy."
    ]
    assert idle_report(load([]), []).sentences[0].startswith("Nothing ran on a device")


# kernels


@pytest.mark.slow
@every_way
def test_the_shares_are_of_all_device_time(by: str, results: Results) -> None:
    found = results("kernels", DEMO, "--by", by, "--top", "1000")
    rows = found["device_time"]
    per_rank = 4 if by == "rank" else 1
    assert sum(row["share_percent"] for row in rows) == pytest.approx(100 * per_rank)
    graph = hg.load(DEMO)
    busy = graph.activities.duration[graph.activities.on_device].sum() / 1000
    assert sum(row.get("device_us", row.get("total_us")) for row in rows) == pytest.approx(busy)
    assert found["by"] == by


def test_durations_by_rank_send_to_the_test_of_chance(results: Results) -> None:
    said = results("kernels", DEMO, "--by", "rank")["conclusions"]
    assert said[0].startswith("To see whether a rank is slow, beyond chance: htagraph stragglers")


def test_what_a_trace_lacks_is_said() -> None:
    graph = load([op("aten::mm", 0, 5), launch(1, 1, 1), kernel(COMPUTE, 5, 5, 1)])
    assert "with_stack=True" in kernels_report(graph, [], by="module").sentences[-1]


def test_shapes_and_modules_of_a_trace_that_has_them(tmp_path: Path, results: Results) -> None:
    events = [
        complete("python_function", "nn.Module: Net_0", 0, 50),
        op("aten::mm", 1, 5) | {"args": {"Input Dims": [[2, 3], [3, 4]]}}, launch(2, 1, 1), kernel(COMPUTE, 5, 5, 1),
    ]  # fmt: skip
    path = str(write(events, tmp_path / "a.json"))
    row, _ = results("kernels", path, "--by", "shape")["device_time"]  # the frame is of no operator
    assert (row["name"], row["input_dims"], row["device_us"]) == ("aten::mm", "[[2, 3], [3, 4]]", 5)
    found = results("kernels", path, "--by", "module")
    assert found["device_time"][0]["name"] == "nn.Module: Net_0"
    assert found["module_classes"][0]["name"] == "nn.Module: Net"
    assert "Net takes the most device time" in found["conclusions"][0]


@pytest.mark.slow
@every_way
def test_a_job_without_device_work_has_something_to_say(by: str, tmp_path: Path) -> None:
    for events in ([], [op("a", 2, 20), op("b", 5, 3)]):
        assert kernels_report(load(events, tmp_path), [], by=by).sentences


# launches and counters


@pytest.mark.slow
def test_the_tables_are_those_of_the_analyses(results: Results) -> None:
    found = results("launches", DEMO)
    graph = hg.load(DEMO)
    assert set(found) == {"calls", "operators", "graph_launches", "compiled_regions", "phases", "conclusions"}
    assert sum(row["works"] for row in found["calls"]) == len(hg.launch_stats(graph))
    assert len(found["operators"]) == len(hg.operator_kernels(graph))


@pytest.mark.slow
def test_calls_that_take_longer_than_their_work_are_no_cost_where_devices_wait_for_a_loader(results: Results) -> None:
    said = results("launches", DEMO)["conclusions"]
    assert [each for each in said if "opportunities" in each] == []


def test_graph_launches_are_summed_up(results: Results, tmp_path: Path) -> None:
    works = [kernel(COMPUTE, 20, 5, 1), kernel(COMPUTE, 35, 5, 1)]
    path = written(tmp_path / "graphs.json", document([runtime("cudaGraphLaunch", 0, 3, 1), *works]))
    said = results("launches", path)["conclusions"]
    assert any("the device is idle 50.0 % of the time" in each for each in said)


@pytest.mark.slow
def test_summaries_are_given_and_series_if_asked_for(results: Results) -> None:
    assert set(results("counters", DEMO)) == {"queues", "bandwidth", "conclusions"}
    found = results("counters", DEMO, "--series")
    assert len(found["queue_length"]) == len(hg.queue_length(hg.load(DEMO)))


def test_a_full_queue_is_told(results: Results, run: Any) -> None:
    assert "Queues never filled (at most 171 of 1,024 launches" in results("counters", DEMO)["conclusions"][0]
    said = results("counters", DEMO, "--full", "100")["conclusions"]
    assert "held 171 launches, and 100 or more for" in said[0]
    assert run("counters", DEMO, "--full", "0").code == 2


def test_the_trace_with_counters_is_written(results: Results, tmp_path: Path) -> None:
    target = tmp_path / "out.json.gz"
    said = results("counters", DEMO, "--ranks", "0", "--perfetto", target)["conclusions"]
    events = json.loads(gzip.decompress(target.read_bytes()))["traceEvents"]
    graph = hg.load(DEMO, ranks=[0])
    count = len(hg.queue_length(graph)) + len(hg.memory_bandwidth(graph))
    assert sum(event["ph"] == "C" for event in events) == count
    assert f"{count:,} counter values added" in said[-1]


def test_sampled_counters_have_a_table_and_a_sentence(results: Results, tmp_path: Path) -> None:
    job = simulate(Job(ranks=1, steps=2, layers=2, backend="cupti"))
    job.write(tmp_path, truth=False)
    expected = [event for event in json.loads(job.text(0))["traceEvents"] if event["ph"] == "C"]
    found = results("counters", tmp_path, "--series")
    assert [row["counter"] for row in found["samples"]] == ["Power (W)", "SM Active (%)"]
    values = sorted(row["value"] for row in found["device_samples"])
    assert values == sorted(event["args"][""] for event in expected)
    assert f"The profiler took {len(expected)} samples of Power (W) and SM Active (%)." in found["conclusions"]


# patterns


def test_patterns_are_those_of_the_function(results: Results) -> None:
    rows = results("patterns", DEMO, "--operator", "aten::addmm", "--min-length", "1")["patterns"]
    assert rows == hg.kernel_patterns(hg.load(DEMO), "aten::addmm", min_length=1).to_dict("records")


def test_an_overlay_is_written_where_asked_for(run: Any, tmp_path: Path) -> None:
    path = write(linear(0, 1, "a", "b", "c"), tmp_path / "t.json")
    ran = run("patterns", path, "--overlay", tmp_path / "o")
    assert ran.code == 0
    assert ran.err == f"htagraph: wrote {tmp_path}/o/overlaid_t.json; search it for Patterns\n"
    assert (tmp_path / "o" / "overlaid_t.json").exists()


def test_nothing_found_suggests_what_to_run(run: Any) -> None:
    ran = run("patterns", DEMO, "--operator", "aten::addmm", "--min-length", "99")
    (line,) = [line for line in ran.out.splitlines() if "--min-length" in line]
    assert run(*shlex.split(line[line.index("patterns") :])).code == 0


def test_a_misspelt_operator_is_answered_with_the_nearest(run: Any) -> None:
    ran = run("patterns", DEMO, "--operator", "aten::adddmm")
    assert ran.code == 0
    shown = " ".join(ran.out.split())
    assert "No operator or annotation matches 'aten::adddmm'; did you mean 'aten::addmm'" in shown


# roofline and phases


@pytest.mark.slow
def test_the_roofline_is_that_of_the_function(results: Results) -> None:
    rows = results("roofline", HOST, "--peak-tflops", "1", "--peak-gbs", "50")["roofline"]
    table = hg.roofline(hg.load(HOST), peak_tflop_s=1, peak_gb_s=50)
    assert [row["flop"] for row in rows] == table["flop"].tolist()
    assert {row["bound"] for row in rows} <= {"compute", "memory"}


@pytest.mark.slow
def test_the_roofline_says_what_to_do(run: Any) -> None:
    assert "record_shapes=True" in run("roofline", DEMO).out
    assert "--peak-tflops" not in run("roofline", HOST).out  # no device, no peak of a device
    assert "below the roof" in run("roofline", HOST, "--peak-tflops", "1", "--peak-gbs", "50").out


def test_counters_are_a_table_of_their_own(results: Results, tmp_path: Path) -> None:
    path = write([op("x", 0, 9), launch(1, 1, 1), *ranges(5)], tmp_path / "t.json")
    found = results("roofline", path)
    assert next((row["counter"], row["value"]) for row in found["counters"]) == (FMA, 5.0)


def test_given_peaks_are_the_roof(results: Results) -> None:
    tables = results("roofline", HOST, "--peak-tflops", "1", "--peak-gbs", "50")
    roof = [line for line in tables["conclusions"] if line.startswith("The roof")]
    assert roof == [
        "The roof of the CPU: at most 1 TFLOP/s (given with --peak-tflops) and 50 GB/s (given with --peak-gbs)."
    ]
    assert {row["peak_tflop_s"] for row in tables["roofline"]} == {1.0}


@pytest.mark.parametrize("peak", ["0", "-1", "inf", "nan"])
def test_a_peak_that_no_device_has_is_wrong_usage(peak: str, run: Any) -> None:
    ran = run("roofline", DEMO, "--peak-tflops", peak)
    assert (ran.code, ran.out) == (2, "")
    assert "--peak-tflops" in ran.err


def test_phases_are_those_of_the_function(results: Results) -> None:
    rows = results("phases", DEMO, "--annotation", "ProfilerStep*")["phases"]
    table = hg.phases(hg.load(DEMO), annotation="ProfilerStep*")
    assert [(row["rank"], row["phase"], row["wall_us"]) for row in rows] == [
        (row.rank, row.phase, row.wall_us) for row in table.itertuples()
    ]
    assert rows[0]["tokens_per_s"] is None


def test_without_phases_it_is_said_what_records_them(run: Any) -> None:
    said = " ".join(run("phases", DEMO, "--annotation", "nothing*").out.split())
    assert "nothing is called 'nothing*'" in said
    assert "record_function" in said
