"""Whether the bound of a job is said in words that its figures bear out."""

from __future__ import annotations

from dataclasses import replace

from htagraph.findings.bound import BOUND, KernelShare
from tests.findings.claims_by_hand import bound, gained


def test_host_code_and_launch_calls_are_one_cause() -> None:
    sentence = BOUND.whole(bound("host", 100.0, shares={"computation": 42.0, "host": 38.0, "launch": 20.0}))
    assert sentence == "Bound by host code and launch calls: 100 % of the critical path; then computation 42 %."
    alone = BOUND.whole(bound("host", 99.0, shares={"host": 98.0, "launch": 1.0, "computation": 1.0}))
    assert alone == "Bound by the host: 99 % (host code 98 %, launch calls 1 %) of the critical path."
    nearly = BOUND.whole(bound("host", 98.2, shares={"host": 98.0, "launch": 0.2, "computation": 1.0}))
    assert nearly == "Bound by host code: 98 % of the critical path."
    shares = {"data_loading": 52.0, "host": 48.0}  # of which no gains are known
    named = BOUND.whole(bound("host", 48.0, shares=shares, largest=", 20 % in aten::mm"))
    assert (
        named == "Bound in part by host code: 48 % of the critical path, 20 % in aten::mm; then the data loader 52 %."
    )


def test_of_causes_with_about_the_same_share_none_is_the_bound() -> None:
    shares = {"computation": 38.2, "host": 34.0, "communication": 23.0, "launch": 1.4}
    claim = bound("computation", 38.2, shares=shares, leaders=("computation", "host"))
    assert BOUND.whole(claim) == (
        "No single bound: computation 38 % and the host 35 % (host code 34 %, launch calls 1 %) of the critical path; "
        "then transfers between ranks 23 %."
    )
    assert BOUND.why(claim) == "No single bound: computation 38 % and the host 35 % of the critical path."
    alone = bound("computation", 38.2, shares=shares, leaders=("computation",))
    assert BOUND.why(alone) == "Bound in part by computation: 38 % of the critical path."


def test_a_cause_that_gains_more_than_the_largest_is_named_with_its_gain() -> None:
    gain = gained(1330.0, 16.0)
    shares = {"computation": 59.0, "host": 40.0}
    claim = bound("computation", 59.0, shares=shares, gain=gain, free_ns={"host": 2_030_000, "computation": 1_330_000})
    assert (
        "; without it the job takes 1.33 ms less (16 %), with a free CPU 2.03 ms; then host code 40 %."
        in BOUND.whole(claim)
    )
    assert "with a free CPU" not in BOUND.whole(replace(claim, free_ns={"host": 1_380_000, "computation": 1_330_000}))


def test_instances_of_a_template_are_a_family() -> None:
    claim = bound("computation", first_kernel=KernelShare("elementwise_kernel", 29.0, variants=12))
    assert BOUND.why(claim).endswith("; the largest family of kernels is elementwise_kernel (12 variants).")
    assert "Begin with elementwise_kernel (12 variants together), 29 % of the path." in BOUND.advice(claim)


def test_a_cuda_graph_is_no_kernel() -> None:
    claim = bound("computation", first_kernel=KernelShare("CUDA graph 5", 99.0, is_graph=True))
    assert BOUND.why(claim).endswith("; the largest part is CUDA graph 5, recorded as a whole.")
    assert not BOUND.advice(claim)
