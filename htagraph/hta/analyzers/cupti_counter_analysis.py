"""CUPTI's counters by HTA's own path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.hta.shapes.cupti import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS, cupti_counter_data_with_operators

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.hta.common.trace import Trace

__all__ = ["CUDA_SASS_INSTRUCTION_COUNTER_FLOPS", "CuptiCounterAnalysis"]


class CuptiCounterAnalysis:
    """HTA's class behind `TraceAnalysis.get_cupti_counter_data_with_operators`."""

    @classmethod
    def get_counter_data_with_operators(cls, t: Trace, ranks: Sequence[int] | None = None) -> list[pd.DataFrame]:
        """Return the counters of each kernel with the operators that launched it, one table per rank.

        Args:
            t: a job that was read.
            ranks: rank 0 if not given.
        """
        return cupti_counter_data_with_operators(t.job, ranks)
