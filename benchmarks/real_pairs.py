"""Judge what-ifs by real pairs of jobs: ``python -m benchmarks.real_pairs FOLDER ...``.

A pair is two recordings, A and B, with one change between them, as `record_pairs.py` writes them. From A's traces and
the change, `htagraph.what_if` predicts B's step time; the truth is the mean over B's runs. Also asked: whether the
outcome's interval [low, high] holds the truth, how wide it is and why; what `diff` blames first, whom `stragglers`
names in A, and how the verdict of `summarize` on A begins, where the pair says what is right.

Where traces of several runs of A were kept, `--all-runs` predicts from each: a row per recording, and in how many jobs
predictions flip from one recording to another.

A step time is (begin of the last recorded step - begin of the second) / steps between, as mean over ranks.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import htagraph as hg
from benchmarks.halves import add_half, of_half

MEASURED_PERCENT = 1.0
"""How well, %, a step time is known at least, besides its spread over runs. Source: what is left between a prediction
from the right graph and another run on a quiet machine. Twice it would hide errors that matter; 0 would count noise."""


FLIP_PERCENT = 10.0
"""From how much, %, on predictions from two recordings of one job are two answers. Chosen: as in the goal that no job
has two; half of it is within the intervals of most."""


@dataclass
class Judgement:
    """What came of one pair; None where a question cannot be asked or has no known answer."""

    pair: str
    a_ms: float
    """Mean step time of A's runs."""
    b_ms: float
    """Mean step time of B's runs: the truth."""
    noise_percent: float
    """The largest range of A's or B's runs, of their mean."""
    recording: str = "A1"
    """The recording of A that was asked."""
    predicted_ms: float | None = None
    low_ms: float | None = None
    """B's least step time by the outcome's interval."""
    high_ms: float | None = None
    too_uncertain: bool = False
    """Whether the outcome says that the recording cannot tell."""
    interval_cause: str = ""
    """What the interval's width comes of."""
    refused: str = ""
    """Why there is no prediction."""
    straggler: int | None = None
    straggler_right: bool = True
    blamed: str = ""
    diff_right: bool | None = None
    verdict: str = ""
    verdict_right: bool | None = None
    problems: list[str] = field(default_factory=list)
    """Exactness that is missing: a replay that is off, step times that are not the recorded ones."""

    @property
    def error_percent(self) -> float | None:
        """Return the prediction's error, of the truth; None without a prediction."""
        return None if self.predicted_ms is None else 100 * abs(self.predicted_ms - self.b_ms) / self.b_ms

    @property
    def beyond_noise(self) -> bool:
        """Return whether the error is larger than what runs differ by, and than `MEASURED_PERCENT`."""
        return (self.error_percent or 0) > max(self.noise_percent, MEASURED_PERCENT)

    @property
    def holds(self) -> bool | None:
        """Return whether [low, high] holds the truth, up to `MEASURED_PERCENT`; None without a prediction."""
        if self.low_ms is None or self.high_ms is None:
            return None
        tolerance = MEASURED_PERCENT / 100 * self.b_ms
        return self.low_ms - tolerance <= self.b_ms <= self.high_ms + tolerance

    @property
    def holds_exactly(self) -> bool | None:
        """Return whether [low, high] holds the truth without any tolerance; None without a prediction."""
        return None if self.low_ms is None or self.high_ms is None else self.low_ms <= self.b_ms <= self.high_ms

    @property
    def width_percent(self) -> float | None:
        """Return high - low, of the prediction; None without one."""
        if self.predicted_ms is None or self.low_ms is None or self.high_ms is None:
            return None
        return 100 * (self.high_ms - self.low_ms) / self.predicted_ms

    @property
    def wrong(self) -> list[str]:
        """Return which conclusions are wrong, in words."""
        words = [] if self.straggler_right else [f"straggler: {self.straggler}"]
        words += [f"diff: {self.blamed[:40]}"] if self.diff_right is False else []
        words += [f"verdict: {self.verdict[:60]}"] if self.verdict_right is False else []
        return words + self.problems


def main() -> None:
    """Print a table with a row per pair, and the summary."""
    options = parser().parse_args()
    pairs = pairs_in(options.folders, options.only)
    pairs = [each for each in pairs if each.name in of_half([each.name], options.half)]
    if not pairs:
        sys.exit(_why_none(options.folders, options.only))
    judged = []
    for folder, recording in [(each, run) for each in pairs for run in recordings_of(each, every=options.all_runs)]:
        judged.append(judge(folder, recording, conclusions=not options.predictions))
        if options.details:
            print(json.dumps(details(judged[-1]), indent=1, default=str), flush=True)
    print(table(judged).to_string(index=False))
    print("\n".join(summary(judged)))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps([details(each) for each in judged], indent=1, default=str), encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("folders", nargs="+", type=Path, help="folders of pairs")
    command.add_argument("--only", default="*", help="glob on the names of pairs")
    add_half(command)
    command.add_argument("--predictions", action="store_true", help="ask for predictions only, not for conclusions")
    command.add_argument(
        "--all-runs", action="store_true", help="predict from each recording of A, not the first alone"
    )
    command.add_argument("--details", action="store_true", help="print all that is known of each pair")
    command.add_argument("--json", type=Path, help="write all that is known of each pair")
    return command


def pairs_in(folders: Sequence[Path], only: str = "*") -> list[Path]:
    """Return the complete pairs in folders, in the order of folders and names."""
    pairs = [file.parent for folder in folders for file in sorted(folder.glob("*/truth.json"))]
    return [each for each in pairs if fnmatch.fnmatch(each.name, only)]


def recordings_of(folder: Path, *, every: bool) -> list[str]:
    """Return the names of A's recordings of a pair, in the order of runs: the first alone, or `every` one."""
    kept = sorted((each.name for each in folder.glob("A[0-9]*") if each.is_dir()), key=_run)
    return kept if every else kept[:1]


def _run(recording: str) -> int:
    """Return the number of the run that a recording is of."""
    return int(recording[1:])


def _why_none(folders: Sequence[Path], only: str) -> str:
    """Return why there is no pair in folders, and what to give instead."""
    pair = next((each for each in folders if (each / "truth.json").is_file()), None)
    if pair is not None:
        return f"{pair} is a pair itself: give the folder that it lies in, and --only {pair.resolve().name}"
    there = [each.name for each in pairs_in(folders)]
    if there:
        return f"no pair is called {only}; there are {', '.join(there)}"
    return f"no pairs in {', '.join(map(str, folders))}: give a folder of folders that each have a truth.json"


def judge(folder: Path, recording: str = "A1", *, conclusions: bool = True) -> Judgement:
    """Return what htagraph says of a pair by a recording of A, beside the truth; where asked for, conclusions too."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    runs = {side: step_times_of_runs(folder, side) for side in "AB"}
    mean = {side: sum(times) / len(times) for side, times in runs.items()}
    noise = max(100 * (max(times) - min(times)) / mean[side] for side, times in runs.items())
    judged = Judgement(folder.name, mean["A"], mean["B"], noise, recording)
    before, after = hg.load(folder / recording), hg.load(folder / "B1")
    judged.problems += inexact(before, runs["A"][_run(recording) - 1]) + inexact(after, runs["B"][0])
    predict(judged, before, truth)
    if conclusions:
        conclude(judged, before, after, truth)
    return judged


def predict(judged: Judgement, graph: hg.DependencyGraph, truth: Mapping[str, Any]) -> None:
    """Set the predicted step time and its interval, ms, or why there is none."""
    if not truth["ask"]:
        judged.refused = f"no what-if: {truth.get('why', 'none says so')}"
        return
    scenario = hg.what_if(graph)
    try:
        for method, arguments in truth["ask"]:
            scenario = getattr(scenario, method)(**arguments)
    except hg.HtagraphError as error:
        judged.refused = str(error)
        return
    outcome = scenario.run()
    judged.predicted_ms = mean_step_ms(begins(outcome.step_times(), "predicted_start_us"))
    judged.low_ms = judged.predicted_ms * outcome.speedup / outcome.high
    judged.high_ms = judged.predicted_ms * outcome.speedup / outcome.low
    judged.too_uncertain = any("the recording cannot tell" in note for note in outcome.notes)
    judged.interval_cause = outcome.interval_cause


def conclude(
    judged: Judgement, before: hg.DependencyGraph, after: hg.DependencyGraph, truth: Mapping[str, Any]
) -> None:
    """Set what diff, stragglers and the verdict say, and whether that is right."""
    judged.straggler = hg.stragglers(before).straggler
    judged.straggler_right = judged.straggler == truth.get("straggler")
    causes = hg.diff(before, after).causes()
    judged.blamed = str(causes["name"].iloc[0]) if len(causes) else "nothing"
    if truth.get("blame"):
        judged.diff_right = any(fnmatch.fnmatch(judged.blamed, glob) for glob in truth["blame"].split("|"))
    judged.verdict = next(iter(hg.summarize(before).verdict), "")
    if truth.get("bound"):
        judged.verdict_right = says(judged.verdict, truth["bound"])


def says(verdict: str, bound: str) -> bool:
    """Return whether a verdict names a bound in its first words.

    >>> says("The job is bound by host code (Python): 90 %", "Bound by host code")
    True
    >>> says("Bound by transfers between ranks, then by host code", "Bound by host code")
    False
    """
    opening = verdict.lower().removeprefix("the job is ")
    return opening.startswith(bound.lower())


def inexact(graph: hg.DependencyGraph, recorded_ms: float) -> list[str]:
    """Return what is not as recorded though it must be: the replay, and the step times."""
    off = hg.replay(graph).max_error_ns
    ours = mean_step_ms(begins(hg.step_times(graph), "start_us"))
    problems = [f"replay off by {off} ns"] if off else []
    if abs(ours - recorded_ms) > 1e-3 * recorded_ms:
        problems.append(f"steps take {ours:.2f} ms, recorded {recorded_ms:.2f}")
    return problems


def step_times_of_runs(folder: Path, side: str) -> list[float]:
    """Return the mean step time, ms, of each run of A or B, in the order of the runs."""
    files = sorted(folder.glob(f"{side}*.steps.json"))
    return [mean_step_ms(json.loads(file.read_text(encoding="utf-8"))["step_starts_us"]) for file in files]


def mean_step_ms(starts: Mapping[Any, Sequence[float]]) -> float:
    """Return the mean step time, ms, from each rank's begins of steps, µs, without the first and the last step.

    >>> mean_step_ms({0: [0, 9000, 11000, 13000], 1: [0, 9000, 11000, 17000]})
    3.0
    """
    each = [(begin[-1] - begin[1]) / (len(begin) - 2) for begin in starts.values()]
    return sum(each) / len(each) / 1000


def begins(steps: pd.DataFrame, column: str) -> dict[Any, list[float]]:
    """Return each rank's begins of steps, µs, from a table of step times."""
    return {rank: rows.sort_values("step")[column].tolist() for rank, rows in steps.groupby("rank")}


def details(judged: Judgement) -> dict[str, Any]:
    """Return all that is known of a pair, for JSON."""
    derived = ("error_percent", "beyond_noise", "holds", "holds_exactly", "width_percent")
    return {**asdict(judged), **{name: getattr(judged, name) for name in derived}}


def table(judged: Sequence[Judgement]) -> pd.DataFrame:
    """Return one row per pair, as it is printed."""
    rows = [
        {
            "pair": each.pair,
            "run": each.recording,
            "A ms": each.a_ms,
            "B ms": each.b_ms,
            "predicted": each.predicted_ms,
            "error %": each.error_percent,
            "noise %": each.noise_percent,
            "": "!" if each.beyond_noise else "",
            "low": each.low_ms,
            "high": each.high_ms,
            "width %": each.width_percent,
            "holds": {True: "yes", False: "NO", None: "-"}[each.holds],
            "as": each.interval_cause[:24],
            "blames": each.blamed[:30],
            "wrong": "; ".join(each.wrong) or (f"refused: {each.refused[:60]}" if each.refused else ""),
        }
        for each in judged
    ]
    return pd.DataFrame(rows).round(2)


def summary(judged: Sequence[Judgement]) -> list[str]:
    """Return the lines below the table: errors, intervals, conclusions."""
    errors = pd.Series([each.error_percent for each in judged if each.error_percent is not None], dtype=float)
    widths = pd.Series([each.width_percent for each in judged if each.width_percent is not None], dtype=float)
    refused = sum(bool(each.refused) for each in judged)
    lines = [f"{len(judged)} pairs, {len(errors)} predicted, {refused} refused"]
    if len(errors):
        beyond = [each for each in judged if each.beyond_noise]
        lines += [
            f"error %: median {errors.median():.2f}, p95 {errors.quantile(0.95):.2f}, worst {errors.max():.2f};"
            f" beyond the noise in {len(beyond)}",
            f"interval holds the truth in {sum(each.holds is True for each in judged)} of {len(errors)}"
            f" ({sum(each.holds is True for each in beyond)} of the {len(beyond)} beyond the noise);"
            f" median width {widths.median():.2f} %, p90 {widths.quantile(0.9):.2f} %",
            f"without the tolerance of {MEASURED_PERCENT:g} %: in {sum(each.holds_exactly is True for each in judged)};"
            f" {sum(each.too_uncertain for each in judged)} say that the recording cannot tell",
        ]
    lines += flips(judged)
    for what in ("diff", "straggler", "verdict"):
        answers = [getattr(each, f"{what}_right") for each in judged]
        lines.append(f"{what}: right in {answers.count(True)}, wrong in {answers.count(False)}")
    return lines


def flips(judged: Sequence[Judgement]) -> list[str]:
    """Return the line that counts jobs whose predictions flip; none where no job has two recordings.

    They flip where two of them differ by more than the runs do, and by more than `FLIP_PERCENT`.
    """
    by_pair: dict[str, list[Judgement]] = {}
    for each in judged:
        if each.predicted_ms is not None:
            by_pair.setdefault(each.pair, []).append(each)
    several = {pair: rows for pair, rows in by_pair.items() if len(rows) > 1}
    differ = {pair: _spread_percent(rows) for pair, rows in several.items()}
    flipped = {pair: by for pair, by in differ.items() if by > max(FLIP_PERCENT, several[pair][0].noise_percent)}
    named = ", ".join(f"{pair} by {by:.0f} %" for pair, by in flipped.items())
    counted = f"predictions flip from recording to recording in {len(flipped)} of {len(several)} jobs"
    return [f"{counted}: {named}" if named else counted] if several else []


def _spread_percent(rows: Sequence[Judgement]) -> float:
    """Return by how much predictions from the recordings of one job differ at most, of their mean."""
    predicted = [each.predicted_ms for each in rows if each.predicted_ms is not None]
    return 100 * (max(predicted) - min(predicted)) * len(predicted) / sum(predicted)


if __name__ == "__main__":
    main()
