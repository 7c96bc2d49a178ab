"""Record `gpu_demo/`: small jobs on one GPU, for notebooks and tests, and what they take when nobody records them.

Needs PyTorch 2.1 or later with a CUDA device, and nothing else: the jobs are in `gpu_demo_jobs.py`, and of htagraph it
takes only the recorder, from this checkout. It ends within five minutes on an H100. Each part stands alone; what fails
is printed, and the others go on.

* `train/`: a small transformer with Python stacks, shapes and allocations, which modules and memory need;
* `before/` and `after/`: the same training loop with a slow loader and a `.item()` per step, and without both;
* `compiled/`: its model under `torch.compile`;
* `generate/`: a prompt and several tokens, kernel by kernel and as one CUDA graph (annotations `prefill`,
  `decode_eager` and `decode_graph`);
* `truth.json`: the machine, the step times of each variant by the wall clock with no profiler, among them the loop with
  only one of its two faults, how fast matrices of several sizes are multiplied, how much memory `train` takes, and what
  each setting of the profiler costs.

Example:
    python data/record_gpu_demo.py -o data/gpu_demo
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import sys
import tempfile
import time
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from gpu_demo_jobs import SMALL, Generation, Sizes, Training, synchronize

ROOT = Path(__file__).resolve().parent.parent
try:
    import lazy_loader  # noqa: F401 - what `import htagraph` needs
except ImportError:  # a machine for training: the recorder alone is imported, without the package's own names
    package = types.ModuleType("htagraph")
    package.__path__ = [str(ROOT / "htagraph")]
    sys.modules["htagraph"] = package
sys.path.insert(0, str(ROOT))

from htagraph.trace.recording import profile  # noqa: E402 - found only now

MOST_SECONDS = 240
"""After this, no further part begins."""
MOST_BYTES = {"train": 260_000, "before": 125_000, "after": 125_000, "compiled": 85_000, "generate": 90_000}
"""Of each recording, packed: it is made again, with less, until it fits. Together below 700 KB."""
TRIES = 5
"""Recordings of which the one with the shortest steps is kept: others are longer by what else ran on the machine."""
WARM, MEASURED, ROUNDS = 10, 30, 5
"""Steps that are not measured, steps that are, and how often."""


def step_ms(step: Callable[[], None]) -> dict[str, Any]:
    """Return what a step takes by the wall clock without a profiler, in ms: of each round, their median and range."""
    for _ in range(WARM):
        step()
    rounds = []
    for _ in range(ROUNDS):
        synchronize()
        began = time.perf_counter()
        for _ in range(MEASURED):
            step()
        synchronize()
        rounds.append((time.perf_counter() - began) * 1000 / MEASURED)
    return {"median": statistics.median(rounds), "least": min(rounds), "most": max(rounds), "rounds": rounds}


def matmul_tflops(device: str) -> dict[str, float]:
    """Return how fast square matrices of bfloat16 are multiplied: 10¹² floating-point operations per second by size."""
    speeds = {}
    for size in (512, 1024, 2048, 4096, 8192) if device == "cuda" else (64,):
        a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
        found = step_ms(lambda a=a: torch.mm(a, a))  # type: ignore[misc]
        speeds[str(size)] = 2 * size**3 / (found["median"] / 1000) / 1e12
    return speeds


def anonymous(trace: str) -> str:
    """Replace the recording machine's name and folders; every other byte stays as Kineto wrote it."""
    trace = re.sub(r'"host_name": "[^"]*"', '"host_name": "localhost"', trace)
    trace = re.sub(r'"traceName": "[^"]*"', '"traceName": "rank-0.json"', trace)
    return re.sub(r'"(?:/[^"/ ]+)+/((?:torch|data|python3[^"/]*)/[^"]*\(\d+\): )', r'"\1', trace)


def recorded(step: Callable[[], None], steps: int, options: dict[str, Any]) -> str:
    """Return the trace of some steps."""
    with tempfile.TemporaryDirectory() as folder:
        with profile(steps=steps, out=folder, warmup=3, **options) as prof:
            for _ in range(1 + 3 + steps):
                step()
                if prof.current_action.name == "WARMUP":
                    synchronize()  # so that no kernel is recorded whose launch was not
                prof.step()
        return gzip.decompress((Path(folder) / "rank-0.json.gz").read_bytes()).decode()


def steps_us(trace: str) -> float:
    """Return how long all steps of a trace take on the host, in µs."""
    events = json.loads(trace)["traceEvents"]
    return sum(
        event["dur"]
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
    )


def record(part: str, step: Callable[[], None], output: Path, **options: Any) -> int:  # noqa: ANN401
    """Record as many steps as fit into the part's bytes, at most three, and return how many.

    Of several recordings, the one with the shortest steps is kept. With `shapes_last` in the options, shapes are left
    out before steps are.
    """
    attempts = [(3, True), (2, True), (1, True)]
    if options.pop("shapes_last", False):
        attempts = [(3, True), (3, False), (2, False), (1, False)]
    for steps, shapes in attempts:
        text = min((recorded(step, steps, options | {"record_shapes": shapes}) for _ in range(TRIES)), key=steps_us)
        packed = gzip.compress(anonymous(text).encode(), compresslevel=9, mtime=0)
        kinds = Counter(re.findall(r'"cat": "(\w+)"', text)).most_common()
        print(f"  {part}: {steps} steps, shapes: {shapes}, packed {len(packed):,} bytes, {kinds}", flush=True)
        if len(packed) <= MOST_BYTES[part]:
            break
    target = output / part / "rank-0.json.gz"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(packed)
    return steps


def train(sizes: Sizes, device: str, output: Path) -> dict[str, Any]:
    """Record modules, shapes and allocations."""
    job = Training(sizes, device)
    for _ in range(3):
        job.step()
    steps = record("train", job.step, output, with_stack=True, profile_memory=True)
    found: dict[str, Any] = {"steps": steps}
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        job.step()
        found |= {"peak_bytes": torch.cuda.max_memory_allocated(), "kept_bytes": torch.cuda.memory_allocated()}
    return found


def loop(sizes: Sizes, device: str, output: Path) -> dict[str, Any]:
    """Measure the loop with both faults, with one, and with none; record the first and the last."""
    variants = {
        "before": {"slow_loader": True, "item": True},
        "only_slow_loader": {"slow_loader": True},
        "only_item": {"item": True},
        "after": {},
    }
    found: dict[str, Any] = {}
    for name, faults in variants.items():
        job = Training(sizes, device, **faults)
        found[name] = {"step_ms": step_ms(job.step)}
        print(f"  {name}: {found[name]['step_ms']['median']:.3f} ms per step", flush=True)
        if name in MOST_BYTES:
            found[name]["steps"] = record(name, job.step, output, shapes_last=True)
    return found


def compiled(sizes: Sizes, device: str, output: Path) -> dict[str, Any]:
    """Measure and record the loop without faults under torch.compile."""
    job = Training(sizes, device)
    job.model = torch.compile(job.model)
    found: dict[str, Any] = {"step_ms": step_ms(job.step)}
    return found | {"steps": record("compiled", job.step, output)}


def generate(sizes: Sizes, device: str, output: Path) -> dict[str, Any]:
    """Measure tokens kernel by kernel and as a CUDA graph, and record both beside a prompt."""
    job = Generation(sizes, device)
    found: dict[str, Any] = {"decode_eager_ms": step_ms(job.token), "decode_graph_ms": step_ms(job.replay)}
    for _ in range(3):
        job.step()
    return found | {"steps": record("generate", job.step, output)}


def matmuls(sizes: Sizes, device: str, output: Path) -> dict[str, Any]:
    """Measure matrix products of several sizes."""
    return {"tflops": matmul_tflops(device)}


SETTINGS: dict[str, dict[str, Any]] = {
    "nothing more": {"record_shapes": False, "experimental_config": None},
    "sync_events": {"record_shapes": False},
    "record_shapes": {"experimental_config": None},
    "profile_memory": {"record_shapes": False, "experimental_config": None, "profile_memory": True},
    "with_stack": {"record_shapes": False, "experimental_config": None, "with_stack": True},
    "as htagraph.profile": {},
}
"""What is recorded, to see what it costs."""
RECORDED = 8
"""Steps that are recorded to measure what a setting costs."""


def recorded_ms(step: Callable[[], None], options: dict[str, Any]) -> dict[str, Any]:
    """Return what a step takes in ms while it is recorded, start and writing aside, and the bytes of file per step."""
    with tempfile.TemporaryDirectory() as folder:
        with profile(steps=RECORDED, out=folder, warmup=3, **options) as prof:
            for number in range(4 + RECORDED):
                if number == 4:
                    synchronize()
                    began = time.perf_counter()
                step()
                if number == 3 + RECORDED:
                    synchronize()
                    took = time.perf_counter() - began
                prof.step()
        size = (Path(folder) / "rank-0.json.gz").stat().st_size
    return {"step_ms": took * 1000 / RECORDED, "bytes_per_step": size // RECORDED}


def settings(sizes: Sizes, device: str, output: Path) -> dict[str, Any]:
    """Measure what each setting costs, in turns, for a loop without faults whose host has more to do than the GPU."""
    job = Training(replace(sizes, tokens=sizes.tokens // 8, loader_ms=0.1), device)
    found: dict[str, Any] = {"no profiler": step_ms(job.step)}
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in SETTINGS}
    for _ in range(ROUNDS):
        for name, options in SETTINGS.items():
            turns[name].append(recorded_ms(job.step, options))
    for name, made in turns.items():
        found[name] = {key: [turn[key] for turn in made] for key in made[0]}
        print(f"  {name}: {statistics.median(found[name]['step_ms']):.3f} ms per step", flush=True)
    return found


def extras(sizes: Sizes, device: str, output: Path) -> dict[str, Any]:
    """Return the sizes of a memory snapshot and an execution trace, which are not kept."""
    job = Training(sizes, device)
    with tempfile.TemporaryDirectory() as folder:
        with profile(steps=1, out=folder, memory_snapshot=device == "cuda", execution_trace=True) as prof:
            for _ in range(4):
                job.step()
                prof.step()
        return {file.name: file.stat().st_size for file in sorted(Path(folder).iterdir())}


PARTS: dict[str, Callable[[Sizes, str, Path], dict[str, Any]]] = {
    "train": train, "loop": loop, "generate": generate, "matmuls": matmuls, "settings": settings,
    "extras": extras, "compiled": compiled,
}  # fmt: skip


def machine(device: str) -> dict[str, Any]:
    """Return what the numbers depend on."""
    found: dict[str, Any] = {"torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0]}
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        found |= {"device": properties.name, "memory_bytes": properties.total_memory}
    return found


def run_parts(names: list[str], sizes: Sizes, device: str, output: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each part found, or its error."""
    began = time.monotonic()
    for name in names:
        if time.monotonic() - began > MOST_SECONDS:
            print(f"{name}: left out, no time is left", flush=True)
            continue
        print(f"{name} (after {time.monotonic() - began:.0f} s)", flush=True)
        try:
            yield name, PARTS[name](sizes, device, output)
        except Exception as error:  # noqa: BLE001 - the other parts are recorded
            traceback.print_exc()
            yield name, {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def main() -> None:
    """Read the command line, record each part, and write the truth after each."""
    parser = argparse.ArgumentParser(description="Record small jobs on one GPU, and what they take without a profiler.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for a folder per part")
    parser.add_argument("--parts", nargs="+", choices=[*PARTS], default=[*PARTS])
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = Sizes() if device == "cuda" else SMALL
    options.output.mkdir(parents=True, exist_ok=True)
    truth: dict[str, Any] = {"machine": machine(device), "sizes": asdict(sizes)}
    for name, found in run_parts(options.parts, sizes, device, options.output):
        truth[name] = found
        (options.output / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    files = sorted(options.output.glob("*/rank-0.json.gz"))
    print(*(f"{file.stat().st_size:>9,} {file}" for file in files), sep="\n")
    print(f"{sum(file.stat().st_size for file in files):>9,} together")


if __name__ == "__main__":
    main()
