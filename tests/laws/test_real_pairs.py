"""The judge of real pairs, on pairs made by the simulator, and on truths that are planted wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from benchmarks import real_pairs
from benchmarks.real_pairs import (
    Judgement,
    begins,
    flips,
    judge,
    main,
    mean_step_ms,
    pairs_in,
    parser,
    predict,
    recordings_of,
    step_times_of_runs,
    summary,
    table,
)
from htagraph.simulate import Job, ScaleKernels, simulate
from htagraph.whatif.interval_cause import IntervalCause

JOB = Job(ranks=2, steps=5, layers=1)
HALF = ScaleKernels(name="*gemm*", what="compute", factor=0.5)
ASK = [["scale", {"factor": 0.5, "name": "*gemm*", "kind": "computation"}]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one pair: in B, matrix products take half."""
    pair = tmp_path_factory.mktemp("pairs") / "gemm_half"
    for side, changes in (("A", ()), ("B", (HALF,))):
        simulate(JOB.model_copy(update={"changes": changes})).write(pair / f"{side}1", level=1, truth=False)
        starts = begins(hg.step_times(hg.load(pair / f"{side}1")), "start_us")
        (pair / f"{side}1.steps.json").write_text(json.dumps({"step_starts_us": starts}))
    write_truth(pair, ask=ASK, blame="*gemm*", straggler=None, bound="Bound by")
    return pair


def write_truth(pair: Path, **truth: Any) -> None:
    (pair / "truth.json").write_text(json.dumps(truth))


def test_a_pair_of_simulated_jobs_is_right_in_all(made: Path) -> None:
    judged = judge(made)
    assert judged.a_ms > 1.01 * judged.b_ms
    assert judged.error_percent is not None
    assert judged.error_percent < 0.5
    assert judged.holds
    assert judged.interval_cause == IntervalCause.STEPS_DIFFER
    assert not judged.too_uncertain
    assert not judged.beyond_noise
    assert judged.wrong == []
    assert judge(made, conclusions=False).blamed == ""


def test_a_wrong_truth_is_seen(made: Path, tmp_path: Path) -> None:
    pair = tmp_path / "wrong"
    pair.mkdir()
    for side in "AB":
        (pair / f"{side}1").symlink_to(made / f"{side}1")
        starts = json.loads((made / f"{side}1.steps.json").read_text())["step_starts_us"]
        factor = 1.25 if side == "B" else 1.0
        longer = {rank: [factor * each for each in begin] for rank, begin in starts.items()}
        (pair / f"{side}1.steps.json").write_text(json.dumps({"step_starts_us": longer}))
    write_truth(pair, ask=ASK, blame="aten::nothing", straggler=1, bound="Bound by nothing")
    judged = judge(pair)
    assert judged.error_percent == pytest.approx(20, abs=0.5)
    assert judged.beyond_noise
    assert judged.holds is False
    assert len(judged.wrong) == 4  # straggler, diff, verdict, and step times that are not the recorded ones
    assert "wrong in 1" in "\n".join(summary([judged]))


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        ({"ask": None, "why": "nothing records it"}, "nothing records it"),
        ({"ask": [["remove", {"name": "none"}]]}, "none"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(made: Path, truth: dict[str, Any], reason: str) -> None:
    judged = Judgement("refused", 10.0, 8.0, 0.5)
    predict(judged, hg.load(made / "A1"), truth)
    assert reason in judged.refused
    assert judged.error_percent is None
    assert judged.holds is None
    assert "0 predicted, 1 refused" in summary([judged])[0]
    assert "refused" in table([judged])["wrong"].iloc[0]


def test_an_interval_is_judged_by_the_truth() -> None:
    one = Judgement("one", 10.0, 8.0, 0.5, predicted_ms=9.0, low_ms=7.5, high_ms=9.5)
    assert one.holds
    assert one.width_percent == pytest.approx(100 * 2 / 9)
    two = Judgement("two", 10.0, 8.0, 20.0, predicted_ms=9.0, low_ms=8.9, high_ms=9.1)
    assert not two.holds
    assert not two.holds_exactly
    assert not two.beyond_noise  # 12.5 %, of 20 % by which runs differ
    text = "\n".join(summary([one, two]))
    assert "holds the truth in 1 of 2 (1 of the 1 beyond the noise)" in text
    assert table([one, two])["holds"].tolist() == ["yes", "NO"]
    near = Judgement("near", 10.0, 8.0, 0.5, predicted_ms=9.0, low_ms=8.05, high_ms=9.5)
    assert near.holds
    assert not near.holds_exactly
    assert "without the tolerance of 1 %: in 1;" in "\n".join(summary([one, two, near]))


def test_noise_is_the_range_of_runs(tmp_path: Path) -> None:
    for run, last in (("A1", 6000.0), ("A2", 9000.0)):
        (tmp_path / f"{run}.steps.json").write_text(json.dumps({"step_starts_us": {"0": [0.0, 2000.0, last]}}))
    assert step_times_of_runs(tmp_path, "A") == [4.0, 7.0]
    assert mean_step_ms({0: [0, 2000, 6000], 1: [0, 2000, 9000]}) == 5.5


def test_every_recording_of_a_job_is_judged_where_asked_for(made: Path, tmp_path: Path) -> None:
    pair = tmp_path / "twice"
    pair.mkdir()
    for name, of in (("A1", "A1"), ("A2", "A1"), ("B1", "B1")):
        (pair / name).symlink_to(made / of)
        (pair / f"{name}.steps.json").symlink_to(made / f"{of}.steps.json")
    write_truth(pair, ask=ASK, blame="*gemm*")
    assert recordings_of(pair, every=False) == ["A1"]
    assert recordings_of(pair, every=True) == ["A1", "A2"]
    rows = [judge(pair, name, conclusions=False) for name in recordings_of(pair, every=True)]
    assert rows[0].predicted_ms == rows[1].predicted_ms
    assert table(rows)["run"].tolist() == ["A1", "A2"]
    assert flips(rows) == ["predictions flip from recording to recording in 0 of 1 jobs"]


def test_recordings_are_in_the_order_of_their_runs(tmp_path: Path) -> None:
    for run in (10, 2, 1):
        (tmp_path / f"A{run}").mkdir()
    (tmp_path / "A1.steps.json").touch()
    assert recordings_of(tmp_path, every=True) == ["A1", "A2", "A10"]


def test_predictions_flip_where_two_differ_by_more_than_runs_do() -> None:
    def rows(pair: str, noise: float, *predicted: float) -> list[Judgement]:
        return [Judgement(pair, 10.0, 8.0, noise, f"A{run}", ms) for run, ms in enumerate(predicted, 1)]

    assert flips(rows("once", 0.5, 8.0)) == []
    judged = [*rows("steady", 0.5, 8.0, 8.7), *rows("noisy", 40.0, 8.0, 11.0), *rows("two_answers", 0.5, 8.0, 12.0)]
    assert flips(judged) == ["predictions flip from recording to recording in 1 of 3 jobs: two_answers by 40 %"]
    assert flips(judged)[0] in summary(judged)


def test_pairs_are_found_by_their_truth(made: Path, tmp_path: Path) -> None:
    (tmp_path / "unfinished.partial").mkdir()
    assert pairs_in([tmp_path, made.parent]) == [made]
    assert pairs_in([made.parent], "other*") == []


@pytest.mark.parametrize(
    ("below", "only", "words"),
    [
        ("gemm_half", "*", "is a pair itself: give the folder that it lies in, and --only gemm_half"),
        ("gemm_half/A1", "*", "give a folder of folders that each have a truth.json"),
        (".", "conv*", "no pair is called conv[*]; there are gemm_half"),
    ],
)
def test_where_no_pair_is_found_an_error_says_what_to_give(
    below: str, only: str, words: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["real_pairs", str(made.parent / below), "--only", only])
    with pytest.raises(SystemExit, match=words):
        main()


def test_the_command_prints_the_table_and_writes_json(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Judgement(made.name, 10.0, 8.0, 0.5, predicted_ms=8.1, low_ms=7.5, high_ms=9.5)
    monkeypatch.setattr(real_pairs, "judge", lambda folder, _, **__: {made: right}[folder])
    file = tmp_path / "not there yet" / "judged.json"
    monkeypatch.setattr("sys.argv", ["real_pairs", str(made.parent), "--json", str(file)])
    main()
    printed = capsys.readouterr().out
    assert "gemm_half" in printed
    assert "1 pairs, 1 predicted, 0 refused" in printed
    (row,) = json.loads(file.read_text())
    assert row["pair"] == "gemm_half"
    assert row["holds"] is True
    assert parser().parse_args(["x", "--only", "y*"]).only == "y*"
