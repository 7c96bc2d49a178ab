"""Coverage-guided fuzzing of the reader: ``python -m tests.fuzz.atheris_reader FOLDER tests/fuzz/corpus -runs=100000``.

atheris is no dependency of the tests: ``pip install atheris``. Options are those of libFuzzer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["htagraph.trace"]):
    from htagraph.core.errors import HtagraphError
    from htagraph.trace.kineto.read import read_trace

_FOLDER = Path(tempfile.mkdtemp())


def _try_bytes(data: bytes) -> None:
    path = _FOLDER / "rank-0.json"
    path.write_bytes(data)
    try:
        read_trace(path, lambda *_: 0)
    except HtagraphError as error:
        assert path.name in str(error)


if __name__ == "__main__":
    atheris.Setup(sys.argv, _try_bytes)
    atheris.Fuzz()
