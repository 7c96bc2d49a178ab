"""A plugin of pytest (``-p tests.guard.plugin``): tests run with guarded arrays, see `tests.guard.allocator`."""

from __future__ import annotations

import os
import sys

import pytest

from tests.guard.allocator import guard

_status = [0]


def pytest_configure() -> None:
    guard()


def pytest_sessionfinish(exitstatus: int | pytest.ExitCode) -> None:
    _status[0] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status[0])
