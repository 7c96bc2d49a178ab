"""Whether what differs besides times is told: kernels, call paths, how jobs were recorded."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.diff_sentences import diff_sentences
from tests.strategies import complete, kernel, launch, load, op, step


def test_a_kernel_with_another_signature_is_not_called_replaced() -> None:
    def job(first: str, second: str) -> hg.DependencyGraph:
        return load([
            step(1, 0, 90), op("op", 0, 40), launch(1, 2, 1), kernel(first, 5, 30, 1),
            op("other", 50, 30), launch(51, 2, 2), kernel(second, 55, 20, 2),
        ])  # fmt: skip

    lines = diff_sentences(hg.diff(job("add<float>", "ampere_gemm_64"), job("add<half>", "volta_gemm_64")))
    assert lines[-2:] == [
        "1 kernel replaced: volta_gemm_64 instead of ampere_gemm_64.",
        "1 kernel has other template arguments or parameters: add.",
    ]


def test_python_functions_recorded_in_one_job_only_are_a_reason_for_its_slower_host() -> None:
    plain, stacks = [op("aten::mm", 0, 50)], [op("aten::mm", 5, 50), complete("python_function", "a.py(1): f", 0, 60)]
    lines = diff_sentences(hg.diff(load(stacks), load(plain)))
    assert any("Python functions were recorded in the job before only" in line for line in lines)
    assert not any("Python functions" in line for line in diff_sentences(hg.diff(load(plain), load(plain))))
