from __future__ import annotations

from typing import Any

import pytest

from htagraph.queries.precision import single_precision_kernels
from tests.strategies import kernel, launch, load, op

GEMM = "ampere_sgemm_128x64_tn"


@pytest.mark.parametrize(
    ("types", "single"),
    [
        (["float", "float"], True),
        (["c10::BFloat16", "c10::BFloat16"], False),
        (["c10::Half", "Scalar"], False),
        (["c10::BFloat16", "float"], True),
        (["Scalar", ""], True),
        (None, True),
    ],
)
def test_the_inputs_of_the_operator_count_before_the_name(types: list[str] | None, single: bool) -> None:  # noqa: FBT001
    inputs: Any = {} if types is None else {"Input type": types, "Input Dims": [[2, 2], [2, 2]]}
    graph = load([op("aten::mm", 0, 9, **inputs), launch(1, 5, 1), kernel(GEMM, 10, 900, 1)])
    assert [graph.names[name] for name in single_precision_kernels(graph).tolist()] == [GEMM] * single


def test_a_kernel_without_an_operator_is_known_by_name_and_copies_never_count() -> None:
    graph = load([kernel(GEMM, 10, 900), kernel("copy_sgemm_of_mine_bf16", 1000, 5)])
    assert [graph.names[name] for name in single_precision_kernels(graph).tolist()] == [GEMM]
