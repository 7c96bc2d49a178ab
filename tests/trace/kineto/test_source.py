"""Bytes of files: gzip in every state, other formats, and files that are not there."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from htagraph.core.errors import DamagedTraceError, NotATraceError, TraceError
from htagraph.trace.kineto import source
from htagraph.trace.kineto.source import iter_bytes
from tests.damage import document, healthy, in_pieces, issues, kineto_text, loaded, log, names, read, written
from tests.packed import bgzipped, pzstd, zstd

EVENTS = healthy(40)
TEXT = kineto_text(EVENTS).encode()
WORK = [event["name"] for event in EVENTS if event["ph"] == "X"]
PACKED = gzip.compress(TEXT, 6)


def content_of(path: Path, piece: int = 4 << 20) -> tuple[bytes, set[str]]:
    report = log()
    data = b"".join(iter_bytes(path, report, piece_bytes=piece))
    return data, {issue.what for issue in report.issues()}


@pytest.mark.parametrize("piece", [1, 2, 7, 1000, 4 << 20])
def test_plain_and_gzipped_bytes_come_back_whole(piece: int, tmp_path: Path) -> None:
    text = TEXT[:3000]
    members = b"".join(gzip.compress(part) for part in in_pieces(text, 700))
    for data in (text, gzip.compress(text), members, gzip.compress(text) + b"\0" * 600):
        (tmp_path / "any.name").write_bytes(data)
        assert content_of(tmp_path / "any.name", piece) == (text, set())


def test_one_document_over_several_gzip_members_is_read_in_silence(tmp_path: Path) -> None:
    trace = loaded(tmp_path, b"".join(gzip.compress(part) for part in in_pieces(TEXT, 5000)))
    assert names(trace) == WORK
    assert not trace.issues


@pytest.mark.parametrize("cut", [*range(2, len(PACKED), 23), len(PACKED) - 8, len(PACKED) - 1])
def test_a_gzip_stream_that_ends_early_yields_what_it_holds(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(PACKED[:cut])
    data, found = content_of(path)
    assert data == zlib.decompressobj(31).decompress(PACKED[:cut])
    assert found == {"gzip_truncated"}
    try:
        trace = read(path)
    except TraceError as error:
        assert "a.json.gz" in str(error)
        assert data.count(b'"ph"') <= 1
    else:
        assert names(trace) == WORK[: len(trace.events)]
        assert issues(trace)["gzip_truncated"] == 1


@pytest.mark.parametrize("size", [64, 1000, 4 << 20])
def test_a_wrong_checksum_loses_nothing(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(PACKED[:-8] + b"\1\2\3\4" + PACKED[-4:])
    with patch.object(source, "PIECE_BYTES", size):
        trace = read(path)
    assert names(trace) == WORK
    assert issues(trace) == {"gzip_damaged": 1}


@pytest.mark.parametrize("size", [100, 4 << 20])
def test_a_damaged_stream_yields_what_lies_before(size: int, tmp_path: Path) -> None:
    noise = random.Random(7)
    path = tmp_path / "a.gz"
    for at in range(30, len(PACKED) - 40, 61):
        path.write_bytes(PACKED[:at] + noise.randbytes(16) + PACKED[at + 16 :])
        data, found = content_of(path, size)
        intact = zlib.decompressobj(31).decompress(PACKED[:at])
        assert data.startswith(intact)
        assert found <= {"gzip_damaged", "gzip_truncated", "gzip_trailing_bytes"}
        assert found


@pytest.mark.parametrize("flags", range(0, 32, 2))
def test_headers_of_every_kind_are_skipped_to_read_before_damage(flags: int, tmp_path: Path) -> None:
    extra = b"\3\0abc" if flags & 4 else b""
    texts = b"".join(b"text\0" for bit in (8, 16) if flags & bit)
    head = PACKED[:3] + bytes([flags]) + PACKED[4:10] + extra + texts
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little") if flags & 2 else b""
    (tmp_path / "a.gz").write_bytes(head + PACKED[10:-8] + b"bad!" + PACKED[-4:])
    assert content_of(tmp_path / "a.gz") == (TEXT, {"gzip_damaged"})


def test_damage_in_a_large_stream_costs_only_what_follows(tmp_path: Path) -> None:
    noise = random.Random(3)
    text = b"".join(b"%d," % noise.getrandbits(40) for _ in range(300_000))
    packed = gzip.compress(text, 1)
    path = tmp_path / "a.gz"
    path.write_bytes(packed[:-8] + b"bad!" + packed[-4:])
    assert content_of(path, 1 << 20) == (text, {"gzip_damaged"})


def test_bytes_behind_the_gzip_stream_are_reported_but_a_second_document_is_refused(tmp_path: Path) -> None:
    trace = loaded(tmp_path, PACKED + b"garbage")
    assert (names(trace), issues(trace)) == (WORK, {"gzip_trailing_bytes": 1})
    with pytest.raises(DamagedTraceError, match=r"trace\.json.*several ranks"):
        loaded(tmp_path, PACKED + gzip.compress(document(EVENTS, rank=1).encode()))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04rest", "zip"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"PAR1", "parquet"),
        (b"SQLite format 3\0", "SQLite"),
        (b"\x80\x04\x95", "pickle"),
        (b"\x0a\x05\0\0\x12", "binary data"),
        ("{}".encode("utf-16"), "binary data"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_other_formats_are_named(data: bytes, words: str, packed: bool, tmp_path: Path) -> None:  # noqa: FBT001
    with pytest.raises(NotATraceError, match=rf"trace\.json: .*{words}"):
        loaded(tmp_path, gzip.compress(data) if packed else data)


@pytest.mark.parametrize(
    ("data", "words"), [(b"", "empty"), (b"\x1f\x8b", ""), (b"\x1f\x8b\x08\0", ""), (gzip.compress(b"", mtime=0), "")]
)
def test_files_without_content_are_refused(data: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=rf"trace\.json: .*{words}"):
        loaded(tmp_path, data)


@pytest.mark.parametrize(("name", "words"), [("none.json", r"none\.json: cannot be read \(No"), ("", "cannot")])
def test_a_folder_and_a_file_that_is_not_there_are_refused(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=words):
        read(tmp_path / name)


def test_progress_reaches_the_size_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json.gz", TEXT)
    told: list[int] = []
    with patch.object(source, "PIECE_BYTES", 500):
        list(iter_bytes(path, log(), told.append))
    assert told == sorted(told)
    assert told[-1] == path.stat().st_size


def test_zstd_reads_as_plain_text_does_in_one_frame_and_in_several(tmp_path: Path) -> None:
    for number, packed in enumerate((zstd(TEXT), zstd(TEXT[:1000]) + zstd(TEXT[1000:]))):
        path = tmp_path / f"{number}.json.zst"
        path.write_bytes(packed)
        assert content_of(path) == (TEXT, set())
        assert content_of(path, 1000) == (TEXT, set())
    assert names(read(path)) == WORK


@pytest.mark.parametrize("pack", [bgzipped, zstd, pzstd])
@pytest.mark.parametrize("size", [64, 1000, 4 << 20])
def test_parts_unpack_as_the_whole_does(pack: Callable[[bytes], bytes], size: int, tmp_path: Path) -> None:
    path, noise, text = tmp_path / "a.packed", random.Random(5), TEXT[:9000]
    parts = [pack(part) for part in in_pieces(text, 1500)]
    packed, third = b"".join(parts), sum(map(len, parts[:3]))
    path.write_bytes(packed)
    assert content_of(path, size) == (text, set())
    for at in range(third + 25, len(packed) - 60, 97):
        for damaged in (packed[:at], packed[:at] + noise.randbytes(16) + packed[at + 16 :], packed[:at] + parts[0]):
            path.write_bytes(damaged)
            found = content_of(path, size)
            assert found[0].startswith(text[:4500])
            with patch.object(source, "_parts", lambda *_: iter(())):
                assert content_of(path, size) == found


@pytest.mark.parametrize("pack", [bgzipped, zstd, pzstd])
def test_members_of_known_size_are_parts(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    mixed = TEXT + random.Random(1).randbytes(300_000) + bytes(300_000)  # blocks that are packed, not packed, one byte
    parts = [pack(part) for part in in_pieces(mixed, 60_000 if pack is bgzipped else 500_000)]
    path = written(tmp_path / "a.packed", b"".join(parts))
    with path.open("rb") as file:
        found = list(source._parts(file, 1 << 20))
    assert b"".join(part for _, part in found) == path.read_bytes()
    assert content_of(path)[0] == mixed
    path.write_bytes(pack(b"") * 30_000)  # neither kept as a whole nor copied for each member
    assert content_of(path) == (b"", set())


def test_zstd_that_is_cut_or_damaged_is_read_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.json.zst"
    packed = zstd(TEXT[:2000]) + zstd(TEXT[2000:])
    path.write_bytes(packed[:-20])
    assert 0 < len(names(read(path))) < len(WORK)
    assert "truncated" in issues(read(path))
    path.write_bytes(zstd(TEXT[:2000]) + b"no frame of zstd")
    assert "zstd_damaged" in issues(read(path))
    path.write_bytes(zstd(b"PK\x03\x04" + TEXT))
    with pytest.raises(TraceError, match="a zip archive"):
        read(path)


@pytest.mark.parametrize("at", [30, 100])
@pytest.mark.parametrize("zeros", [1, 4, 40])
def test_zeros_in_the_beginning_of_a_text_do_not_make_it_binary(at: int, zeros: int, tmp_path: Path) -> None:
    text = kineto_text(healthy(3)).encode()
    trace = loaded(tmp_path, text[:at] + bytes(zeros) + text[at + zeros :])
    assert len(trace.events) == 9
    assert "header_damaged" in issues(trace)


@pytest.mark.parametrize("content", [b"\n{\x08\x01\x12\x0f\0\0{", b'{"\0\x01\x02\x03\x04\x05' * 20, b"\0" * 300])
def test_binary_data_is_refused_as_that(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="binary data"):
        loaded(tmp_path, content)
