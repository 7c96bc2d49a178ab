"""The cases of the corpus: simulated jobs, simulated changes, late recordings, real traces and recorded pairs."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import htagraph as hg
from benchmarks.conclusions_truth.bound import bound_findings, raw_shares, simulated_shares
from benchmarks.conclusions_truth.device_idle import idle_findings, single_rank_findings
from benchmarks.conclusions_truth.diff_cause import First, diff_findings, step_spread
from benchmarks.conclusions_truth.findings import Finding
from benchmarks.conclusions_truth.gains import Row, ceiling_findings, gain_findings, key_of, true_gains
from benchmarks.conclusions_truth.host_pauses import pause_findings
from benchmarks.conclusions_truth.jobs import CHANGES, SHAPES, planted_changes, recorded, shrunk, simulated_jobs
from benchmarks.conclusions_truth.planted_pauses import SLEEP, add_pauses, planted_finding
from benchmarks.conclusions_truth.raw import DEVICE, RawRank, raw_ranks, trace_files
from benchmarks.conclusions_truth.said import Said, said_of
from benchmarks.conclusions_truth.straggler import (
    cause_findings,
    recorded_straggler,
    simulated_straggler,
    straggler_findings,
)  # fmt: skip
from htagraph.findings.finding import Claim, claims_that_are, gain_in
from htagraph.findings.gain import GainClaim
from htagraph.findings.straggler import StragglerClaim
from htagraph.simulate import Job, simulate

__all__ = ["Case", "changed_cases", "job_cases", "late_cases", "pair_cases", "pause_cases", "trace_cases"]

Case: TypeAlias = Callable[[], list[Finding]]
_HOST = ("host", "launch", "sync")
MAX_GAP = 20.0
"""Percent of the walk through a real trace that nothing explains, up to which it says what bounds the job. Chosen;
doubled, the walk judges recordings that it does not understand."""
PAUSE = 10.0
"""Percent of the step that a pause which is gone after a change must have taken to be expected among the longest.
Chosen; doubled, stalls of 10 to 20 % of a step may go unnamed."""
PAUSED = ("*sleep*", "*Python*", "*pause*")
"""Words in what a diff must blame, where a pause is gone."""
PAIR_OFF = 2.0
"""Percent of the step that a recorded gain may exceed what is called the most. Chosen: two runs of one job differ by
that; doubled, a gain of 4 % more than the most counts as held."""


def job_cases(count: int, first: int = 0, *, small: bool = False) -> dict[str, Case]:
    """Return simulated jobs by name; with `small`, of three steps and few layers."""
    return {name: partial(_job, shrunk(job) if small else job) for name, job in simulated_jobs(count, first).items()}


def _job(job: Job) -> list[Finding]:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        simulate(job).write(folder, suffix=".json", truth=False)
        said = said_of(folder)
        findings = _raw_findings(said, raw_ranks(folder))
    rank, effect, what = simulated_straggler(job)
    findings += straggler_findings(said.straggler, rank, effect=effect)
    if rank is not None and said.straggler == rank:
        late = claims_that_are(StragglerClaim, said.claims)
        findings += [each for claim in late for each in cause_findings(claim.cause, what)]
    findings += bound_findings(*said.bound, simulated_shares(job))
    true = true_gains(job, groups=said.groups)
    findings += gain_findings(said.opportunities, true)
    for claim in claims_that_are(GainClaim, said.claims):
        percent = gain_in(claim).percent
        key = key_of(Row(claim.what, claim.about, percent))
        if key in true:
            findings += ceiling_findings(claim.about, percent, _stated_interval(claim), true[key])
    return findings


def _stated_interval(claim: Claim) -> tuple[float, float] | None:
    """Return the interval of a gain in percent, if its sentence states one."""
    low, high = claim.interval or (claim.figure, claim.figure)
    whole = gain_in(claim).makespan_us
    return (100 * low / whole, 100 * high / whole) if high - low > 0.1 * claim.figure else None


def _raw_findings(said: Said, ranks: Sequence[RawRank]) -> list[Finding]:
    """Return what raw JSON settles about any job."""
    on_device = any(each.events["cat"].isin(DEVICE).any() for each in ranks)
    findings = single_rank_findings(ranks, said=any(claim.about for claim in said.of("ranks_missing")))
    findings += idle_findings(said.idle, ranks) if on_device else []
    return findings + pause_findings(said.pauses, ranks, host_bound=said.bound[0] in _HOST)


def changed_cases(count: int, first: int = 0, *, small: bool = False) -> dict[str, Case]:
    """Return pairs of simulated jobs with one planted change, by name."""
    cases: dict[str, Case] = {}
    for number in range(first, first + count):
        shape, what = [*SHAPES][(7 * number) % len(SHAPES)], CHANGES[number % len(CHANGES)]
        cases[f"change {number} {what}, {shape}"] = partial(_changed, 50_000 + number, shape, what, small=small)
    return cases


def _changed(seed: int, shape: str, what: str, *, small: bool) -> list[Finding]:
    draw = random.Random(seed)
    job = SHAPES[shape].model_copy(update={"seed": seed, "steps": 4, "layers": max(2, SHAPES[shape].sizes[2])})
    job = shrunk(job) if small else job
    how = draw.choice(("complete", "no cuda_sync", "neither", "skewed clocks"))
    planted = planted_changes(job, what, draw)
    after = job.model_copy(update={"changes": planted.change, **planted.other})
    both = simulate(job), simulate(after)
    effect = 100 * (both[1].mean_step_ns / both[0].mean_step_ns - 1)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for side, each in (("A", job), ("B", after)):
            simulate(recorded(each, how, random.Random(seed))).write(folder / side, suffix=".json", truth=False)
        diff = hg.diff(hg.load(folder / "A"), hg.load(folder / "B"))
        clear = abs(effect) > max(step_spread(each) for each in both)
        return _diff_findings(diff, names=planted.names, on_rank=planted.rank, effect=effect, clear=clear)


def _diff_findings(diff: hg.Diff, *, names: str, on_rank: int = -1, effect: float, clear: bool = True) -> list[Finding]:
    causes = diff.causes()
    rows = causes[["name", "rank", "effect_us"]].to_dict("records")
    first: dict[Any, Any] = rows[0] if rows else {"name": "", "rank": -1, "effect_us": 0.0}
    stated = 100 * float(first["effect_us"]) / diff.before_us
    lines = list(diff.sentences())
    said = First(str(first["name"]), int(first["rank"]), stated, lines)
    return diff_findings(said, names=names, on_rank=on_rank, effect=effect, clear=clear)


def late_cases(count: int, first: int = 0, *, small: bool = False) -> dict[str, Case]:
    """Return even jobs of which one rank's recording begins late or ends early, by name: nobody is to blame."""
    shapes = ("balanced", "gpu_bound", "tensor", "fsdp", "communication_bound", "tensor x data")
    return {
        f"late {number} {shapes[number % len(shapes)]}, {'head' if number % 2 else 'tail'} missing": partial(
            _late, 90_000 + number, shapes[number % len(shapes)], head=bool(number % 2), small=small
        )
        for number in range(first, first + count)
    }


def pause_cases(count: int, first: int = 0) -> dict[str, Case]:
    """Return simulated jobs of one rank with a planted pause in some steps, by name."""
    shapes = ("one rank", "host-bound, stacks", "launch-bound", "gpu_bound", "synchronized", "loader-bound")
    return {
        f"pause {number} {shapes[number % len(shapes)]}": partial(
            _paused, 70_000 + number, shapes[number % len(shapes)]
        )
        for number in range(first, first + count)
    }


def _paused(seed: int, shape: str) -> list[Finding]:
    draw = random.Random(seed)
    job = SHAPES[shape].model_copy(update={
        "seed": seed, "ranks": 1, "steps": draw.choice((3, 6)), "layers": 2, "flows": False, "with_stack": False,
        "cuda_sync": draw.random() < 0.5, "loader_us": 150.0,
    })  # fmt: skip
    every, named, share = draw.choice((1, 3)), draw.random() < 0.5, draw.uniform(0.6, 2.0)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (file,) = simulate(job).write(folder, suffix=".json")
        us = round(share * every * simulate(job).mean_step_ns / 1000, 1)
        times = add_pauses(file, draw, every=every, us=us, named=named)
        said = said_of(folder)
        findings = pause_findings(said.pauses, raw_ranks(folder), host_bound=False)
    return [*findings, planted_finding(said.pauses, names=SLEEP, total_us=times * us)]


def _late(seed: int, shape: str, *, head: bool, small: bool) -> list[Finding]:
    draw = random.Random(seed)
    job = SHAPES[shape].model_copy(update={"seed": seed, "steps": 5, "layers": 2})
    job = shrunk(job) if small else job
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        simulate(recorded(job, draw.choice(("complete", "neither")), draw)).write(
            folder, suffix=".json.gz", level=1, truth=False
        )
        file = trace_files(folder)[draw.randrange(job.ranks)]
        _cut(file, draw.uniform(0.15, 0.6), head=head)
        graph = hg.load(folder)
        word = "begins late" if head else "ends early"
        return straggler_findings(
            hg.stragglers(graph).straggler, None, effect=0, evidence=f"{file.name} {word}; all ranks are alike"
        )


def _cut(file: Path, share: float, *, head: bool) -> None:
    """Remove the events before, or after, a share of a file's time."""
    data = json.loads(gzip.decompress(file.read_bytes()))
    timed = [float(event["ts"]) for event in data["traceEvents"] if event.get("ph") == "X"]
    at = min(timed) + (share if head else 1 - share) * (max(timed) - min(timed))
    kept = [
        event for event in data["traceEvents"]
        if event.get("ph") == "M" or "ts" not in event or (float(event["ts"]) >= at) == head
    ]  # fmt: skip
    file.write_bytes(gzip.compress(json.dumps({**data, "traceEvents": kept}).encode(), 1))


def trace_cases(folder: Path) -> dict[str, Case]:
    """Return real traces by name: each folder of ranks, and each file that is a job of its own."""
    several = ("megatron_tp8_a100", "torchrec_v100_equal", "torchrec_v100_leading_missing", "gloo4_cpu")
    jobs = [folder / name for name in several if (folder / name).is_dir()]
    files = [file for file in sorted(folder.rglob("*.json.gz")) if not any(job in file.parents for job in jobs)]
    jobs += [file for file in files if not file.name.endswith("_et.json.gz")]
    cases: dict[str, Case] = {f"trace {job.relative_to(folder)}": partial(_trace, job) for job in jobs}
    for job in jobs[: len(several)]:  # and each rank of a job by itself
        for file in trace_files(job):
            cases[f"trace {file.relative_to(folder)}"] = partial(_trace, file)
    return cases


def _trace(path: Path) -> list[Finding]:
    said, ranks = said_of(path), raw_ranks(path)
    findings = _raw_findings(said, ranks)
    shares = raw_shares(ranks[0]) if len(ranks) == 1 and said.bound[0] else {"gap": 100.0}
    if shares["gap"] <= MAX_GAP:
        findings += bound_findings(*said.bound, shares, names_share=False)
    if len(ranks) > 1:
        rank, clear, evidence = recorded_straggler(ranks)
        findings += straggler_findings(said.straggler, rank, effect=1, evidence=evidence) if clear else []
    return findings


def pair_cases(folders: Sequence[Path]) -> dict[str, Case]:
    """Return recorded pairs by name."""
    pairs = [file.parent for folder in folders for file in sorted(folder.glob("*/truth.json"))]
    return {f"pair {pair.name}": partial(_pair, pair) for pair in pairs}


def _pair(pair: Path) -> list[Finding]:
    truth = json.loads((pair / "truth.json").read_text(encoding="utf-8"))
    said, ranks = said_of(pair / "A1"), raw_ranks(pair / "A1")
    findings = _raw_findings(said, ranks)
    findings += straggler_findings(said.straggler, truth.get("straggler"), effect=1, evidence=truth["change"])
    if truth.get("bound"):
        first = said.verdict[0].lower()
        right = first.startswith(truth["bound"].lower())
        findings.append(Finding("bound", first[:70], truth["bound"], right, truth["change"]))
    runs = {side: _runs_us(pair, side) for side in "AB"}
    step = {side: sum(each) / len(each) for side, each in runs.items()}
    effect = 100 * (step["B"] / step["A"] - 1)
    noise = max(100 * (max(each) - min(each)) / step[side] for side, each in runs.items())
    if truth.get("blame"):
        diff = hg.diff(said.graph, hg.load(pair / "B1"))
        findings += _diff_findings(diff, names=truth["blame"], effect=effect, clear=abs(effect) > noise)
        findings += _ceilings(said, truth, step["A"] - step["B"])
        is_pause = any(word in truth["blame"] for word in PAUSED) and "::" not in truth["blame"]
        if is_pause and -effect > max(noise, PAUSE):
            gone = (step["A"] - step["B"]) * len(said.graph.steps)
            rank = -1 if truth.get("straggler") is None else truth["straggler"]
            findings.append(planted_finding(said.pauses, names=truth["blame"], total_us=gone, rank=rank))
    return findings


def _ceilings(said: Said, truth: dict[str, Any], gained_us: float) -> list[Finding]:
    """Return whether what was made faster, and nothing else, gained no more than is said to be the most."""
    if len(truth["ask"] or ()) != 1 or len(said.graph.steps) < 2:
        return []
    name = truth["ask"][0][1].get("name", "")
    findings = []
    for claim in claims_that_are(GainClaim, said.claims):
        if claim.about == name:
            steps = len(said.graph.steps) - 1  # in the first and the last one, others may be in the way
            most = max((claim.interval or (0, claim.figure))[1], claim.figure) / steps
            text = f"{claim.about[:50]} at most {most / 1000:.1f} ms a step"
            right = gained_us <= most + PAIR_OFF / 100 * gain_in(claim).makespan_us / steps
            findings.append(Finding("at most", text, "", right, f"the change gained {gained_us / 1000:.1f} ms"))
    return findings


def _runs_us(pair: Path, side: str) -> list[float]:
    """Return the mean step time of each run of a side, without first and last steps, µs."""
    runs = [json.loads(file.read_text())["step_starts_us"] for file in sorted(pair.glob(f"{side}*.steps.json"))]
    return [
        sum((begin[-1] - begin[1]) / (len(begin) - 2) for begin in run.values()) / len(run) for run in runs
    ]  # fmt: skip
