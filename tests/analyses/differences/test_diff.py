"""The difference of two jobs' critical paths: it is whole, it is antisymmetric, and it says what was changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.errors import SelectionError
from htagraph.simulate import Change, Job, RemoveKernels, ScaleHost, ScaleKernels, ScaleLoader, ScaleNetwork, SlowRank
from tests.reach import DATA, DATASETS, SHARED, graph_of, label
from tests.strategies import COMPUTE, kernel, launch, load, op, step, traces
from tests.whatif.changes.simulated import recorded

SMALL = Job(ranks=2, steps=3, layers=3)
GEMM = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn"


def changed(*changes: Change, **parts: Any) -> DependencyGraph:
    return recorded(SMALL.model_copy(update={"changes": changes, **parts}))[0]


def whole(found: hg.Diff) -> None:
    """Assert that contributions sum to both windows to the ns, on every level."""
    for table in (found.entries, found.to_frame(), found.to_frame(each=True)):
        assert table["before_ns"].sum() == found.before.makespan_ns
        assert table["after_ns"].sum() == found.after.makespan_ns
    assert found.to_frame()["change_us"].sum() == pytest.approx(found.change_us, abs=1e-6)
    summary = found.summary()
    for _, group in summary.groupby("group"):
        assert group["change_us"].sum() == pytest.approx(found.change_us, abs=1e-6)


# laws


@pytest.mark.slow
@settings(max_examples=15)
@given(traces(), traces())
def test_contributions_sum_to_the_windows_and_turn_around(first: Any, second: Any) -> None:
    before, after = load(first), load(second)
    found, back = hg.diff(before, after), hg.diff(after, before)
    whole(found)
    keys = ["path", "category"]
    there = found.to_frame().groupby(keys)[["before_ns", "after_ns"]].sum()
    again = back.to_frame().groupby(keys)[["after_ns", "before_ns"]].sum()
    if not found.alignment.renamed:  # the name before is shown, which is another one the other way round
        assert there.to_numpy().tolist() == again.reindex(there.index).to_numpy().tolist()
    assert found.change_us == -back.change_us
    assert found.effects(3).explained_us == pytest.approx(-back.effects(3).explained_us, abs=0.01)
    assert sorted(found.added["path"]) == sorted(back.removed["path"])


@pytest.mark.slow
@settings(max_examples=15)
@given(traces())
def test_a_job_does_not_differ_from_itself(events: Any) -> None:
    graph = load(events)
    found = hg.diff(graph, graph)
    table = found.to_frame(each=True)
    assert not table["change_us"].any()
    assert set(table["change"]) <= {"same"}
    assert not len(found.added) + len(found.removed) + len(found.renamed) + len(found.causes())
    assert set(hg.compare(graph, graph)["change"]) <= {"same"}


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_the_steps_of_a_real_job_are_compared(path: Any) -> None:
    graph = graph_of(path)
    steps = graph.steps
    whole(hg.diff(graph, graph, steps=steps[0], steps_after=steps[-1]) if steps else hg.diff(graph, graph))


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize(
    ("before", "after"),
    [("hta/trace_diff/control", "hta/trace_diff/test"), ("hta/compare/base", "hta/compare/test"),
     ("torchrec_v100_equal", "torchrec_v100_leading_missing"), ("gloo4_cpu", "megatron_tp8_a100")],
)  # fmt: skip
def test_real_pairs(before: str, after: str) -> None:
    found = hg.diff(graph_of(SHARED / before), graph_of(SHARED / after))
    whole(found)
    assert found.sentences()


# what was changed is what is found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "name", "category"),
    [
        (ScaleKernels(name=GEMM, factor=1.4), GEMM, "computation"),
        (ScaleNetwork(factor=3.0), "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication"),
        (ScaleLoader(factor=5.0), "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "data_loading"),
        (RemoveKernels(name="*flash_bwd*"), "pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
         "computation"),
    ],
    ids=["slower kernel", "slower network", "slower loader", "kernel of no time"],
)  # fmt: skip
def test_the_change_is_put_where_it_was_made(change: Change, name: str, category: str) -> None:
    before, after = changed(), changed(change)
    truth = (recorded(SMALL.model_copy(update={"changes": (change,)}))[1] - recorded(SMALL)[1]) / 1000
    found = hg.diff(before, after)
    whole(found)
    assert found.change_us == pytest.approx(truth, rel=0.02)  # the truth is of the mean step
    causes = found.causes()
    assert causes.iloc[0]["name"] == name
    assert causes.iloc[0]["effect_us"] == pytest.approx(truth, rel=0.05)
    table = found.to_frame()
    assert table.iloc[int(table["change_us"].abs().to_numpy().argmax())]["category"] == category
    assert table.loc[table["name"].str.contains(name, regex=False), "change_us"].sum() == pytest.approx(truth, rel=0.1)
    assert any(name in line for line in found.sentences()[1:])


def test_work_that_is_hidden_is_no_cause() -> None:
    """The host is ahead of the device: what it does longer changes nothing, and nothing on the path."""
    found = hg.diff(changed(), changed(ScaleHost(op="aten::addmm", factor=3.0)))
    assert found.change_us == pytest.approx(0, abs=1)
    causes = found.causes()
    assert causes["name"].tolist() == ["aten::addmm"]
    assert causes.iloc[0]["change_us"] > 100
    assert causes.iloc[0]["effect_us"] == pytest.approx(0, abs=1)
    assert found.sentences()[0].startswith("No difference that these recordings show: ")


def test_a_rank_that_became_slow_is_named_by_rank() -> None:
    slow = changed(slow_ranks=(SlowRank(rank=1, what="kernels", factor=1.5),))
    found = hg.diff(changed(), slow)
    ranks = found.summary().query("group == 'rank'").set_index("key")["change_us"]
    assert ranks["1"] > 0.9 * found.change_us
    assert found.effects(0).explained_us == pytest.approx(found.change_us, rel=0.05)


def test_another_optimizer_is_added_and_removed_paths() -> None:
    found = hg.diff(changed(), changed(optimizer="fused"))
    assert found.added["path"].tolist() == ["Optimizer.step#AdamW.step > aten::_fused_adamw_"]
    assert (found.removed["path"].str.startswith("Optimizer.step#AdamW.step > aten::_foreach")).all()
    assert found.causes().iloc[0]["effect_us"] == pytest.approx(found.change_us, rel=0.15)


def test_a_kernel_of_another_name_is_aligned() -> None:
    found = hg.diff(changed(), changed(triton=True))
    renamed = found.renamed
    assert renamed["after"].tolist() == ["triton_poi_fused_gelu_2"]
    row = found.to_frame().query("renamed != ''").iloc[0]
    assert row["path"].endswith("aten::gelu > at::native::vectorized_elementwise_kernel")
    assert (row["change"], row["before_ns"] > 0, row["after_ns"] > 0) == ("same", True, True)


def test_the_other_way_round_all_signs_are_turned() -> None:
    fast, slow = changed(), changed(ScaleKernels(name=GEMM, factor=1.4))
    there, back = hg.diff(fast, slow), hg.diff(slow, fast)
    assert there.change_us == -back.change_us
    keys = ["name", "kind"]
    ways = [each.causes().set_index(keys)["effect_us"].sort_index() for each in (there, back)]
    assert np.allclose(ways[0], -ways[1], atol=0.01)


# by hand


def two_ops(*names: str, gap: int = 1) -> list[Any]:
    """Return a step with one operator per name, one after the other, each launching a kernel."""
    events = [step(1, 0, 100)]
    for i, name in enumerate(names):
        at = 5 + i * (10 + gap)
        events += [op(name, at, 8), launch(at + 1, 2, i + 1), kernel(COMPUTE, at + 4, 3, i + 1)]
    return events


def test_steps_that_are_asked_for_are_compared_whatever_their_number() -> None:
    graph = graph_of(DATASETS[0])
    found = hg.diff(graph, graph, steps=graph.steps[0], steps_after=graph.steps[1])
    assert found.parts[0].steps != found.parts[1].steps
    assert set(found.to_frame()["change"]) == {"same"}
    assert len(found.step_times()) == 1
    assert not found.summary()["key"].str.contains("ProfilerStep#").any()


def test_what_is_not_there_is_refused() -> None:
    graph = graph_of(DATASETS[0])
    with pytest.raises(hg.SelectionError, match="step 99"):
        hg.diff(graph, graph, steps_after=99)


@pytest.mark.slow
@pytest.mark.parametrize("events", [[], [kernel(COMPUTE, 0, 0)], [op("a", 2, 20)], two_ops("a")])
def test_any_job_can_be_compared_with_any(events: list[Any]) -> None:
    full = hg.diff(load(two_ops("a", "b")), load(two_ops("b", "c")))
    for found in (hg.diff(load(events), load(two_ops("a", "b"))), hg.diff(load(two_ops("a", "b")), load(events))):
        whole(found)
        assert found.sentences()
        for name in ("added", "removed", "renamed"):
            assert getattr(found, name).dtypes.to_dict() == getattr(full, name).dtypes.to_dict()
        for name in ("to_frame", "summary", "causes", "step_times"):
            assert getattr(found, name)().dtypes.to_dict() == getattr(full, name)().dtypes.to_dict(), name


def test_nothing_is_compared_with_nothing() -> None:
    found = hg.diff(load({0: []}), load({0: []}))
    assert (found.change_us, found.change_percent) == (0, 0)
    assert found.sentences() == ["Nothing was recorded: there is nothing to compare."]
    whole(found)


# jobs that are not alike


@pytest.mark.slow
def test_different_numbers_of_ranks_are_said() -> None:
    four, one = hg.load(DATA / "demo"), hg.load(DATA / "demo", ranks=[0])
    assert "numbers of ranks (4 before, 1 after)" in " ".join(hg.diff(four, one).sentences())
    for found in (hg.diff(four, four), hg.diff(four, one, ranks=0), hg.diff(four, one, ranks=[0])):
        assert "numbers of ranks" not in " ".join(found.sentences())


def test_the_job_without_steps_is_named() -> None:
    plain, stepped = load([op("a", 0, 9)]), load([step(1, 0, 10), op("a", 0, 9), step(2, 10, 10), op("a", 10, 9)])
    said = "The job before has no steps, so whole jobs are compared; the job after has 2 steps."
    assert said in " ".join(hg.diff(plain, stepped).sentences())
    assert "The job after has no steps" in " ".join(hg.diff(stepped, plain).sentences())
    for one, other in ((plain, plain), (stepped, stepped)):
        assert "no steps" not in " ".join(hg.diff(one, other).sentences())
    with pytest.raises(SelectionError, match="the job after: step 1 is not in this graph"):
        hg.diff(stepped, plain, steps=1)
    with pytest.raises(SelectionError, match="the job before: it has no steps"):
        hg.compare(plain, stepped, steps_after=1)
    with pytest.raises(SelectionError, match="the job after: rank 1"):
        hg.diff(load({0: [op("a", 0, 9)], 1: [op("a", 0, 9)]}), plain, ranks=1)


@pytest.mark.parametrize("call", [hg.diff, hg.compare])
def test_no_steps_chosen_and_what_is_no_graph_are_refused(call: Any) -> None:
    graph = load([step(1, 0, 10), op("a", 0, 9)])
    with pytest.raises(SelectionError, match="before: no step is chosen"):
        call(graph, graph, steps=[])
    with pytest.raises(SelectionError, match="after: no step is chosen"):
        call(graph, graph, steps=1, steps_after=[])
    with pytest.raises(TypeError, match="the job before is a str"):
        call("a", graph)
    with pytest.raises(TypeError, match="the job after is a NoneType"):
        call(graph, None)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_a_diff_says_that_devices_and_sizes_differ() -> None:
    jobs = [hg.load(SHARED / "hta" / "trace_diff" / name) for name in ("control", "test")]
    said = hg.diff(*jobs).sentences()
    assert said[0].startswith("The jobs ran on different devices (NVIDIA A100")
    assert "have different sizes (8 ranks before, 2 after)" in said[0]


# in a notebook


def test_a_notebook_shows_the_change_and_a_short_table() -> None:
    found = hg.diff(changed(), changed(ScaleKernels(name=GEMM, factor=1.4)))
    text = found._repr_html_()
    assert f"{found.before_us / 1000:,.3f} → {found.after_us / 1000:,.3f} ms per step" in text
    assert f"({found.change_us / 1000:+,.3f} ms, {found.change_percent:+.1f} %)" in text
    assert found.to_frame()["category"].iloc[0] in text
    assert 2 <= text.count("<tr") <= 9
    assert "per job" in hg.diff(load([]), load([]))._repr_html_()


def test_names_are_escaped_in_a_notebook() -> None:
    found = hg.diff(load([op("<b>&", 0, 10)]), load([op("<b>&", 0, 20)]))
    assert "<td>&lt;b&gt;&amp;</td>" in found._repr_html_()
    assert "<b>&<" not in found._repr_html_()
