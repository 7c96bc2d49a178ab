"""The pairs that `record_pairs.py` records: settings of A, what B changes, and how to ask htagraph for that change."""

from __future__ import annotations

from benchmarks.recorded.cuda_pairs import CUDA_PAIRS
from benchmarks.recorded.grid_pairs import GRID_PAIRS
from benchmarks.recorded.host_pairs import HOST_PAIRS
from benchmarks.recorded.interpreter_pairs import INTERPRETER_PAIRS
from benchmarks.recorded.mechanism_pairs import MECHANISM_PAIRS
from benchmarks.recorded.real_work_pairs import REAL_WORK_PAIRS
from benchmarks.recorded.second_grid_pairs import SECOND_GRID_PAIRS
from benchmarks.recorded.third_grid import THIRD_GRID_PAIRS
from benchmarks.recorded.waiting_pairs import WAITING_PAIRS

PAIRS = {
    **HOST_PAIRS,
    **CUDA_PAIRS,
    **WAITING_PAIRS,
    **REAL_WORK_PAIRS,
    **GRID_PAIRS,
    **MECHANISM_PAIRS,
    **SECOND_GRID_PAIRS,
    **THIRD_GRID_PAIRS,
    **INTERPRETER_PAIRS,
}
"""Every pair by its name."""
