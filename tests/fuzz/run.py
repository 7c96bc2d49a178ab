"""Fuzzing the whole pipeline: ``python -m tests.fuzz.run --minutes 20`` from the repository.

Takes files of the corpus, damages them at random and tries them (`tests.fuzz.targets`); of other files, the events that
damage did not touch must be read or reported (`tests.fuzz.sound_events`). What fails is written to
``--failures``, with the traceback beside it; what is fixed goes into the corpus, which a test tries. Each run has a new
seed, which it prints: with this ``--seed`` the same cases come in the same order.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

import htagraph as hg
from htagraph.queries.skeleton_bytes import to_bytes
from tests.fuzz.mutations import mutated
from tests.fuzz.sound_events import ALL_FORMS, damaged, file_name, losses, written
from tests.fuzz.targets import Refused, try_file
from tests.guard.allocator import guard

__all__ = ["CORPUS", "main", "seeds"]

CORPUS = Path(__file__).parent / "corpus"
_MAX_SECONDS = 60
"""Seconds of processor time for one input, each at most some 20 KB. Chosen: compiling the first takes 20. Doubled, slow
inputs are found later."""
_SOUND_SHARE = 0.2
"""Share of the cases that damage files whose sound events are known. Chosen: one takes a hundredth of any other's time.
Doubled, fewer kinds of files are tried."""
_MAX_BYTES = 4 << 30
"""Bytes of memory for the whole process. Chosen: a hundred times what the corpus takes. Doubled, fewer are found."""


def seeds() -> dict[str, bytes]:
    """Return what is damaged, by file name: the corpus, and a graph and a skeleton as this release writes them."""
    found = {path.name: path.read_bytes() for path in sorted(CORPUS.iterdir())}
    graph = hg.load(CORPUS / "kineto.json")
    with tempfile.TemporaryDirectory() as folder:
        found["made.htagraph"] = hg.save(graph, folder).read_bytes()
    return {**found, "made.skeleton": to_bytes(hg.contract(graph))}


class Slow(BaseException):
    """An input took too long. No Exception, so that nothing takes it for damage."""


def _too_slow(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise Slow


def main() -> int:
    """Fuzz, print what was found, and return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--guard", action="store_true", help="end at the first byte that is read behind an array")
    given = parser.parse_args()
    if given.guard:
        guard()
    print(f"seed {given.seed}; the same cases: python -m tests.fuzz.run --seed {given.seed} --minutes 60", flush=True)  # noqa: T201
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    signal.signal(signal.SIGPROF, _too_slow)
    draw, inputs = random.Random(given.seed), sorted(seeds().items())
    until, found, kinds = time.monotonic() + 60 * given.minutes, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            if draw.random() < _SOUND_SHARE:
                name, data, kind = _sound_tried(Path(folder), draw)
            else:
                name, whole = draw.choice(inputs)
                data = mutated(whole, draw)
                kind = _tried(Path(folder) / f"rank-0.{name.split('.', 1)[1]}", data)
            found["refused" if kind == "refused" else "failed" if kind else "read"] += 1
            if kind and kind != "refused":
                _keep(given.failures, kinds, kind, name, data, found.total())
    print(dict(found), *(f"{count} × {kind}" for kind, count in kinds.most_common()), sep="\n")  # noqa: T201
    return 1 if kinds else 0


def _tried(path: Path, data: bytes) -> str:
    """Return ``""`` for a file that was read, ``"refused"``, or what failed and where."""
    path.write_bytes(data)
    signal.setitimer(signal.ITIMER_PROF, _MAX_SECONDS)
    try:
        try_file(path)
    except Refused:
        return "refused"
    except (Exception, Slow) as error:  # noqa: BLE001 - any other is a failure
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if "htagraph" in frame.filename]
        where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
        return f"{type(error).__name__} at {where}: {str(error)[:80]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _sound_tried(folder: Path, draw: random.Random) -> tuple[str, bytes, str]:
    """Return the form of a file, its content once damaged, and a failure if sound events are lost without a word."""
    form = draw.choice(sorted(ALL_FORMS))
    data = damaged(written(form), draw, draw.choice((1, 2, 4, 8)))
    name = f"{form}{Path(file_name(form)).suffix}"
    try:
        found = losses(form, data, folder / file_name(form))
    except Exception as error:  # noqa: BLE001 - as in `_tried`
        return name, data, f"{type(error).__name__} in a damaged file: {str(error)[:80]}"
    if found.refused:
        return name, data, "refused"
    return name, data, f"sound events lost without a word: {found}" if found.is_silent else ""


def _keep(folder: Path, kinds: Counter[str], kind: str, name: str, data: bytes, case: int) -> None:
    """Write the first input of each kind of failure."""
    where = kind.split(": ")[0]
    kinds[where] += 1
    if kinds[where] == 1:
        folder.mkdir(exist_ok=True)
        (folder / f"{len(kinds)}-{name}").write_bytes(data)
        (folder / f"{len(kinds)}.txt").write_text(kind)
        print(f"failed: case {case}, {name}: {kind}", flush=True)  # noqa: T201


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # guarded arrays are not to be freed
