"""Attention by hand is all operators on scores between its two products, and nothing else of the same names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.findings.attention import attention_in
from htagraph.findings.changes import changes_of
from htagraph.findings.finding import claims_that_are
from htagraph.findings.plan import plan_of
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.results import Results
from tests.reach import SHARED
from tests.strategies import COMPUTE, Json, arrow, kernel, launch, load, op

_ON_SCORES = ("aten::div", "aten::masked_fill", "aten::dropout", "aten::add", "aten::clone")
_PAIR = SHARED.parent / "real_pairs" / "data_real_compute" / "gpt_flash"


def in_row(*spans: tuple[str, float], begin: float = 0.0) -> list[Json]:
    """Return operators that follow one another on a thread, 1 µs apart."""
    events = []
    at = begin
    for name, us in spans:
        events.append(op(name, at, us))
        at += us + 1
    return events


def claim_of(results: Results) -> RemedyClaim | None:
    claims = claims_that_are(RemedyClaim, results.claims(REMEDY.when))
    return next((claim for claim in claims if claim.about == "attention"), None)


@pytest.mark.parametrize(("last", "is_one"), [("aten::bmm", True), ("aten::addmm", False)])
def test_a_softmax_between_batched_products_is_attention(last: str, *, is_one: bool) -> None:
    names = ("aten::bmm", "aten::div", "aten::_softmax", last)
    results = Results(load(in_row(*((name, 90) for name in names))))
    assert bool(claim_of(results)) == is_one


def test_a_softmax_of_routers_is_no_attention() -> None:
    attention = in_row(("aten::bmm", 90.0), ("aten::_softmax", 90.0), ("aten::bmm", 90.0))
    routers = in_row(*[("aten::mm", 50.0), ("aten::_softmax", 90.0)] * 4, begin=1_000.0)
    few = in_row(("aten::mm", 50.0), ("aten::_softmax", 90.0), begin=1_000.0)
    assert attention_in(load([*attention, *routers])) is None
    found = attention_in(load([*attention, *attention_again(), *few]))
    assert found is not None
    assert found.changes[0] == ("--scale", "op=aten::_softmax*:0.3333")


def attention_again() -> list[Json]:
    """Return a second attention behind the first one."""
    return in_row(("aten::bmm", 90.0), ("aten::_softmax", 90.0), ("aten::bmm", 90.0), begin=500.0)


def test_a_softmax_inside_of_another_one_is_one_softmax() -> None:
    events = in_row(("aten::bmm", 90.0), ("aten::_safe_softmax", 90.0), ("aten::bmm", 90.0))
    events.append(op("aten::_softmax", 95.0, 50.0))
    claim = claim_of(Results(load(events)))
    assert claim is not None
    assert claim.figure == pytest.approx(90.0, abs=0.1)


@given(
    st.lists(st.tuples(st.sampled_from(_ON_SCORES), st.integers(20, 200)), max_size=5),
    st.lists(st.tuples(st.sampled_from(_ON_SCORES), st.integers(20, 200)), max_size=5),
    st.integers(20, 200),
)
def test_the_gain_is_the_time_of_all_operators_on_scores(
    before: list[tuple[str, int]], behind: list[tuple[str, int]], softmax_us: int
) -> None:
    """A fused kernel does without the operators before the softmax and behind it; the products stay."""
    between = [*before, ("aten::_softmax", softmax_us), *behind]
    layer = [("aten::mm", 50.0), ("aten::bmm", 90.0), *between, ("aten::bmm", 90.0), ("aten::layer_norm", 40.0)]
    claim = claim_of(Results(load(in_row(*layer, *layer))))
    assert claim is not None
    assert claim.figure == pytest.approx(2 * sum(us for _, us in between), abs=0.1)


def test_a_name_that_is_mostly_elsewhere_stays() -> None:
    attention = [("aten::bmm", 90), ("aten::div", 10), ("aten::_softmax", 60), ("aten::bmm", 90)]
    graph = load(in_row(*attention, ("aten::mm", 10), ("aten::div", 500)))
    claim = claim_of(Results(graph))
    assert claim is not None
    assert claim.figure == pytest.approx(60, abs=0.1)


def test_operators_inside_the_second_product_are_of_that_product() -> None:
    """``aten::matmul`` copies values into a row before it multiplies."""
    events = in_row(("aten::bmm", 90), ("aten::_softmax", 60), ("aten::matmul", 200))
    events += [op("aten::clone", 160, 50), op("aten::bmm", 220, 90)]
    claim = claim_of(Results(load(events)))
    assert claim is not None
    assert claim.figure == pytest.approx(60, abs=0.1)


def test_what_runs_backward_for_operators_on_scores_goes_with_them() -> None:
    forward = in_row(("aten::bmm", 90), ("aten::div", 40), ("aten::_softmax", 60), ("aten::bmm", 90))
    node = op("autograd::engine::evaluate_function: DivBackward0", 400, 80)
    backward = op("DivBackward0", 405, 70)
    events = [*forward, node, backward, op("aten::mul", 410, 60), *arrow(1, forward[1], backward)]
    claim = claim_of(Results(load(events)))
    assert claim is not None
    assert claim.figure == pytest.approx(40 + 60 + 80, abs=0.1)


def of_device(*spans: tuple[str, str, float]) -> list[Json]:
    """Return operators, each with a kernel of its own, back to back on the device."""
    events: list[Json] = []
    at = 100.0
    for number, (name, kernel_name, us) in enumerate(spans, 1):
        events += [op(name, 6 * number, 5), launch(6 * number + 1, 2, number), kernel(kernel_name, at, us, number)]
        at += us
    return events


def test_a_plan_adds_no_change_to_time_that_attention_in_one_operator_removes() -> None:
    """Half of the kernel that divides scores gains nothing more where the kernel is gone."""
    elementwise = "void at::native::vectorized_elementwise_kernel<4, Div>(int)"
    layer = [
        ("aten::bmm", "bmm_kernel", 300.0),
        ("aten::div", elementwise, 200.0),
        ("aten::_softmax", "softmax_kernel", 200.0),
        ("aten::bmm", "bmm_kernel", 300.0),
        ("aten::mm", COMPUTE, 900.0),
    ]
    results = Results(load(of_device(*layer, *layer)))
    plan = plan_of(results, 6)
    chosen = dict(zip(plan.changes["change"], plan.changes["adds_us"], strict=True))
    assert chosen["attention in one operator"] == pytest.approx(800, abs=20)
    assert not [name for name in chosen if "elementwise" in name or "aten::div" in name or "softmax_kernel" in name]


@pytest.mark.skipif(not _PAIR.is_dir(), reason="recorded pairs are not in reach")
def test_the_interval_holds_what_one_operator_saved_in_a_recorded_pair() -> None:
    """Four runs each took 52.1 and 47.6 ms per step (medians), and 58.6 and 52.0 ms (means) while recorded."""
    results = Results(hg.load(_PAIR / "A1"))
    claim = claim_of(results)
    assert claim is not None
    assert claim.change is not None
    gain = claim.change.gain
    for saved_ms in (4.5, 4.9, 6.5):
        assert gain.low_us <= 1000 * saved_ms * gain.steps <= gain.high_us
    assert gain.per_step_us >= 4000
    names = {results.graph.names[name] for name in attention_in(results.graph).names}  # type: ignore[union-attr]
    assert names == {"aten::masked_fill", "aten::softmax", "aten::div"}
    assert any(row.change and row.change.name == "attention in one operator" for row in changes_of(results))
