"""A Python that has PyTorch: this one, or the one that HTAGRAPH_TORCH names. Tests that need it skip without."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

__all__ = ["needs_torch", "record", "run_with_torch"]

_PYTHON = sys.executable if importlib.util.find_spec("torch") else os.environ.get("HTAGRAPH_TORCH", "")

needs_torch = pytest.mark.skipif(not _PYTHON, reason="needs PyTorch here, or a Python that has it in HTAGRAPH_TORCH")

_SECONDS = 120
"""Seconds after which a script is ended, so that a job whose ranks wait forever fails. Chosen: the longest takes 15."""


@cache
def record(folder: Path, what: str, *args: str) -> Path:
    """Return a folder in which a job of `torch_job.py` was recorded."""
    out = folder / "-".join((what, *args))
    run_with_torch(Path(__file__).with_name("torch_job.py"), what, str(out), *args)
    return out


def run_with_torch(script: Path, *words: str) -> None:
    """Run a script by a Python that has PyTorch."""
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [_PYTHON, str(script), *words], capture_output=True, text=True, env=environment, check=False, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stderr
