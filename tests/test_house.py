"""The house rules; each message names what is missing."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind
from htagraph.cli.verbs import VERBS
from htagraph.core.naming import activity_kind
from htagraph.graph.rules import RULES
from tests.oracles import table_of
from tests.reach import DATASETS, REPOSITORY, graph_of, label, only_for_types
from tests.strategies import COMPUTE, kernel, launch, load, op, step

PACKAGE = REPOSITORY / "htagraph"
TESTS = REPOSITORY / "tests"
REFERENCE = REPOSITORY / "docs" / "reference"
OUTPUTS = ("cli", "output", "hta", "simulate", "__main__")
"""Packages that may print, draw or write: `output`, what lies above it, the oracle, and the recorder."""

MODULES = sorted(PACKAGE.rglob("*.py"))
FILES = [path for pattern in ("*.py", "memory/*.py") for path in (PACKAGE / "analyses").glob(pattern)]
ANALYSES = sorted(
    ".".join(path.relative_to(PACKAGE / "analyses").with_suffix("").parts) for path in FILES if path.stem != "__init__"
)
"""Analyses as they are called: `hg.overlap`, `hg.memory.peaks`."""


def module_name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def is_output(path: Path) -> bool:
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py") in OUTPUTS or parts[:2] == ("trace", "recording")


def public_functions() -> Iterator[tuple[str, types.FunctionType]]:
    """Return the functions that `htagraph` and its namespaces export."""
    namespaces = [
        f"{each}.{name}" for each in ("memory", "execution_trace", "plot") for name in getattr(hg, each).__all__
    ]
    for name in [*dir(hg), *namespaces]:
        value = attrgetter(name)(hg)
        if isinstance(value, types.FunctionType):
            yield name, value


PUBLIC = dict(public_functions())


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def with_code() -> list[Path]:
    return [path for path in MODULES if len(parsed(path).body) > 1]


@cache
def exporting() -> list[Path]:
    """Return the modules that others import from; of the simulator, only its door."""
    doors = [path for path in with_code() if path.parent.name != "simulate" or path.stem == "__init__"]
    return [path for path in doors if path.stem != "__main__"]


every_analysis = pytest.mark.parametrize("name", ANALYSES)


# one analysis: one file, one test, one export, one row


@every_analysis
def test_an_analysis_is_a_function_of_its_modules_name(name: str) -> None:
    module, function = importlib.import_module(f"htagraph.analyses.{name}"), name.rpartition(".")[2]
    assert callable(getattr(module, function, None)), f"{module.__file__} lacks a function {function}"
    assert module.__all__ == [function], f"{module.__file__}: __all__ is not ['{function}']"


@every_analysis
def test_an_analysis_is_exported(name: str) -> None:
    stub, top = (PACKAGE / "__init__.pyi").read_text(encoding="utf-8"), name.partition(".")[0]
    assert re.search(rf"import {top} as {top}$", stub, re.MULTILINE), f"htagraph/__init__.pyi does not export {top}"
    assert callable(attrgetter(name)(hg))


@every_analysis
def test_an_analysis_has_a_test_file(name: str) -> None:
    folder, _, function = name.rpartition(".")
    path = TESTS / "analyses" / folder / f"test_{function}.py"
    assert path.is_file(), f"{path} is missing"


@every_analysis
def test_an_analysis_has_a_row_in_the_table_of_functions(name: str) -> None:
    rows = [line for line in (REFERENCE / "functions.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    assert any(f"`hg.{name}" in row for row in rows), f"docs/reference/functions.md has no row with `hg.{name}`"


# one edge rule: one file, one entry, one member, one test


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_an_edge_rule_has_a_module_a_member_and_a_test(rule: Any) -> None:
    name = rule.__name__
    assert rule.__module__ == f"htagraph.graph.rules.{name}", (
        f"the rule {name} is not in htagraph/graph/rules/{name}.py"
    )
    kind = name.removeprefix("cuda_").upper()
    assert kind in EdgeKind.__members__, f"EdgeKind lacks {kind}"
    assert (TESTS / "graph" / "rules" / f"test_{name}.py").is_file(), f"tests/graph/rules/test_{name}.py is missing"


@pytest.mark.parametrize("kind", [kind.name for kind in EdgeKind if kind != EdgeKind.USER])
def test_an_edge_kind_has_a_row_in_the_table_of_edges(kind: str) -> None:
    text = (REFERENCE / "graph.md").read_text(encoding="utf-8")
    assert f"\n| `{kind}` |" in text, f"docs/reference/graph.md: the table of edges has no row `{kind}`"


# modules


def test_a_module_says_what_it_exports() -> None:
    silent = [module_name(path) for path in exporting() if "__all__" not in path.read_text(encoding="utf-8")]
    assert not silent, f"without __all__: {silent}"


def test_what_a_module_exports_is_there() -> None:
    modules = [importlib.import_module(module_name(path)) for path in exporting()]
    absent = [f"{each.__name__}.{name}" for each in modules for name in each.__all__ if not hasattr(each, name)]
    assert not absent, f"named in __all__ and absent: {absent}"


_OWN_FILES = (PACKAGE / "graph" / "storage", PACKAGE / "core" / "kept_code.py")
"""They write files that only they read."""


def test_only_the_uppermost_layer_prints_draws_or_writes() -> None:
    others = [path for path in MODULES if not is_output(path) and not any(map(path.is_relative_to, _OWN_FILES))]
    outputs = {module_name(path): _outputs(path) for path in others}
    outputs = {name: lines for name, lines in outputs.items() if lines}
    assert not outputs, outputs


def _outputs(path: Path) -> list[str]:
    """Return what a module draws, prints or writes with."""
    found, typing = [], only_for_types(parsed(path))
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in typing:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            found += [name for name in names if name.split(".")[0] in {"plotly", "matplotlib", "graphviz", "rich"}]
        if isinstance(node, ast.Call):
            found += [f"line {node.lineno}: {word}" for word in _writing(node)]
    return found


def _writing(call: ast.Call) -> list[str]:
    """Return what a call prints or writes with, if it does."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in {"print", "write_text", "write_bytes", "to_csv", "to_parquet", "savez", "save"}:
        return [name]
    modes = [
        arg.value for arg in [*call.args, *(word.value for word in call.keywords)] if isinstance(arg, ast.Constant)
    ]
    writes = any(isinstance(mode, str) and re.fullmatch(r"[wax]b?t?\+?", mode) for mode in modes)
    return [name] if name == "open" and writes else []


def test_addresses_of_arrays_reach_compiled_code_by_the_functions_that_look_at_their_padding() -> None:
    """Compiled code reads eight bytes at once: where it takes addresses from Python, padding must follow the text."""
    takers = [
        f"{module_name(path)}.{function.name}"
        for path in MODULES
        for function in ast.walk(parsed(path))
        if isinstance(function, ast.FunctionDef) and not function.decorator_list and _takes_an_address(function)
    ]
    grammar = "htagraph.trace.kineto.scan.grammar"
    assert takers == [f"{grammar}.text_address", f"{grammar}.rows_address"], "use text_address or rows_address"


def _takes_an_address(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in {"ctypes", "__array_interface__"}
        for node in ast.walk(function)
    )


def test_compiled_functions_find_a_place_to_be_kept() -> None:
    makes = re.compile(r"^\s*from numba import .*\bn?jit\b|^\s*import numba\b", re.MULTILINE)
    made = [module_name(path) for path in MODULES if makes.search(path.read_text(encoding="utf-8"))]
    assert made == ["htagraph.core.compiled"], "use htagraph.core.compiled.njit: numba's fails where it cannot write"


_NAMED = re.compile(
    r"(cuda|hip)(Launch|Memcpy|Memset|Stream|Event|Device|Graph|Malloc|Free)|^cu[A-Z]\w+$|nccl(Dev)?Kernel|^nccl$|rccl"
    r"|^aten::|^autograd::|ProfilerStep|^Mem(cpy|set)|[a-z]gemm"
)


_MAY_NAME = (
    PACKAGE / "core" / "names.py", PACKAGE / "core" / "naming.py", PACKAGE / "core" / "kernels.py",
    PACKAGE / "core" / "flops.py",
    PACKAGE / "trace" / "kineto" / "events", PACKAGE / "trace" / "nsys",
    PACKAGE / "trace" / "pftrace",
)  # fmt: skip
"""Modules that know events by name: what names mean, which operators have a formula, and the schema of files."""


def test_only_few_modules_know_names_of_events() -> None:
    others = [path for path in MODULES if not is_output(path) and not any(path.is_relative_to(p) for p in _MAY_NAME)]
    names = {module_name(path): _names_of_events(path) for path in others}
    names = {module: lines for module, lines in names.items() if lines}
    assert not names, f"these belong in htagraph/core/naming.py: {names}"


def _names_of_events(path: Path) -> list[str]:
    """Return the texts of a module that are names of events; not its docstrings and messages."""
    tree = parsed(path)
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    messages = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    return [
        f"line {node.lineno}: {node.value!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in texts | messages
        and " " not in node.value  # sentences for users may name what they speak of
        and _NAMED.search(node.value)
    ]


def _loaded_by(code: str) -> set[str]:
    """Return the modules that a new interpreter holds after it ran some code."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    return set(done.stdout.splitlines()[-1].split())


_HEAVY = {"pandas", "numba", "numpy", "networkx", "pydantic", "pyarrow", "plotly", "graphviz", "scipy"}


def test_importing_the_package_loads_no_heavy_library() -> None:
    loaded = _loaded_by("import htagraph")
    assert not loaded & _HEAVY


def test_the_version_loads_nothing_that_reads_traces() -> None:
    loaded = _loaded_by(f"{_RUN} main(['--version'])")
    assert not loaded & _HEAVY
    assert len(_ours(loaded)) <= 10, sorted(_ours(loaded))


def test_help_loads_nothing_that_reads_traces() -> None:
    """It lists every verb, so each one's module is imported: what they need must come when they run."""
    loaded = _loaded_by(f"{_RUN} main(['--help'])")
    assert not loaded & (_HEAVY - {"numpy"})
    assert not {name for name in loaded if name.startswith(("htagraph.graph", "htagraph.trace", "htagraph.analyses"))}
    assert len(_ours(loaded)) <= 23, sorted(_ours(loaded))


def test_summary_loads_only_the_analyses_that_it_shows() -> None:
    loaded = _loaded_by(
        "import htagraph.cli.jobs, htagraph.graph.load, htagraph.output.summary, htagraph.output.render"
    )
    assert not loaded & {"networkx", "plotly", "graphviz", "scipy", "dask", "fsspec"}
    not_needed = (
        "htagraph.hta", "htagraph.simulate", "htagraph.cluster", "htagraph.trace.profiler_files",
        "htagraph.output.export", "htagraph.output.plot", "htagraph.core.contraction", "htagraph.trace.kineto.scan",
    )  # fmt: skip
    assert not sorted(name for name in loaded if name.startswith(not_needed))
    assert len(_ours(loaded)) <= 240, sorted(_ours(loaded))  # each takes about a millisecond


_RUN = "from contextlib import suppress\nfrom htagraph.cli.main import app as main\nwith suppress(SystemExit):"


def _ours(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.split(".")[0] == "htagraph"}


def test_no_two_classes_share_a_name() -> None:
    """HTA has its own names, such as its two `CallGraph`; they keep them."""
    ours = [path for path in MODULES if not (path.is_relative_to(PACKAGE / "hta") and path.parent.name != "shapes")]
    defined = [
        (node.name, path.name) for path in ours for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)
    ]
    counts = Counter(name for name, _ in defined)
    assert not sorted(each for each in defined if counts[each[0]] > 1), "one word per thing, see docs/GLOSSARY.md"


def test_twelve_names_at_most_lie_at_the_top_of_the_package() -> None:
    beside = {"__init__", "__main__", "trace_analysis", "trace_diff", "memory_analysis"}
    names = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert len(names - beside) <= 12, f"at the top of htagraph/: {sorted(names - beside)}"


# tests mirror the package


def _mirrored(path: Path) -> Path:
    """Return where the tests of a module lie."""
    inner = path.relative_to(PACKAGE)
    return TESTS / inner.parent / f"test_{inner.stem}.py"


def test_a_module_has_a_test_file() -> None:
    of_its_own = [
        path
        for path in with_code()
        if path.stem not in {"__init__", "__main__"}
        and not path.is_relative_to(PACKAGE / "simulate")  # tested as a whole, through its door
        and path.parent != PACKAGE  # HTA's import paths, which hold nothing
    ]
    absent = [
        _mirrored(path).relative_to(REPOSITORY).as_posix() for path in of_its_own if not _mirrored(path).is_file()
    ]
    assert not absent, f"missing: {absent}"


def test_a_test_file_belongs_to_a_module() -> None:
    """A file may also be named after a folder of modules, inside it or beside it."""
    strays = []
    for path in sorted(TESTS.rglob("test_*.py")):
        folder, name = PACKAGE / path.relative_to(TESTS).parent, path.stem.removeprefix("test_")
        known = (folder / f"{name}.py").is_file() or (folder / name).is_dir() or name == folder.name
        if not known and not any(path.is_relative_to(each) for each in _ACROSS) and path.parent != TESTS:
            strays.append(path.relative_to(REPOSITORY).as_posix())
    assert not strays, f"no module of htagraph has these tests: {strays}; laws across modules belong into tests/laws"


_ACROSS = tuple(TESTS / name for name in ("fuzz", "guard", "laws", "published", "simulate"))
"""Tests across modules: damaged files, guarded memory, the whole, published results, the simulator through its door."""


# one change: one file, one row, one test; one verb: one row, one line in the page of commands

_CHANGES = sorted(path.stem for path in (PACKAGE / "whatif" / "changes").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", _CHANGES)
def test_a_change_is_a_function_a_method_and_an_option(name: str) -> None:
    module = importlib.import_module(f"htagraph.whatif.changes.{name}")
    assert callable(getattr(module, name, None)), f"htagraph/whatif/changes/{name}.py lacks a function {name}"
    assert name in module.__all__, f"htagraph/whatif/changes/{name}.py: __all__ lacks {name}"
    assert callable(getattr(hg.Scenario, name, None)), f"Scenario has no method {name}"


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_has_a_line_in_the_page_of_commands(name: str) -> None:
    text, shown = (REFERENCE / "commands.md").read_text(encoding="utf-8"), f"htagraph {name}"
    assert f"\n{shown}" in text, f"docs/reference/commands.md does not show `{shown}`"


# docstrings

_UNITS = re.compile(r"µs|\bns\b|percent|int64|_us\b")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_functions_docstring_is_whole(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    sections = [word for word in ("Args", "Returns", "Yields", "Example") if f"\n{word}:\n" in text]
    assert "Args" in sections, f"{name}: no Args"
    assert {"Returns", "Yields"} & set(sections), f"{name}: no Returns"
    assert "Example" in sections, f"{name}: no Example"
    assert ">>> " in text, f"{name}: the Example has no doctest"


@every_analysis
def test_an_analysis_names_every_column_and_units(name: str) -> None:
    analysis = attrgetter(name)(hg)
    text = inspect.getdoc(analysis) or ""
    result = analysis(graph_of(DATASETS[0]))
    table = table_of(result)
    shows = hg.Outcome.step_times if isinstance(result, hg.Scenario) else getattr(type(result), "to_frame", None)
    text += inspect.getdoc(shows) or ""
    absent = [column for column in table.columns if f"``{column}``" not in text]
    assert not absent, f"{name}: the docstring does not name the columns {absent}"
    assert _UNITS.search(text), f"{name}: the docstring names no unit"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_names_its_arguments(name: str) -> None:
    signature = inspect.signature(PUBLIC[name])
    text = inspect.getdoc(PUBLIC[name]) or ""
    absent = [each for each in signature.parameters if not re.search(rf"^ +\*?\*?{each}: ", text, re.MULTILINE)]
    assert not absent, f"{name}: Args does not name {absent}"
    untyped = [each.name for each in signature.parameters.values() if each.annotation is inspect.Parameter.empty]
    assert not untyped, f"{name}: {untyped} have no type"


# every analysis on every kind of trace


ODD_JOBS: dict[str, Callable[[], DependencyGraph]] = {
    "no events": lambda: load({0: []}),
    "no ranks": lambda: DependencyGraph.from_frames(
        pd.DataFrame({"duration_ns": pd.Series(dtype="int64")}),
        pd.DataFrame({"source": pd.Series(dtype="int64"), "target": pd.Series(dtype="int64")}),
    ),
    "host only": lambda: load([step(1, 0, 30), op("a", 2, 20), op("b", 5, 3)]),
    "one kernel": lambda: load([kernel(COMPUTE, 0, 5)]),
    "an empty kernel": lambda: load([kernel(COMPUTE, 0, 0)]),
    "a rank without events": lambda: load({0: [launch(0, 1, 1), kernel(COMPUTE, 3, 5, 1)], 1: []}),
}
JOBS = [*ODD_JOBS, *(label(path) for path in DATASETS)]


@cache
def _job(name: str) -> DependencyGraph:
    return ODD_JOBS[name]() if name in ODD_JOBS else graph_of(next(path for path in DATASETS if label(path) == name))


@cache
def _usual_job() -> DependencyGraph:
    return load([step(1, 0, 40), launch(0, 1, 1), kernel(COMPUTE, 3, 5, 1), launch(9, 1, 2), kernel(COMPUTE, 20, 5, 2)])


@cache
def _usual_types(name: str) -> dict[Any, Any]:
    """Return the types of an analysis' columns: as declared, else on a job that has some of everything."""
    declared = getattr(importlib.import_module(f"htagraph.analyses.{name}"), "TABLE", None)
    frame = declared.frame() if declared else table_of(attrgetter(name)(hg)(_usual_job()))
    return {column: kind for column, kind in frame.dtypes.items() if not declared or column not in declared.maybe}


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
@every_analysis
def test_an_analysis_gives_its_columns_on_every_kind_of_job(name: str, job: str) -> None:
    table = table_of(attrgetter(name)(hg)(_job(job)))
    assert table.dtypes.to_dict() == _usual_types(name)


@pytest.mark.parametrize("name", [name for name in ANALYSES if "by" in signature(attrgetter(name)(hg)).parameters])
def test_an_unknown_by_is_refused_and_the_nearest_one_named(name: str) -> None:
    analysis = attrgetter(name)(hg)
    known = signature(analysis).parameters["by"].default
    with pytest.raises(ValueError, match=rf"by='{known}e' is not known: choose one of .*'{known}'.*mean '{known}'\?"):
        analysis(load([]), by=f"{known}e")


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_summary_can_be_made_of_every_kind_of_job(job: str) -> None:
    summary = hg.summarize(_job(job))
    assert summary.verdict


def test_the_naming_rules_are_reachable_from_the_package() -> None:
    assert activity_kind("kernel", COMPUTE, hg.DEFAULT_NAMING).label == "computation"


def test_the_tests_that_ci_names_are_there() -> None:
    text = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    absent = [name for name in re.findall(r"tests/[\w/]+\.py", text) if not (REPOSITORY / name).is_file()]
    assert not absent, f".ci/run names {absent}, which are not there"


LONGEST_MODULE = 600
"""Lines that a reader can hold: chosen."""


def test_no_module_is_too_long_to_read() -> None:
    lines = {module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > LONGEST_MODULE} == {}


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _unexplained_constants(path: Path) -> Iterator[str]:
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    for statement, after in zip(statements, [*statements[1:], None], strict=True):
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if value is not None and _is_number(value):
            explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if not explained:
                yield f"{module_name(path)}: {ast.unparse(statement)}"


def test_a_numeric_constant_says_what_it_is_and_why() -> None:
    """Its docstring has the unit and the source: a measurement, a format, a publication, or that it was chosen."""
    assert [text for path in MODULES for text in _unexplained_constants(path)] == []
