"""The guard ends a process that reads behind an array, and no other; texts that compiled code reads are padded."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.reach import REPOSITORY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of Linux")
READ = """
import ctypes, os, threading
import numpy as np
from tests.guard.allocator import guard
if {guarded}:
    guard()
def read():
    for size in (64, 100, 4096, 5001):
        array = np.empty(size, np.uint8)
        array[:] = 7
        ctypes.string_at(array.ctypes.data, size + {more})
    grown = np.arange(100)
    grown.resize(1000, refcheck=False)
    assert grown[:100].tolist() == list(range(100)) and not np.zeros(1000).any()
{call}
os._exit(0)
"""


def ended(**how: object) -> int:
    how = {"guarded": True, "more": 0, "call": "read()", **how}
    return subprocess.run([sys.executable, "-c", READ.format(**how)], cwd=REPOSITORY, check=False).returncode


@pytest.mark.slow
@pytest.mark.parametrize("call", ["read()", "thread = threading.Thread(target=read); thread.start(); thread.join()"])
def test_a_byte_behind_an_array_ends_the_process(call: str) -> None:
    assert ended(call=call) == 0
    assert ended(call=call, more=1) == -signal.SIGSEGV
    assert ended(call=call, more=1, guarded=False) == 0


SCAN = """
import os
from tests.guard.allocator import guard
guard()
from htagraph.trace.kineto.scan.scanner import Scanner
for count in {counts}:
    event = b'{{"ph":"X","cat":"kernel","name":"k%d","pid":%d,"tid":7,"ts":1.5,"dur":2,"args":{{"stream":7}}}}'
    text = b",".join(event % (number % 9, number % 5) for number in range(count))
    block, _ = Scanner(calls=False).scan(text, 0, exact=False)
    assert len(block) == count
os._exit(0)
"""


@pytest.mark.slow
def test_a_block_of_any_number_of_events_is_read_within_its_memory() -> None:
    code = SCAN.format(counts=[*range(1, 20), 255, 256, 511, 767])
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
