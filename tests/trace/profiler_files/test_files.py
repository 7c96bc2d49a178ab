from __future__ import annotations

import gzip
import json
import os
import pickle
import zlib
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htagraph.core.errors import DamagedTraceError, TraceError
from htagraph.trace.profiler_files import files
from htagraph.trace.profiler_files.files import content, inflated, kind_of

CONTENTS = {
    "snapshot": pickle.dumps({"segments": []}),
    "timeline": b" [\n [1, 2, 3, 4]]",
    "trace": json.dumps({"schemaVersion": 1, "traceEvents": []}).encode(),
}


@given(data=st.binary(max_size=50), gzipped=st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_content_is_the_same_gzipped_or_not(data: bytes, tmp_path: Path, *, gzipped: bool) -> None:
    path = tmp_path / "file"  # without a suffix that would tell
    path.write_bytes(gzip.compress(data) if gzipped else b"." + data)
    assert content(path) == (data if gzipped else b"." + data)


@pytest.mark.parametrize("cut", [3, 15, 25])
def test_a_gzip_stream_that_ends_early_is_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"some text that is long enough")[:cut])
    with pytest.raises(DamagedTraceError, match=r"a\.json\.gz: the gzip stream is damaged"):
        content(path)


@pytest.mark.parametrize("name", ["absent", "."])
def test_what_is_not_a_readable_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        content(tmp_path / name)


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("gzipped", [False, True])
def test_a_files_kind_is_that_of_its_content(kind: str, tmp_path: Path, *, gzipped: bool) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(gzip.compress(CONTENTS[kind]) if gzipped else CONTENTS[kind])
    assert kind_of(path) == kind


@pytest.mark.parametrize("data", [b"", b"[", b"[1]", b'[{"ph"', b"\x1f\x8b damaged", b"text"])
def test_anything_else_counts_as_a_trace(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert kind_of(path) == "trace"


def test_folders_absent_files_and_pipes_count_as_traces(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert [kind_of(tmp_path / name) for name in (".", "absent", "pipe", "a\0b")] == ["trace"] * 4


@pytest.mark.parametrize("gzipped", [False, True])
def test_content_has_a_limit_that_the_error_names(tmp_path: Path, *, gzipped: bool) -> None:
    data = b"[" + b" " * 5000
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data) if gzipped else data)
    with patch.object(files, "MAX_BYTES", 5000), pytest.raises(TraceError, match=r"file: has more than .* MiB"):
        content(path)
    with patch.object(files, "MAX_BYTES", 5001):
        assert content(path) == data


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_what_was_compressed_comes_back(size: int) -> None:
    assert inflated(zlib.compress(bytes(size)), size + 1) == bytes(size)


def test_too_many_bytes_too_few_and_others_are_refused() -> None:
    packed = zlib.compress(bytes(1_000_000))
    with pytest.raises(ValueError, match="too many"):
        inflated(packed, 1000)
    with pytest.raises(ValueError, match="end early"):
        inflated(packed[:-4], 2_000_000)
    with pytest.raises(zlib.error):
        inflated(b"no zlib", 1000)
