"""Whether each finding's claims are values of a class that declares all that their words need."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import htagraph as hg
from benchmarks.conclusions_truth.jobs import shrunk, simulated_jobs
from htagraph.findings.differences.pair import JobPair
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.results import Results
from htagraph.findings.verbs.diff import DIFFERENCES, OF_EMPTY, OF_INCOMPLETE, OF_OTHER_WORK, claims_of_diff
from htagraph.findings.verdict import FINDINGS
from htagraph.simulate import simulate
from tests.reach import DATASETS, REAL, graph_of, label

UNITS = {"_us": "µs", "_ns": "ns", "_percent": "percent"}
"""What the name of a figure ends with, and the unit that its words say."""
SMALL = [path for path in REAL if path.stat().st_size < 30_000]
SIMULATED = {name: shrunk(job) for name, job in simulated_jobs(12).items()}


ON_TWO_JOBS = tuple(dict.fromkeys((*OF_EMPTY, *OF_INCOMPLETE, *OF_OTHER_WORK, *DIFFERENCES)))
"""The findings on two jobs."""


def classes_of(module: str, folder: str = "htagraph.findings") -> list[type[Claim]]:
    """Return the classes of claims that the file of a finding declares."""
    values = vars(importlib.import_module(f"{folder}.{module}")).values()
    classes = [value for value in values if inspect.isclass(value) and issubclass(value, Claim)]
    return [each for each in classes if each.__module__ == f"{folder}.{module}"]


def class_of(finding: Finding) -> type[Claim]:
    """Return the class of a finding's claims; `Claim` for a sentence without further figures and names."""
    return next(iter(classes_of(finding.name)), Claim)


def every_class(parent: type[Claim] = Claim) -> Iterator[type[Claim]]:
    """Yield each class of claims."""
    yield parent
    for child in parent.__subclasses__():
        yield from every_class(child)


CLASSES = list(every_class())


def types_in(hint: object) -> Iterator[object]:
    """Yield a type and the types inside of it."""
    yield hint
    for inner in typing.get_args(hint):
        yield from types_in(inner)


def words_of(kind: type) -> dict[str, str]:
    """Return the docstring of each field that a class declares itself; empty for none."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    words = {}
    for line, below in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            value = below.value if isinstance(below, ast.Expr) else None
            text = value.value if isinstance(value, ast.Constant) else ""
            words[line.target.id] = str(text)
    return words


def wrong_claims(results: Results) -> list[str]:
    """Return the claims about a job that are no values of the class of their finding, where it declares one."""
    return [
        f"{finding.name}: {type(claim).__name__}"
        for finding in FINDINGS
        for claim in results.claims(finding.when)
        if type(claim) is not class_of(finding)
    ]


def test_a_finding_declares_one_class_of_claims_in_its_file() -> None:
    assert [each.name for each in FINDINGS if len(classes_of(each.name)) > 1] == []
    of_two = [kind for each in ON_TWO_JOBS for kind in classes_of(each.name, "htagraph.findings.differences")]
    assert set(CLASSES) == {Claim, *(kind for each in FINDINGS for kind in classes_of(each.name)), *of_two}


def test_claims_on_two_jobs_are_of_their_findings_class() -> None:
    before, after = (graph_of(path) for path in DATASETS[:2])
    for pair in (JobPair(hg.diff(before, after)), JobPair(hg.diff(before, before))):
        for finding, claim in claims_of_diff(pair):
            (kind,) = classes_of(finding.name, "htagraph.findings.differences") or [Claim]
            assert type(claim) is kind
            assert claim.says == finding.name


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_claim_is_frozen_and_has_a_type_for_each_of_its_figures(kind: type[Claim]) -> None:
    parameters = kind.__dataclass_params__  # type: ignore[attr-defined]
    assert parameters.frozen
    hints = typing.get_type_hints(kind)
    assert set(hints) == {each.name for each in dataclasses.fields(kind)}
    loose = [name for name, hint in hints.items() if {typing.Any, object, dict} & set(map(_plain, types_in(hint)))]
    assert not loose, "a typo in such a field is a missing sentence"
    assert "facts" not in hints
    assert not hasattr(kind, "facts")


def _plain(hint: object) -> object:
    """Return a type without its parameters, as a value that may be in a set."""
    origin = typing.get_origin(hint)
    plain = hint if origin is None else origin
    return plain if isinstance(plain, type) or plain is typing.Any else str(plain)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not Claim], ids=lambda kind: kind.__name__)
def test_each_field_of_a_claim_is_described_with_its_unit(kind: type[Claim]) -> None:
    words = words_of(kind)
    assert [name for name, text in words.items() if not text] == []
    ends = [(name, unit) for name in words for end, unit in UNITS.items() if name.endswith(end)]
    assert [name for name, unit in ends if unit not in words[name].lower()] == []
    added = [each for each in dataclasses.fields(kind) if each.name in words and each.name != "about"]
    assert all(each.kw_only for each in added)


@pytest.mark.parametrize(
    "path", [*SMALL, *(pytest.param(path, marks=pytest.mark.slow) for path in DATASETS)], ids=label
)
def test_claims_about_recorded_jobs_are_of_their_findings_class(path: Path) -> None:
    assert wrong_claims(Results(graph_of(path))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_claims_about_simulated_jobs_are_of_their_findings_class(name: str, tmp_path: Path) -> None:
    simulate(SIMULATED[name]).write(tmp_path, suffix=".json", truth=False)
    assert wrong_claims(Results(hg.load(tmp_path))) == []
