from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.readings import DOUBTS, under
from tests.reach import DATA, SHARED
from tests.whatif.changes.made import Piece, made

SWAPPED = SHARED.parent / "capacity" / "device_swap"


def framed(**columns: object) -> DependencyGraph:
    """Return three operators of a linear layer, one after the other."""
    acts = pd.DataFrame({"name": ["fc1", "relu", "size"], "duration_ns": [9_000_000, 900_000, 6_000], **columns})
    return DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0, 1], "target": [1, 2]}))


SHAPES = {
    "device": "Tesla V100-PCIE-32GB", "dtype": "torch.float32",
    "input_shapes": ["[[4096, 4096]]", [[4096, 16384]], None], "output_shape": ["(4096, 16384)", [4096, 16384], None],
}  # fmt: skip


def test_operators_of_a_frame_follow_what_bounds_them() -> None:
    graph = framed(**SHAPES)
    outcome = hg.what_if(graph).device("H100 SXM").run()
    before, after = graph.activities.duration, outcome.graph.activities.duration
    ratio = after / before
    assert 0.2 < ratio[0] < 0.3  # 14 to 67 TFLOP/s
    assert 0.25 < ratio[1] < 0.3  # 900 to 3,350 GB/s
    assert after[2] == before[2]
    assert outcome.low < outcome.speedup < outcome.high


def test_there_and_back_is_the_recorded_time() -> None:
    scenario = hg.what_if(framed(**SHAPES)).device("A10")
    back = scenario.run().graph
    assert hg.what_if(back).device("V100 PCIe", recorded="A10").run().makespan_ns == pytest.approx(9_906_000, rel=1e-3)


def test_names_alone_do_if_there_are_no_shapes() -> None:
    outcome = hg.what_if(framed(device="V100 PCIe")).device("H100").run()
    assert outcome.speedup == pytest.approx(hg.what_if(framed(**SHAPES)).device("H100").run().speedup, rel=0.1)
    assert any("without shapes" in note for note in outcome.notes)
    assert any("taken as H100 SXM" in note for note in outcome.notes)


def test_what_nothing_is_known_of_may_be_bound_by_anything() -> None:
    outcome = hg.what_if(framed(name=["x", "y", "z"], device="A100 40GB SXM")).device("L40S").run()
    assert outcome.low < 0.6  # 1,555 to 864 GB/s
    assert outcome.high > 3  # 19.5 to 91.6 TFLOP/s


def test_given_operations_count_like_shapes() -> None:
    flop = [2 * 4096 * 4096 * 16384, None, None]
    given = framed(device="V100 PCIe", flop=flop, bytes=[6e8, 5e8, None])
    assert given.activities.arg("flop").tolist() == [flop[0], -1, -1]
    speedup = hg.what_if(given).device("H100 SXM").run().speedup
    assert speedup == pytest.approx(hg.what_if(framed(**SHAPES)).device("H100 SXM").run().speedup, rel=0.05)


def test_the_interval_replays_all_kernels_at_either_end() -> None:
    state = hg.what_if(framed(**SHAPES)).device("H100 SXM").state
    (unsure,) = state.unsure
    for cause, factor in ((IntervalCause.LONGER_MODEL, unsure.high), (IntervalCause.SHORTER_MODEL, unsure.low)):
        other = under(DOUBTS[cause], state)
        assert other is not None
        own = state.graph.edges.activity[state.graph.edges.activity >= 0]
        assert np.allclose(other.lag[: len(own)], state.lag[: len(own)] * factor[own], atol=1)


def test_the_same_device_changes_nothing() -> None:
    outcome = hg.what_if(framed(**SHAPES)).device("V100-PCIE").run()
    assert (outcome.speedup, outcome.low, outcome.high) == (1, 1, 1)


def test_collectives_hosts_and_copies_to_hosts_keep_their_time() -> None:
    names = ("Memcpy HtoD (Pinned -> Device)", "ampere_sgemm_128x64_tn")
    pieces = [*(Piece(name, 7, 10**6) for name in names), Piece("nccl", 7, 10**6, collective=0)]
    graph = made(pieces)
    outcome = hg.what_if(graph).device("H100 SXM", recorded="T4").run()
    took = graph.activities.duration - outcome.graph.activities.duration
    assert [graph.names[name] for name in np.unique(graph.activities.name[took != 0])] == [names[1]]


def test_a_host_is_slower_by_its_factor() -> None:
    graph = hg.load(DATA / "demo", ranks=[0])
    assert (
        hg.what_if(graph).host_factor(2.0).run().makespan_ns
        == hg.what_if(graph).scale(factor=2.0, kind="host").run().makespan_ns
    )


def test_types_without_units_and_other_makers_are_said() -> None:
    graph = framed(device="H100 SXM", dtype="torch.bfloat16")
    notes = " ".join(hg.what_if(graph).device("V100").run().notes)
    assert "no units for bf16" in notes
    wider, narrow = (hg.what_if(graph).device(name).run() for name in ("MI300X", "H200"))
    assert "AMD" in " ".join(wider.notes)
    assert wider.high / wider.low > 1.1 * narrow.high / narrow.low


@pytest.mark.parametrize(
    ("graph", "name", "recorded", "why"),
    [
        (framed(), "H100", "", "does not name its device"), (framed(), "A100", "T4", "say which"),
        (framed(device="Z1"), "H100", "", "'Z1' of rank 0 is no known device"),
        (framed(), "T4", "x", "no known device"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_refused(graph: DependencyGraph, name: str, recorded: str, why: str) -> None:
    with pytest.raises(SelectionError, match=why):
        hg.what_if(graph).device(name, recorded=recorded)


def test_a_second_device_is_refused() -> None:
    with pytest.raises(SelectionError, match="already"):
        hg.what_if(framed(**SHAPES)).device("H100 SXM").device("T4")


def test_a_job_without_a_device_is_refused() -> None:
    with pytest.raises(SelectionError, match="no kernels"):
        hg.what_if(hg.load(DATA / "gloo_ddp", ranks=[0])).device("H100")


@pytest.mark.skipif(not SWAPPED.exists(), reason="the recordings are not here")
@pytest.mark.parametrize("path", sorted((SWAPPED / "h100").glob("*")), ids=lambda path: Path(path).stem[:9])
def test_kernels_on_another_makers_device_take_about_as_predicted(path: Path) -> None:
    both = [hg.load(each) for each in (path, SWAPPED / "mi300" / path.name)]
    for graph, other, name in ((both[0], both[1], "MI300X"), (both[1], both[0], "H100 SXM")):
        predicted = hg.what_if(graph).device(name).run().graph
        took = [float(each.activities.duration[each.activities.on_device].sum()) for each in (predicted, other)]
        assert took[0] == pytest.approx(took[1], rel=0.25)


def test_another_device_of_the_same_data_sheet_may_still_differ() -> None:
    """The data sheets of MI210 and one die of MI250 agree; nobody measured either, so the interval is no point."""
    outcome = hg.what_if(framed(device="MI210")).device("MI250").run()
    assert outcome.speedup == 1
    assert outcome.high / outcome.low > 1.3
    same = hg.what_if(outcome.baseline).device("MI210").run()
    assert same.low == same.high == 1
