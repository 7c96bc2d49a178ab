"""Which activities, or which untraced host time, a change is about; and the error where there are none.

Untraced time is the Python between the activities of a thread, which no event covers where no stacks were recorded.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import distinct, marked
from htagraph.core.errors import NothingMeetsError, SelectionError, nearest_words
from htagraph.core.kinds import ANNOTATIONS, OPERATORS, ActivityKind, of_kinds
from htagraph.graph.measures.own_time import untraced_edges
from htagraph.graph.selection import Criteria, Mask, Selection, mask_of, named_activities
from htagraph.graph.tree import asked_at, asked_by, inside

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.weights import State

__all__ = ["REGIONS", "UNTRACED", "activities_of", "asked_at", "asked_by", "kinds_of", "no_match", "untraced_gaps"]

REGIONS = (*ANNOTATIONS, ActivityKind.PYTHON)
"""Kinds whose name stands for all that is inside."""
_WAITS_OF_PATHS = frozenset({"data_loading", "outside", "waiting", "gap", "head"})
"""Categories of critical paths (`queries.path_segments.CATEGORIES`) that are no work of activities."""
_LEFT_OUT_BY = {
    "data_loading": "; free_dataloader (--free-dataloader) leaves it out",
    "outside": "; free_outside (--free-outside) leaves it out",
}
"""The change that leaves out all waits of a category."""
UNTRACED = "untraced"
"""The word for this time where changes take a kind of activity."""
_CRITERIA = ("after", "before", "op", "rank", "step", "min_us", "max_us")


def kinds_of(criteria: dict[str, Any]) -> set[str]:
    """Return the words that the criterion `kind` has; none if it is not given."""
    kind = criteria.get("kind")
    return {kind} if isinstance(kind, str) else set(kind or ())


def activities_of(state: State, criteria: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Return which activities a change is about; one entry more than there are, always False, for owner -1.

    A name of annotations, steps or Python frames stands for all that lies inside them too, device work launched there
    included: a region has no other time of its own. A name of operators stands for their self time, with the Python
    frames in them that are in no inner operator. What lies inside ``op`` counts, and so does that operator itself, and
    the communication on other host threads that an operator inside asked for.
    Untraced time has no activities.

    Raises:
        NothingMeetsError: nothing meets the criteria; the error names looser criteria that match.
        SelectionError: an unknown criterion, or a value that the criterion does not accept.
    """
    graph = state.graph
    kinds = kinds_of(criteria)
    chosen = np.zeros(len(graph.activities) + 1, np.bool_)
    if kinds == {UNTRACED}:
        return chosen
    _refuse_parts_of_paths(criteria)
    meeting = _meeting(graph, criteria)
    if not meeting.any():
        raise no_match(graph, criteria)
    chosen[:-1] = meeting
    if criteria.get("name") is not None or criteria.get("regex") is not None:
        further = _inside_regions(graph, meeting, kinds) | _frames_of_operators(graph, meeting)
        if further.any():
            unnamed = {key: value for key, value in criteria.items() if key not in {"name", "regex", "kind"}}
            chosen[:-1] |= further & _meeting(graph, unnamed)
    return chosen


def no_match(graph: DependencyGraph, criteria: dict[str, Any]) -> NothingMeetsError:
    """Return the error for criteria that no activity meets, with similar names and looser criteria that would match."""
    if not len(graph.activities):
        return NothingMeetsError("this graph has no activities, so nothing matches")
    given = {key: value for key, value in criteria.items() if value is not None}
    where = " on the host" if given.get("kind") == "host" and len(given) > 1 else ""  # often no word of the user's
    text = ", ".join(f"{key}={value!r}" for key, value in given.items() if not where or key != "kind") or "no criteria"
    globs = [key for key in ("name", "op", "regex") if isinstance(given.get(key), str)]
    looser = graph.select(**{key: value for key, value in given.items() if key not in globs})
    hints = []
    for key in globs:
        known = np.unique(graph.activities.name[looser.activities if key != "op" else slice(None)])
        near = _similar(str(given[key]), [graph.names[name] for name in known])
        if near:
            hints.append(f"names like that: {', '.join(repr(_short(name)) for name in near)}")
    without = graph.select(**{key: value for key, value in given.items() if key in globs})
    if len(without) and len(globs) < len(given):
        kinds = sorted({ActivityKind(code).label for code in np.unique(graph.activities.kind[without.activities])})
        hints.append(f"without {', '.join(key for key in given if key not in globs)} it would match {', '.join(kinds)}")
    if "category" in given:
        categories = {graph.names[name] for name in np.unique(graph.activities.category).tolist()}
        hints.append(f"the categories are {', '.join(sorted(categories - {''}))}")
    elif not hints and globs:
        names, count = np.unique(graph.activities.name[graph.activities.kind == ActivityKind.OP], return_counts=True)
        often = ", ".join(repr(_short(graph.names[name])) for name in names[np.argsort(-count, kind="stable")][:5])
        hints.append(f"the most frequent operators are {often or 'none'}")
    elif not hints:
        kinds = sorted({ActivityKind(code).label for code in np.unique(graph.activities.kind)})
        hints.append(f"the graph has the kinds {', '.join(kinds)}")
    return NothingMeetsError(f"nothing{where} matches {text}; {'; '.join(hints)}")


def untraced_gaps(graph: DependencyGraph, criteria: dict[str, Any]) -> npt.NDArray[np.int64]:
    """Return the vertices before which a thread spends time that no event covers.

    This is the Python between operators where no stacks were recorded; with stacks, the frames have the time. Waits for
    the data loader, and pauses of worker threads, are not part of it.

    Args:
        graph: the job.
        criteria: ``after`` and ``before`` (globs of the activities on the thread right before and right after the gap),
            ``op`` (glob of an annotation, step or other activity that encloses it), ``rank``, ``step``, ``min_us`` and
            ``max_us`` (length of the gap). None leaves a criterion out.

    Raises:
        NothingMeetsError: no gap meets the criteria.
        SelectionError: an unknown criterion.

    Example:
        >>> import htagraph as hg
        >>> len(untraced_gaps(hg.load("data/demo"), {"rank": 0, "min_us": 10}))
        9
    """
    given = {key: value for key, value in criteria.items() if value is not None}
    for key in given:
        if key not in _CRITERIA:
            near = nearest_words(key, _CRITERIA)
            msg = f"{key!r} is no criterion of untraced time: choose from {', '.join(_CRITERIA)}{near}"
            raise SelectionError(msg)
    edges = graph.edges
    between = untraced_edges(graph)
    source, target = edges.source[between] >> 1, edges.target[between]
    after, before = (_name_mask(graph, given.pop(key, None)) for key in ("after", "before"))
    fits = after[source] & before[target >> 1] & _around(graph, target, given)
    length = graph.gap[target] / 1000
    fits &= (length >= given.get("min_us", 0)) & (length <= given.get("max_us", np.inf))
    if not fits.any():
        raise NothingMeetsError(_nothing(graph, target, criteria))
    return distinct(target[fits], graph.vertex_count)


def _refuse_parts_of_paths(criteria: dict[str, Any]) -> None:
    """Refuse what a critical path calls its waits and pauses where activities are selected."""
    for key, words in (("kind", kinds_of(criteria)), ("category", {criteria.get("category")})):
        for word in words & _WAITS_OF_PATHS:
            instead = _LEFT_OUT_BY.get(str(word), "")
            msg = f"{key}={word!r}: no activity has it, as it is what critical paths call a wait{instead}"
            raise SelectionError(msg)


def _inside_regions(graph: DependencyGraph, named: Mask, kinds: set[str]) -> Mask:
    """Return what is inside the named regions; nothing where a kind of work is asked for."""
    if not kinds <= {each.label for each in REGIONS}:
        return np.zeros(len(named), np.bool_)
    regions = named & of_kinds(graph.activities.kind, REGIONS)
    return inside(graph, regions) if regions.any() else regions


def _frames_of_operators(graph: DependencyGraph, named: Mask) -> Mask:
    """Return the Python frames whose innermost operator or annotation is one of the named operators."""
    kind = graph.activities.kind
    operators, python = named & of_kinds(kind, OPERATORS), kind == ActivityKind.PYTHON
    chosen = np.zeros(len(kind), np.bool_)
    if not operators.any() or not python.any():
        return chosen
    frames = np.flatnonzero(python & graph.tree.inside(operators))
    caller = graph.tree.nearest(~python, frames)
    chosen[frames[operators[caller]]] = True
    return chosen


def _meeting(graph: DependencyGraph, criteria: dict[str, Any]) -> Mask:
    """Return which activities meet some criteria, an operator as lying inside itself."""
    op = criteria.get("op")
    if op is None:
        return mask_of(graph, cast("Criteria", criteria))
    operators = named_activities(graph, op)
    meeting = operators | inside(graph, operators)
    further = {key: value for key, value in criteria.items() if key != "op" and value is not None}
    return meeting & mask_of(graph, cast("Criteria", further)) if further else meeting


def _short(name: str) -> str:
    return name if len(name) <= 100 else f"{name[:99]}…"  # names of C++ kernels have thousands of letters


def _similar(glob: str, names: list[str]) -> list[str]:
    """Return names that resemble a glob: names that contain its text, or else names with similar words."""
    text = "".join(letter for letter in glob if letter not in "*?[]").lower()
    if not text:
        return []
    within = [name for name in names if text in name.lower()]
    if within:
        return within[:5]
    by_word: dict[str, list[str]] = {}
    for name in sorted(names, key=len)[:2000]:  # difflib is slow
        short = name.lower()[:100]
        for word in {short, *re.split(r"[^a-z]+", short)}:
            by_word.setdefault(word, []).append(name)
    near = [name for word in difflib.get_close_matches(text, by_word, n=5) for name in by_word[word]]
    return list(dict.fromkeys(near))[:5]


def _name_mask(graph: DependencyGraph, glob: str | Selection | None) -> Mask:
    """Return which activities have a name that matches, all if no glob is given."""
    if glob is None:
        return np.ones(len(graph.activities), np.bool_)
    return named_activities(graph, glob)


def _around(graph: DependencyGraph, target: npt.NDArray[Any], given: dict[str, Any]) -> Mask:
    """Return which gaps are in an operator or annotation, on a rank, in a step."""
    acts = graph.activities
    at = target >> 1
    region = np.where(target % 2, at, graph.tree.parent[at])
    fits = np.ones(len(target), np.bool_)
    if "op" in given:
        enclosing = np.append(_name_mask(graph, given["op"]), False)
        enclosing[:-1] |= graph.tree.inside(enclosing[:-1])
        fits &= enclosing[region]
    criteria = {key: given[key] for key in ("rank", "step") if key in given}
    allowed = marked(graph.select(**criteria).activities, len(acts))
    return fits & allowed[at]


def _nothing(graph: DependencyGraph, target: npt.NDArray[Any], criteria: dict[str, Any]) -> str:
    text = ", ".join(f"{key}={value!r}" for key, value in criteria.items() if value is not None) or "no criteria"
    if not len(target):
        frames = bool((graph.activities.kind == ActivityKind.PYTHON).any())
        hint = "; Python stacks were recorded: kind='python' has that time" if frames else ""
        return f"this graph has no untraced host time{hint}"
    longest = int(target[np.argmax(graph.gap[target])])
    name = graph.names[graph.activities.name[longest >> 1]]
    return (
        f"no untraced host time meets {text}; the longest gap is {graph.gap[longest] / 1000:,.0f} µs, before {name!r}"
    )
