"""A fixed list of hostile inputs, each with the answer it gets: an exit code, and words of what is said.

An attack makes files in an empty folder and returns the words of a command on them. ``{}`` in words is the folder.
"""

from __future__ import annotations

import gzip
import lzma
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import zstandard

from tests.damage import call, document, healthy, kernel, kineto_text, op
from tests.trace.nsys.made import KERNELS, small
from tests.trace.nsys.test_database import _with_endless_table

__all__ = ["ATTACKS", "HOSTILE", "Attack"]

Json = dict[str, Any]
_ANSWERED: Final = "What takes the most time"
"""A heading of `htagraph summary`, on jobs of which anything was read."""

HOSTILE: Final = "</script>|\x1b]0;x\x07\x9b31m\u202egnp.exe\u2066`$(id)`\n\x00\ud800{$(=cmd()"
"""A name that closes scripts, writes to terminals, runs from right to left and is half a character."""


class Attack(NamedTuple):
    """What is made, asked and answered."""

    make: Callable[[Path], object]
    """Writes the files of the attack into a folder."""
    words: str
    """The words of the command; ``{}`` is the folder."""
    code: int
    """The exit code."""
    says: str
    """What is said, as a regular expression, on stdout or stderr."""


def _text(path: Path, text: str | bytes) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)


def _with(*changes: Json, count: int = 6, **keys: Any) -> Callable[[Path], None]:
    """Return what writes a healthy trace with more events and other keys of the header."""
    return lambda folder: _text(
        folder / "rank-0.json", kineto_text([*healthy(count)[:-1], *changes, healthy()[-1]], **keys)
    )


def _raw(old: str, new: str) -> Callable[[Path], None]:
    """Return what writes a healthy trace with one part of its text replaced."""

    def make(folder: Path) -> None:
        text = document(healthy())
        assert old in text, old
        _text(folder / "rank-0.json", text.replace(old, new))

    return make


def _sql(*statements: str) -> Callable[[Path], None]:
    """Return what writes an export of Nsight Systems and changes it."""

    def make(folder: Path) -> None:
        with sqlite3.connect(small(folder / "a.sqlite")) as database:
            for statement in statements:
                database.execute(statement)
        database.close()

    return make


def _names_of_10_kb(folder: Path) -> None:
    names = ["void " + "at::native::elementwise<" * 400 + f"{number}>" for number in range(300)]
    _text(folder / "rank-0.json", document([kernel(number, name=name) for number, name in enumerate(names)]))


def _process_groups(folder: Path) -> None:
    args = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 9, "Out msg nelems": 9, "Group size": 2}
    events = [kernel(number, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL") for number in range(1, 2001)]
    for number, event in enumerate(events):
        event["args"] |= args | {"Process Group Name": str(number), "Process Group Ranks": [0, 1]}
    _text(folder / "rank-0.json", document(events))


def _sizes_over_int64(folder: Path) -> None:
    sizes = [2**63 - 1, -(2**63), 0, 1, 2**62]
    events = [kernel(number, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL") for number in range(1, 6)]
    for event, size in zip(events, sizes, strict=True):
        event["args"] |= {
            "Collective name": "allreduce",
            "dtype": "Byte",
            "In msg nelems": size,
            "Out msg nelems": size,
        }
        event["args"] |= {"Process Group Name": "0", "Group size": 2, "correlation": size}
    _text(folder / "rank-0.json", document(events))


def _line_before_sound_events(folder: Path) -> None:
    lines = kineto_text(healthy()).splitlines()
    lines.insert(30, "1, 2, 3]}},")
    _text(folder / "rank-0.json", "\n".join(lines))


def _bomb(folder: Path) -> None:
    head, tail = document(healthy()).encode().split(b'"traceEvents": [', 1)
    with gzip.open(folder / "rank-0.json.gz", "wb", 9) as file:
        file.write(head + b'"traceEvents": [')
        for _ in range(256):
            file.write(b" " * (1 << 20))
        file.write(tail)


def _packed(pack: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: _text(folder / "rank-0.json", pack(document(healthy()).encode()))


def _zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / "rank-0.json", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", document(healthy()))


def _flows_in_circles(folder: Path) -> None:
    flows: list[Json] = []
    for category in ("ac2g", "fwdbwd"):
        for number in range(1, 6):
            after = number % 5 + 1
            common = {"id": number, "cat": category, "name": category}
            flows.append({"ph": "s", "pid": 77, "tid": 77, "ts": 100 * number, **common})
            flows.append({"ph": "f", "bp": "e", "pid": 77, "tid": 77, "ts": 100 * after, **common})
            flows.append({"ph": "s", "pid": 0, "tid": 7, "ts": 100 * number + 20.5, **common, "id": (1 << 40) + number})
            flows.append({"ph": "f", "pid": 0, "tid": 7, "ts": 100 * after + 20.5, **common, "id": (1 << 40) + number})
    _with(*flows)(folder)


def _deep(folder: Path) -> None:
    text = document(healthy())
    deep = "[" * 100_000 + "]" * 100_000
    _text(folder / "rank-0.json", text.replace('"Input Dims": [[2, 3], []]', f'"Input Dims": {deep}', 1))


def _nested_operators(folder: Path) -> None:
    events = [op(1, name=f"aten::mm{number % 7}", ts=number / 100, dur=1000 - number / 50) for number in range(5_000)]
    _text(folder / "rank-0.json", document([*events, *healthy()[1:]]))


def _many(key: str) -> Callable[[Path], None]:
    """Return what writes many threads, streams or devices of one event each."""

    def event(number: int) -> Json:
        if key == "thread":
            return op(1, ts=number, tid=number)
        place = {"device": number, "stream": 7} if key == "device" else {"device": 0, "stream": number}
        made = kernel(number % 7, ts=number, pid=place["device"], tid=place["stream"])
        return {**made, "args": {**made["args"], **place, "correlation": number}}

    return lambda folder: _text(folder / "rank-0.json", document([event(number) for number in range(2_000)]))


def _steps_without_end(folder: Path) -> None:
    steps: list[Json] = [
        {"ph": "B", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 77, "tid": 77, "ts": number}
        for number in (0, 1, 10**30, -5)
    ]
    steps.append({**steps[0], "ph": "X", "name": f"ProfilerStep#{2**63}", "dur": 9e15, "ts": 5})
    _with(*steps)(folder)


def _two_of_a_rank(folder: Path) -> None:
    for name in "ab":
        _text(folder / f"{name}.json", document(healthy()))


def _links_in_circles(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "again").symlink_to(folder, target_is_directory=True)
    (folder / "loop.json").symlink_to(folder / "loop.json")
    _text(folder / "rank-0.json", document(healthy()))


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "rank-0.json")


def _folder_with_the_name_of_a_trace(folder: Path) -> None:
    (folder / "rank-0.json").mkdir()


def _name_of_bytes(folder: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(folder) + b"/rank-0-\xff\xfe\x1b[31m.json"))
    _text(path, document(healthy()))


def _hostile(folder: Path) -> None:
    events = [*healthy()]
    for event in events:
        if event["ph"] == "X":
            event["name"] = HOSTILE + event["name"]
    events[0]["args"]["name"] = HOSTILE
    events.append({"ph": "C", "name": HOSTILE, "pid": "GPU 0 Counters", "ts": 130, "args": {"": 1.5}})
    events.append({"ph": "X", "cat": HOSTILE, "name": HOSTILE, "pid": HOSTILE, "tid": HOSTILE, "ts": 1, "dur": 1})
    text = document(events, ensure_ascii=True)
    _text(folder / "rank-0.json", text.replace('"rank": 0', '"rank": "../../etc/passwd"'))


def _counters(folder: Path) -> None:
    samples = [
        {"ph": "C", "name": f"c{number}", "pid": f"GPU {10**number} Counters", "ts": number, "args": {"": 10**number}}
        for number in range(0, 400, 20)
    ]
    samples += [{"ph": "C", "name": "far", "pid": "GPU 0 Counters", "ts": ts, "args": {"": 1}} for ts in (1e300, -9e15)]
    _with(*samples)(folder)


def _cut(folder: Path) -> None:
    text = kineto_text(healthy())
    first = text.index('"cuda_runtime"')
    start = text.index('"correlation":', first)
    end = text.index("\n  {", start)
    _text(folder / "rank-0.json", text[: start + 14] + text[end:])


def _end_among_events(folder: Path) -> None:
    lines = kineto_text(healthy()).splitlines()
    place = lines.index("  {", 30)
    _text(folder / "rank-0.json", "\n".join([*lines[:place], "]}", *lines[place:]]))


def _flows_to_nowhere(folder: Path) -> None:
    ids: list[Any] = [1, "x", None, -1, 2**70, 1.5, [], "0x1f"]
    moments: list[Any] = [0, 1e300, -1, 100.125, None, "7"]
    flows = [
        {"ph": "sf"[number % 2], "id": ids[number % 8], "pid": 77, "tid": number % 79, "ts": moments[number % 6]}
        for number in range(200)
    ]
    _with(*[{**flow, "cat": "cpu_to_cuda", "name": "cpu_to_cuda"} for flow in flows])(folder)


def _device_work(**changes: Any) -> Callable[[Path], None]:
    """Return what writes a trace whose kernels have other keys, or other arguments under `args`."""

    def make(folder: Path) -> None:
        events = healthy(30)
        for event in events:
            if event.get("cat") == "kernel":
                event.update({key: value for key, value in changes.items() if key != "args"})
                event["args"] |= changes.get("args", {})
        _text(folder / "rank-0.json", document(events))

    return make


def _nothing(folder: Path) -> None:
    _text(folder / "rank-0.json", document(healthy()))


ATTACKS: Final[dict[str, Attack]] = {
    # of databases
    "pages that lead to each other": Attack(
        lambda folder: _with_endless_table(small(folder / "a.sqlite"), KERNELS, levels=5), "summary {}", 1, "more rows"
    ),
    "REAL of 1e300": Attack(_sql(f"UPDATE {KERNELS} SET start = 1e300 WHERE rowid = 1"), "summary {}", 0, "time"),
    "virtual table": Attack(
        _sql(
            "PRAGMA writable_schema = ON",
            "INSERT INTO sqlite_master VALUES ('table', 'CUDNN_EVENTS', 'CUDNN_EVENTS', 0, "
            "'CREATE/**/VIRTUAL TABLE CUDNN_EVENTS USING of_somebody()')",
        ),
        "summary {}", 0, _ANSWERED,
    ),
    "ids of databases over all of int64": Attack(
        _sql(f"UPDATE {KERNELS} SET correlationId = -9223372036854775808, streamId = 9223372036854775807"),
        "summary {}", 0, _ANSWERED,
    ),
    "NaN, texts and blobs for numbers": Attack(
        _sql(
            f"UPDATE {KERNELS} SET start = 'soon', deviceId = x'ff00' WHERE rowid = 1",
            f"UPDATE {KERNELS} SET end = NULL WHERE rowid = 2",
        ),
        "summary {}", 0, "",
    ),
    # of names, groups and ids
    "300 names of 10 kB": Attack(_names_of_10_kb, "summary {}", 0, _ANSWERED),
    "2,000 process groups": Attack(_process_groups, "opportunities {} --full", 0, "nccl"),
    "sizes over all of int64": Attack(_sizes_over_int64, "collectives {}", 0, ""),
    "enormous ids": Attack(
        _with(
            kernel(7, pid=10**40, tid=-(10**40)), call(8, tid=2**64), {"ph": "s", "id": 10**400, "ts": 1, "cat": "ac2g"}
        ),
        "summary {}", 0, _ANSWERED,
    ),
    "a rank beyond all jobs": Attack(_raw('"rank": 0', '"rank": 1000000000000000000'), "validate {}", 0, "rank"),
    "a world beyond all jobs": Attack(
        _raw('"world_size": 2', '"world_size": 1000000000000'), "validate {}", 0, "world_size"
    ),
    # of text
    "a line before sound events": Attack(_line_before_sound_events, "validate {}", 0, "unreadable"),
    "NUL in the first bytes": Attack(_raw('"schemaVersion": 1', '"schemaVersion": \0 1'), "validate {}", 0, "header"),
    "an event cut behind a key": Attack(_cut, "validate {}", 0, "unreadable"),
    "the same key twice": Attack(
        _raw('"dur": 50.001', '"dur": 50.001, "dur": 1, "name": "twice", "args": {}, "ts": 7'),
        "summary {}", 0, _ANSWERED,
    ),
    "nesting of 100,000": Attack(_deep, "summary {}", 0, _ANSWERED),
    "half characters": Attack(_raw('"aten::mm"', '"aten::\\ud800mm"'), "summary {}", 0, _ANSWERED),
    "UTF-16": Attack(_packed(lambda data: data.decode().encode("utf-16")), "summary {}", 1, "not JSON"),
    "only brackets": Attack(
        lambda folder: _text(folder / "rank-0.json", "[" * 100_000), "summary {}", 1, "rank-0.json"
    ),
    "empty": Attack(lambda folder: _text(folder / "rank-0.json", ""), "summary {}", 1, "rank-0.json"),
    # of times
    "negative durations": Attack(_raw('"dur": 7.5', '"dur": -7.5'), "validate {}", 0, "cannot be a time"),
    "NaN and Infinity": Attack(_raw('"dur": 7.5', '"dur": NaN'), "validate {}", 0, "unreadable|cannot be a time"),
    "times of 1e308": Attack(
        _with(kernel(7, ts=1e308), kernel(8, ts=-1e308, dur=1e308)), "validate {}", 0, "cannot be a time"
    ),
    "times at the ends of int64": Attack(_with(kernel(7, ts=9.2e15), kernel(8, ts=-9.2e15)), "validate {}", 0, ""),
    "steps without end": Attack(_steps_without_end, "summary {}", 0, _ANSWERED),
    "flows in circles": Attack(_flows_in_circles, "summary {}", 0, _ANSWERED),
    "5,000 operators in one another": Attack(_nested_operators, "summary {}", 0, _ANSWERED),
    "2,000 threads": Attack(_many("thread"), "summary {}", 0, _ANSWERED),
    "2,000 streams": Attack(_many("stream"), "summary {}", 0, _ANSWERED),
    "2,000 devices": Attack(_many("device"), "summary {}", 0, _ANSWERED),
    "counters beyond all numbers": Attack(_counters, "counters {}", 0, "sample"),
    # of files
    "a bomb": Attack(_bomb, "summary {}", 0, _ANSWERED),
    "gzip by another name": Attack(_packed(gzip.compress), "summary {}", 0, _ANSWERED),
    "zstd by another name": Attack(_packed(zstandard.compress), "summary {}", 0, _ANSWERED),
    "xz by another name": Attack(_packed(lzma.compress), "summary {}", 1, "rank-0.json"),
    "zip by another name": Attack(_zipped, "summary {}", 1, "rank-0.json"),
    "two files of a rank": Attack(_two_of_a_rank, "summary {}", 1, "rank 0"),
    "links in circles": Attack(_links_in_circles, "summary {}", 0, _ANSWERED),
    "a pipe": Attack(_pipe, "summary {}", 1, "rank-0.json|no trace"),
    "a folder with the name of a trace": Attack(_folder_with_the_name_of_a_trace, "summary {}", 1, ""),
    "a device": Attack(lambda folder: (folder / "rank-0.json").symlink_to("/dev/zero"), "summary {}", 1, ""),
    "a name of bytes": Attack(_name_of_bytes, "summary {}", 0, _ANSWERED),
    "a full disk": Attack(_nothing, "summary {} -f json -o /dev/full", 1, "No space left"),
    "a folder that cannot be": Attack(_nothing, "summary {} -o {}/rank-0.json/a.txt", 1, "rank-0.json"),
    # of links, and of kernels that are none
    "the end of a document among events": Attack(_end_among_events, "validate {}", 0, "unreadable"),
    "flows of operators to nowhere": Attack(_flows_to_nowhere, "summary {}", 0, _ANSWERED),
    "one correlation for all": Attack(_device_work(args={"correlation": 5}), "launches {}", 0, ""),
    "graphs of enormous ids": Attack(
        _device_work(args={"graph id": 2**64 + 5, "graph node id": -1}), "summary {}", 0, _ANSWERED
    ),
    "kernels of no duration": Attack(_device_work(dur=0), "kernels {} --by family", 0, ""),
    "all kernels at one moment": Attack(_device_work(ts=1000), "summary {}", 0, _ANSWERED),
    "only pageable copies of no bytes": Attack(
        _device_work(cat="gpu_memcpy", name="Memcpy HtoD (Pageable -> Device)", args={"bytes": 0}),
        "what-if {} --pin-memory", 0, "",
    ),
    "a mangled name of 50,000 letters": Attack(
        _device_work(name="_Z" + "P" * 50_000 + "i"), "kernels {} --by family", 0, ""
    ),
    # of simulated jobs
    "a clock of NaN": Attack(_nothing, "simulate --set clock_offsets_us=[NaN,1e400] -o {}/out/job", 2, "at most"),
    "a network of no bandwidth": Attack(
        _nothing, "simulate --ranks 2 --steps 1 --set network_gb_s=1e-300 -o {}/out/job", 2, "longer than"
    ),
    # names as markup, and as what terminals obey
    "hostile names in tables": Attack(_hostile, "summary {} --full", 0, _ANSWERED),
    "hostile names in Markdown": Attack(_hostile, "kernels {} -f md", 0, ""),
    "hostile names in JSON": Attack(_hostile, "counters {} --series -f json", 0, ""),
    "hostile names on a page": Attack(_hostile, "report {} -o {}/out/page.html", 0, ""),
    "hostile names in dot": Attack(_hostile, "critical-path {} --graphviz {}/out/path.dot", 0, ""),
    "hostile names for Perfetto": Attack(_hostile, "critical-path {} --counters --perfetto {}/out/o.json", 0, ""),
    "hostile names in copies": Attack(_hostile, "patterns {} --operator * --min-length 1 --overlay {}/out", 0, ""),
}  # fmt: skip
