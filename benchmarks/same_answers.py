"""Whether a change of the code changed an answer: each command and public function over all jobs in reach.

    python -m benchmarks.same_answers record          # with the old code
    python -m benchmarks.same_answers check           # with the new code: says what differs, and exits with 1
    python -m benchmarks.same_answers check --quick --only idle --jobs demo

An answer is a text: what a command prints as JSON and as a table of 80 columns, its error and exit code, a page without
its scripts, the events of a Perfetto file, the hashes of a graph's columns, the values and types of a DataFrame (HTA's
interface included), the traces of a figure. ``--quick`` takes a few small jobs. ``--only`` and ``--jobs`` choose by
parts of names.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import htagraph as hg

__all__ = ["main"]

REPOSITORY = Path(__file__).parents[1]
_READING = (
    "summary", "critical-path", "plan", "stragglers", "collectives", "kernels", "idle", "memory", "launches",
    "counters", "patterns", "roofline", "phases", "validate",
)  # fmt: skip
"""Commands that need nothing but a job."""
_MORE = (
    "summary --full", "summary --full --ranks 0", "critical-path --steps 5", "idle --top 3 -f md",
    "kernels -f csv -o {tmp}/tables/", "collectives --ranks 0-1", "patterns --operator aten", "launches --top 2",
)  # fmt: skip
_CHANGES = (
    "--scale name=*gemm*:0.5", "--network 2", "--fix-straggler auto", "--infinite-host", "--remove-sync name=*",
    "--no-interruptions", "--scale kind=host:0.5", "--set name=aten::mm:10us", "--remove name=*elementwise*",
    "--no-launch-overhead", "--infinite-gpu", "--inject rank=0:1.5", "--free-dataloader", "--perfect-overlap",
    "--no-overlap", "--shared-link on", "--fuse name=*elementwise*", "--scale-ranks 8", "--jitter 0.05:3",
    "--cuda-graph step=5", "--scale name=*gemm*:0.5 --network 2", "--sweep network=0.5,1,2",
)  # fmt: skip
_FILES = (
    "report -o {tmp}/page.html", "critical-path --perfetto {tmp}/path.json", "critical-path --graphviz {tmp}/path.dot",
    "counters --perfetto {tmp}/counters.json", "what-if --network 2 --perfetto {tmp}/network.json",
)  # fmt: skip
_FIGURES = (
    "temporal_breakdown", "overlap", "idle_breakdown", "kernel_breakdown", "operator_breakdown", "module_breakdown",
    "kernel_owners", "kernel_distribution", "launch_stats", "queue_length", "memory_bandwidth", "roofline",
    "collectives", "stragglers", "critical_path", "slack", "opportunities", "timeline",
)  # fmt: skip
_HELP = (
    "", *_READING, "what-if", "diff", "plot", "report", "serve", "mcp", "simulate", "schema", "cache",
    "demo", "execution-trace",
)  # fmt: skip
_QUICK = ("demo", "gpu_demo-train", "critical_path-alexnet.json", "pair-gpu_demo-train", "simulated-gpu_bound")
"""Jobs of `--quick`; these are asked everything, the others what prints JSON, functions and HTA's methods."""


def main() -> None:
    """Record answers, or compare today's with the recorded ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["record", "check"])
    parser.add_argument("--answers", type=Path, default=Path(tempfile.gettempdir()) / "htagraph-answers")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="part of an answer's name, such as idle, hta, graph or perfetto")
    parser.add_argument("--jobs", default="", help="part of a job's name")
    asked = parser.parse_args()
    os.environ["COLUMNS"] = "80"
    os.chdir(REPOSITORY)
    warnings.simplefilter("ignore")
    different = count = 0
    began = time.perf_counter()
    for job, paths in _jobs(quick=asked.quick):
        if asked.jobs not in job:
            continue
        for name, answer in _questions(job, paths):
            if asked.only not in name:
                continue
            count += 1
            file = asked.answers / job / f"{re.sub('[^A-Za-z0-9=.,:*+-]+', '_', name)}.gz"
            text = _said(answer)
            if asked.do == "record":
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(gzip.compress(text.encode("utf-8", "replace"), mtime=0))
            elif not _is_same(f"{job}: {name}", file, text):
                different += 1
        print(f"{time.perf_counter() - began:6.0f} s  {job}", file=sys.stderr, flush=True)
    print(f"{count} answers" + (f", {different} differ" if asked.do == "check" else ""))
    sys.exit(bool(different))


def _is_same(title: str, file: Path, text: str) -> bool:
    if not file.is_file():
        print(f"NEW  {title}")
        return True
    before = gzip.decompress(file.read_bytes()).decode()
    now = text.encode("utf-8", "replace").decode()
    if before == now or (": figure." in title and _plain(before) == _plain(now)):
        return True
    lines = difflib.unified_diff(_lines(before), _lines(now), "before", "now", lineterm="", n=0)
    print(f"DIFF {title}", *(line[:300] for _, line in zip(range(12), lines, strict=False)), sep="\n     ")
    return False


def _plain(figure: str) -> object:
    """Return a figure without the order of its keys, if it is one and no error."""
    return json.loads(figure) if figure.startswith("{") else figure


def _lines(text: str) -> list[str]:
    return text.splitlines() if "\n" in text.strip() else re.sub(r"([\]}]), ", r"\1,\n", text).splitlines()


def _said(answer: Callable[[], str]) -> str:
    try:
        return answer()
    except Exception as error:  # noqa: BLE001 - an answer, too
        return f"raises {type(error).__name__}: {str(error).removeprefix('TraceAnalysis.')}"  # whichever object has it


# which jobs


def _jobs(*, quick: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield (name, paths as the command line takes them; two for a pair of jobs)."""
    for name, paths in [*_recorded(), *([] if quick else _simulated())]:
        if not quick or name in _QUICK:
            yield name, paths


def _recorded() -> Iterator[tuple[str, list[str]]]:
    yield "demo", ["data/demo"]
    yield "gloo_ddp", ["data/gloo_ddp"]
    for job in ("after", "before", "compiled", "generate", "train"):
        yield f"gpu_demo-{job}", [f"data/gpu_demo/{job}"]
    yield "pair-gpu_demo-train", ["data/gpu_demo/before", "data/gpu_demo/after"]
    shared = Path(os.environ.get("HTAGRAPH_SHARED", REPOSITORY.parent / "shared"))
    if not shared.is_dir():
        return
    traces = shared / "traces"
    for folder in (
        "hta/critical_path",
        "hta/nccl",
        "hta/ns_resolution",
        "hta/small",
        "kineto",
        "tracelens",
        "memory_snapshot",
    ):
        for file in sorted((traces / folder).iterdir()):
            yield f"{folder.split('/')[-1]}-{file.name.split('.gz')[0]}", [str(file)]
    for job in ("gloo4_cpu", "torchrec_v100_equal", "torchrec_v100_leading_missing", "megatron_tp8_a100"):
        yield job, [str(traces / job)]
    for pair, first, second in (("compare", "base", "test"), ("trace_diff", "control", "test")):
        before, after = (str(traces / "hta" / pair / each) for each in (first, second))
        yield pair, [before]
        yield f"pair-{pair}", [before, after]
    for recording in sorted((shared / "real_pairs").glob("data*/*/A1")):
        name = recording.parent.name
        yield name, [str(recording)]
        yield f"pair-{name}", [str(recording), str(recording.with_name("B1"))]


def _simulated() -> Iterator[tuple[str, list[str]]]:
    from htagraph.simulate import REGIMES, simulate

    for name, regime in sorted(REGIMES.items()):
        folder = Path(tempfile.gettempdir()) / "htagraph-simulated" / name
        if not folder.is_dir():
            simulate(regime()).write(folder, suffix=".json", truth=False)
        yield f"simulated-{name}", [str(folder)]


# what is asked


def _questions(job: str, paths: list[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield (name of the question, what answers it)."""
    words = " ".join(paths)
    if len(paths) > 1:
        lines = [f"{verb} {words}{form}" for verb in ("diff", "diff --names") for form in ("", " -f json")]
        lines.append(f"diff {words} --by path -f json --comment {{tmp}}/comment.md --fail-on step>+5%")
        lines += [f"report --compare {words} -o {{tmp}}/page.html"] if job in _QUICK else []
        for line in lines:
            yield line.replace(words, "PAIR"), partial(_command, line)
        return
    whole = job in _QUICK
    if job == "demo":
        for verb in _HELP:
            yield f"{verb} --help", partial(_command, f"{verb} --help")
        yield "schema", lambda: _command("schema")
    lines = [f"{verb} {words} -f json" for verb in _READING]
    lines += [f"what-if {words} {change} -f json" for change in (_CHANGES if whole else _CHANGES[:5])]
    if whole:
        lines += [f"{verb} {words}" for verb in (*_READING, "summary --full")] + [f"what-if {words} {_CHANGES[0]}"]
        lines += [f"{line.split(' ', 1)[0]} {words} {line.split(' ', 1)[1]}" for line in (*_MORE, *_FILES)]
    for line in lines:
        yield line.replace(words, "JOB"), partial(_command, line)
    yield from _functions(paths, whole=whole)


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]


def _command(line: str) -> str:
    """Return what a command prints and writes."""
    from htagraph.cli import main as cli

    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["htagraph", *line.replace("{tmp}", folder).split()]
        out, err, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main()
            except SystemExit as left:
                code = int(left.code or 0)
        written = "".join(
            f"\n== {file.relative_to(folder)}\n{_reduced(file)}"
            for file in sorted(Path(folder).rglob("*"))
            if file.is_file()
        )
        errors = re.sub(
            r".*compiling what this needs.*\n|[\d.]+(?= (MB|kB|s)\b)", "", err.getvalue().replace(folder, "TMP")
        )
        return f"exit {code}\n{out.getvalue().replace(folder, 'TMP')}\n{errors}{written}"


def _reduced(file: Path) -> str:
    """Return of a written file what its reader sees."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".html":
        text = re.sub(r"<(style|script)\b.*?</\1>|<meta http-equiv[^>]*>", "", text, flags=re.DOTALL)
        return re.sub(r">\s*<", ">\n<", text).replace(str(file.parent), "TMP")
    if file.suffix == ".json" and '"traceEvents"' in text:
        events = json.loads(text)["traceEvents"]
        lines = sorted(json.dumps(event, sort_keys=True) for event in events)
        kinds = pd.Series([f"{event.get('ph')} {event.get('cat', '')}" for event in events]).value_counts().sort_index()
        return f"{kinds.to_dict()}\n{_hash(chr(10).join(lines).encode())}\n" + "\n".join(lines[:40])
    return text.replace(str(file.parent), "TMP")


def _functions(paths: list[str], *, whole: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    graphs: dict[str, Any] = {}

    def graph() -> Any:  # noqa: ANN401 - a graph
        if "" not in graphs:
            graphs[""] = hg.load(paths)
        return graphs[""]

    yield "graph", lambda: _columns(graph())
    for name in sorted(set(dir(hg))):
        function = getattr(hg, name)
        if getattr(function, "__module__", "").startswith("htagraph.analyses") and name not in (
            "diff",
            "compare",
            "Diff",
        ):
            yield f"hg.{name}", partial(_result, function, graph)
    yield from _hta(paths)
    for name in _FIGURES if whole else ():
        yield f"figure.{name}", partial(_drawn, name, graph)


def _result(function: Callable[..., object], graph: Callable[[], object]) -> str:
    return _shown(function(graph()))


def _drawn(name: str, graph: Callable[[], object]) -> str:
    function = getattr(hg, name, None)
    figure = getattr(hg.plot, name)(function(graph()) if function else graph())
    return json.dumps(json.loads(figure.to_json()), indent=0)[:2_000_000]


def _hta_table(name: str, analyzer: Callable[[], object], more: Mapping[str, object]) -> str:
    return _shown(getattr(analyzer(), name)(**more))


def _hta(paths: list[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the methods of HTA's interface, with their defaults."""
    from htagraph.trace_analysis import TraceAnalysis

    analyzers: list[Any] = []

    def analyzer() -> Any:  # noqa: ANN401
        if not analyzers:
            files = {number: str(file) for number, file in enumerate(sorted(_files(Path(paths[0]))))}
            analyzers.append(TraceAnalysis(trace_files=files, trace_dir=str(Path(paths[0]).parent)))
        return analyzers[0]

    for name in sorted(each for each in dir(TraceAnalysis) if each.startswith("get_")):
        more = {"visualize": False} if "visualize" in getattr(TraceAnalysis, name).__code__.co_varnames else {}
        if name in ("get_frequent_cuda_kernel_sequences", "get_queue_length_summary_from_time_series"):
            continue
        yield f"hta.{name}", partial(_hta_table, name, analyzer, more)

    def path() -> str:
        found, fine = analyzer().critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
        return (
            f"{fine}\n{sorted(found.critical_path_nodes)}\n{sorted(map(str, found.critical_path_edges_set))}\n"
            + _shown(found.get_critical_path_breakdown())
        )

    yield "hta.critical_path", path
    yield "hta.trace", lambda: _shown(analyzer().t.get_trace(0))


# how answers are written down


def _shown(value: Any) -> str:  # noqa: ANN401 - any result
    if isinstance(value, pd.DataFrame):
        types = dict(zip(map(str, value.columns), map(str, value.dtypes), strict=True))
        return f"{types} index {value.index.dtype} {value.index.names}\n{_text(value)}"
    if isinstance(value, Mapping):
        return "\n".join(f"[{key}]\n{_shown(each)}" for key, each in value.items())
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return "\n".join(map(_shown, value))
    if hasattr(value, "to_frame"):
        return f"{type(value).__name__}\n{_shown(value.to_frame())}"
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))


def _text(frame: pd.DataFrame) -> str:
    text = frame.to_csv()
    return text if len(text) < 200_000 else f"{text[:20_000]}\n{len(frame)} rows {_hash(text.encode())}"


def _columns(graph: Any) -> str:  # noqa: ANN401 - a graph
    """Return the hash of each array of a graph, and what is no array."""
    lines = [f"time {_hash(np.ascontiguousarray(graph.time).tobytes())}"]
    for part in ("activities", "edges", "matches"):
        columns = getattr(graph, part)
        for each in dataclasses.fields(columns) if dataclasses.is_dataclass(columns) else ():
            value = getattr(columns, each.name)
            if isinstance(value, np.ndarray):
                lines.append(
                    f"{part}.{each.name} {value.dtype} {len(value)} {_hash(np.ascontiguousarray(value).tobytes())}"
                )
    lines += [f"names {_hash(repr(graph.names).encode())}", f"lanes {graph.lanes}", f"clocks {graph.clocks}"]
    return "\n".join([*lines, *map(str, graph.issues)])


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


if __name__ == "__main__":
    main()
