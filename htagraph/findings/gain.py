"""The job is shorter by this much if something takes no time: the largest gains, each replayed once more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.core.intervals import group_lengths
from htagraph.core.kernels import is_tuned_kernel
from htagraph.core.kinds import CATEGORIES, ActivityKind, GapKind
from htagraph.core.naming import (
    BETWEEN_OPERATORS,
    is_collective_call,
    is_compiled_region,
    is_data_loader,
    is_dispatch,
    names_that,
)
from htagraph.core.statistics import MOST
from htagraph.findings.bound import BOUND, is_unrecorded, loader_advice
from htagraph.findings.change import Gain, PredictedChange, gain_of, gain_without_interval, likely, usual_us
from htagraph.findings.finding import (
    PREDICTS,
    Bar,
    Chart,
    Claim,
    Evidence,
    Finding,
    Place,
    RestsOn,
    Rows,
    claims_that_are,
    gain_in,
    in_short,
    stretches,
)
from htagraph.findings.interrupted import INTERRUPTED, InterruptedClaim
from htagraph.findings.limits import LARGE_SHARE, LETTERS_IN_SHORT, MAX_LISTED, MIN_PERCENT
from htagraph.findings.phrases import distinct, group_words, time_text
from htagraph.findings.remedy import REMEDY, WAYS_OF_REDUCTIONS, RemedyClaim
from htagraph.findings.results import Results
from htagraph.findings.unmatched import doubts_of
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import only_waiting
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.change_scope import UNTRACED, activities_of
from htagraph.queries.host_time import has_long_pauses
from htagraph.queries.path_segments import Batches
from htagraph.queries.straggler import straggler_of
from htagraph.queries.weights import initial
from htagraph.whatif.candidates import CLASSES, What
from htagraph.whatif.candidates import INTERRUPTIONS as INTERRUPTIONS_ROW
from htagraph.whatif.opportunities import opportunities
from htagraph.whatif.options import criteria
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.scenario import what_if

__all__ = [
    "GAIN",
    "FasterCode",
    "GainClaim",
    "gain_name",
    "gaining",
    "halved_in",
    "is_unknown",
    "proposed",
    "rows_that_gain",
]

_LOADER = "a data loader that keeps up"
"""The change by which a job waits for no batch."""
_HALF: Final = 0.5
"""The part of its time that code twice as fast takes."""
_NUMBER = re.compile(r"\d+")
_WHAT: dict[What, str] = {
    "kernel": "kernel ", "call": "the calls of ", "operator": "operator ", "function": "function ",
    "straggler": "the work of ", "phase": "",
}  # fmt: skip
"""What stands before the name, by what it is the name of."""


@dataclass(frozen=True, kw_only=True)
class GainClaim(Claim):
    """The job is shorter by the figure, µs, if something takes no time."""

    what: What
    """Whose name it is about."""
    target: str
    """The criteria that select it, as an option of the command line has them; empty where none do."""
    half: Gain
    """The gain if it takes half of its time."""
    batches: Batches
    """The batches of a loader with workers."""
    inside: str = ""
    """The name of the larger whole that it is a part of; empty for none."""
    is_loader: bool = False
    """Whether it is the data loader."""
    is_started: bool = False
    """Whether start-up is a part of it."""
    is_unknown: bool = False
    """Whether nothing shows which code ran in that time."""
    has_stacks: bool = False
    """Whether the work of Python between operators is known."""
    is_tuned: bool = False
    """Whether nearly all of it is kernels of a vendor's library in low precision, which no setting makes faster."""
    is_region: bool = False
    """Whether it is a region around the code of operators, which nobody can make faster as a whole."""
    is_interrupted: bool = False
    """Whether something outside of the host's code interrupts it, which the gain counts."""
    is_around: bool = False
    """Whether another of the largest gains is a part of it."""
    is_largest: bool = False
    """Whether no other gain is larger."""
    encloses: bool = False
    """Whether its activities enclose the activities of that larger whole."""
    is_at_limit: bool = False
    """Whether its device needs more than half of its time: it cannot be twice as fast."""
    mostly: str = ""
    """The work inside that is nearly all of its time; empty for none."""
    code: str | None = None
    """The words for the code of the change, where these are not the name; empty where no change is of this time."""


def rows_that_gain(results: Results) -> Iterator[dict[Any, Any]]:
    """Yield the rows of opportunities with a gain that may be claimed, best first."""
    bound = results.bound
    # then most of what an operator takes is no time of its own
    interruptions = claims_that_are(InterruptedClaim, results.claims(INTERRUPTED.when))
    is_interrupted = any(min(each.shares.values()) > 100 * MOST for each in interruptions)
    if results.computes and not bound.cause:  # devices work on what the path passes by, and no replay says what gains
        return
    for row in _worth_naming(results):
        if (is_interrupted and row["what"] != "kernel") or (bound.by_workers and row["name"] != "data loading"):
            continue
        yield row


def is_unknown(results: Results, name: str) -> bool:
    """Return whether a row of opportunities is time of which nothing shows what ran: no Python between operators."""
    if name != BETWEEN_OPERATORS:
        return False
    return has_long_pauses(results.graph) or any(map(is_unrecorded, results.claims(BOUND.when)))


def _when(results: Results) -> list[GainClaim]:
    claims = list[GainClaim]()
    rows = list(rows_that_gain(results))
    code = _code_by_name(results, rows)
    for row in rows:
        claims += [replace(claim, code=code.get(claim.about, "")) for claim in _replayed(results, row)]
        if len(claims) == MAX_LISTED:
            break
    claims = sorted(_folded(results.graph, claims), key=lambda claim: (-claim.figure, in_short(claim.about)))
    around = {claim.inside for claim in claims}
    by_name = {claim.about: claim for claim in claims}
    claims = [
        replace(
            claim,
            is_around=claim.about in around,
            is_largest=claim is claims[0],
            encloses=_encloses(results.graph, claim.about, by_name.get(claim.inside)),
        )
        for claim in claims
    ]
    return [replace(claim, change=None if _has_way(results, claim.about) else proposed(claim)) for claim in claims]


def _has_way(results: Results, name: str) -> bool:
    """Return whether a name is of calls that wait for reductions for which a better way is known."""
    remedies = claims_that_are(RemedyClaim, results.claims(REMEDY.when))
    return is_collective_call(name) and any(claim.about in WAYS_OF_REDUCTIONS for claim in remedies)


def _encloses(graph: DependencyGraph, name: str, other: Claim | None) -> bool:
    """Return whether activities of a name enclose activities that another claim is about, and never the reverse.

    The time of a backward node may be a part of the time of all products, and yet the products run inside the node.
    """
    if other is None:
        return False
    acts = graph.activities
    rows = names_that(lambda each: each == name, graph.names)[acts.name]
    others = names_that(lambda each: each == other.about, graph.names)[acts.name]
    holds = (graph.tree.inside(rows) & others).any()
    return bool(holds and not (graph.tree.inside(others) & rows).any())


def _folded(graph: DependencyGraph, claims: list[GainClaim]) -> list[GainClaim]:
    """Return the claims without work that nearly all lies in a region and is nearly all of it: the region names it."""
    state, time = initial(graph), np.maximum(graph.own_time, graph.activities.duration * graph.activities.on_device)
    regions, work = ([each for each in claims if each.what == what] for what in ("phase", "operator"))
    cover = {
        each.about: time * activities_of(state, criteria(each.target))[:-1]
        for each in regions + work if each.target
    }  # fmt: skip
    part = {
        each.about: outer.about for outer in regions for each in work
        if {each.about, outer.about} <= cover.keys() and each.figure >= LIMITS.nearly_all * outer.figure
        and np.minimum(cover[each.about], cover[outer.about]).sum() >= LIMITS.nearly_all * cover[each.about].sum()
    }  # fmt: skip
    inner = {outer: about for about, outer in part.items()}
    kept = [each for each in claims if each.about not in part]
    return [replace(each, mostly=inner.get(each.about, "")) for each in kept]


def _worth_naming(results: Results) -> list[dict[Any, Any]]:
    """Return the rows that say what to change: no class of work, nothing around the whole job, the inner of two."""
    table = results.opportunities
    rows = [_of_usual_steps(results, row) for row in table.to_dict("records")]
    # nobody can free a rank
    rows = [row for row in rows if row["gain_percent"] >= MIN_PERCENT and row["what"] != "rank"]
    rows = [row for row in rows if row["name"] != INTERRUPTIONS_ROW]  # a finding of its own
    rows = [row for row in rows if not is_dispatch(str(row["name"]))]  # no code has that name
    rows = [row for row in rows if row.get("at_most_us", 0.0) < MOST * row["gain_us"]]  # else not known
    rows = [
        row for row in rows if row["what"] != "function" or not row["target"] or not _only_waits(results.graph, row)
    ]
    unknown = any(map(is_unrecorded, results.claims(BOUND.when)))
    rows = [row for row in rows if not unknown or row["gain_percent"] >= 100 * LARGE_SHARE]  # who knows what waits
    rows = [row for row in rows if row["what"] != "phase" or not _wraps(results, row)]
    known = [row for row in rows if row["name"] not in CLASSES]
    rows = known or [row for row in rows if row["gain_percent"] < 100 * LIMITS.nearly_all]  # all of the job is no news
    inner: dict[str, float] = {}
    for row in rows:
        inner[row["inside"]] = max(inner.get(row["inside"], 0.0), row["gain_us"])
    return [row for row in rows if inner.get(row["name"], 0.0) < LIMITS.nearly_all * row["gain_us"]]


def _only_waits(graph: DependencyGraph, row: Mapping[Any, Any]) -> bool:
    """Return whether nearly all time of a Python function is in frames that wait for another thread or process."""
    acts, rows = graph.activities, activities_of(initial(graph), criteria(row["target"]))[:-1]
    return bool(acts.duration[rows & only_waiting(graph)].sum() >= LIMITS.nearly_all * acts.duration[rows].sum())


def _of_usual_steps(results: Results, row: dict[Any, Any]) -> dict[Any, Any]:
    """Return a row whose gain is that per step; ``whole_us`` is the gain of the whole recording."""
    gain = row["gain_per_step_us"] * results.steps if results.steps > 1 else row["gain_us"]
    return row | {"whole_us": row["gain_us"], "gain_us": gain, "gain_percent": 100_000 * gain / results.makespan_ns}


def _wraps(results: Results, row: Mapping[Any, Any]) -> bool:
    """Return whether a row is an annotation that encloses nearly all of the recording, or numbers its parts."""
    graph = results.graph
    acts, plain = graph.activities, _NUMBER.sub("", str(row["name"]))
    alike = names_that(lambda other: _NUMBER.sub("", other) == plain, graph.names)[acts.name]
    rows = np.flatnonzero(alike & (acts.kind == ActivityKind.ANNOTATION) & ~acts.on_device)
    rank = acts.rank[rows].astype(np.int64)
    once = len(np.unique(rank * len(graph.names) + acts.name[rows])) == len(rows)
    if len(rows) and (row["gain_percent"] >= 100 * LIMITS.nearly_all or (once and len(rows) > len(np.unique(rank)))):
        return True
    covered = group_lengths(acts.start[rows], acts.start[rows] + acts.duration[rows], rank, max(graph.ranks) + 1)
    spans = results.inputs[["rank", "span_us"]].itertuples(index=False)
    return any(covered[rank] >= 1000 * LIMITS.nearly_all * span > 0 for rank, span in spans)


def _replayed(results: Results, row: Mapping[Any, Any]) -> list[GainClaim]:
    """Return the claim of a row if a what-if of its target gains the same; without a target, as the row says it."""
    graph = results.graph
    name = str(row["name"])
    gain = gain_without_interval(float(row["gain_us"]), results.whole)
    half_us = float(row.get("gain_at_50_us", 0.0)) * gain.value_us / row["whole_us"]
    half = gain_without_interval(half_us, results.whole)
    if results.usual and row["target"]:  # what few steps do is no gain of a usual one, whatever it moves there
        steps = graph.activities.step[activities_of(initial(graph), criteria(row["target"]))[:-1]]
        if len(steps) and np.isin(results.usual, steps).mean() <= MOST:
            return []
    if row["target"] or row["what"] == "straggler":
        outcome = _outcome(results.warm_graph, row, 0.0)
        if abs(outcome.saved_ns - 1000 * row["whole_us"]) > 1:
            return []
        gain = gain_of(outcome, results.whole)
        most_us = max(gain.value_us, min(gain.high_us, row["time_us"]))  # nothing saves more than its own time
        gain = replace(gain, high_us=most_us)
        if row["target"]:
            half = gain_of(_outcome(results.warm_graph, row, 0.5), results.whole)
    if gain.percent < MIN_PERCENT:
        return []
    rests = {RestsOn.CLOCKS, RestsOn.MATCHES} if row["what"] in ("straggler", "group") else set()
    claim = GainClaim(
        "gain",
        name,
        gain.value_us,
        "us",
        (gain.low_us, gain.high_us),
        rests_on=doubts_of(results) & rests,
        gain=gain,
        ranks=_ranks_of(results, row["what"]),
        what=row["what"],
        target=row["target"],
        half=half,
        batches=results.bound.batches,
        inside=row["inside"],
        is_loader=bool(row["name"] == "data loading"),
        is_started=_has_start_up(results, row),
        is_unknown=is_unknown(results, name),
        is_tuned=_is_tuned(results, row),
        is_region=_is_region(graph, row),
        is_at_limit=_least_share(results, row) > _HALF,
        has_stacks=_has_stacks(results),
        is_interrupted=bool(results.claims(INTERRUPTED.when)),
    )
    return [claim]


def _has_stacks(results: Results) -> bool:
    """Return whether the work of Python between operators is known: by its functions, or by a loop of operators."""
    has_frames = bool((results.graph.activities.kind == ActivityKind.PYTHON).any())
    remedies = claims_that_are(RemedyClaim, results.claims(REMEDY.when))
    return has_frames or any(claim.about == "loops" for claim in remedies)


def _ranks_of(results: Results, what: What) -> tuple[int, ...]:
    """Return the straggler, where a gain is that of its work; no rank for every other gain."""
    if what != "straggler":
        return ()
    rank = straggler_of(results.warm_graph)[0]
    return () if rank is None else (rank,)


def _is_tuned(results: Results, row: Mapping[Any, Any]) -> bool:
    """Return whether the time of a row is nearly all in tuned kernels, where devices bound the job."""
    graph = results.graph
    if not row["target"] or row["what"] not in ("kernel", "operator"):
        return False
    if row["what"] == "operator" and results.bound.cause != "computation":
        return False
    acts = graph.activities
    works = activities_of(initial(graph), criteria(row["target"]))[:-1] & acts.on_device
    is_tuned = names_that(is_tuned_kernel, graph.names)[acts.name] & works
    return bool(acts.duration[is_tuned].sum() >= LIMITS.nearly_all * max(1, acts.duration[works].sum()))


def _least_share(results: Results, row: Mapping[Any, Any]) -> float:
    """Return the share of the time of a row that no code can be faster than, where devices bound the job; else 0."""
    is_on_device = row["what"] in ("kernel", "operator") and results.bound.cause == "computation"
    if not is_on_device or not row["target"]:
        return 0.0
    # loaded here, for a summary of a job that devices do not bound starts sooner without
    from htagraph.findings.least_time import least_share

    chosen = activities_of(initial(results.graph), criteria(row["target"]))[:-1]
    return least_share(results.graph, chosen)


def _outcome(graph: DependencyGraph, row: Mapping[Any, Any], factor: float) -> Outcome:
    """Return what happens if the target of a row takes a part of its time, or the straggler is as fast as its peers."""
    scenario = what_if(graph)
    scale = (
        partial(scenario.scale, factor=factor, **criteria(row["target"])) if row["target"] else scenario.fix_straggler
    )
    return scale().run()


def _has_start_up(results: Results, row: Mapping[Any, Any]) -> bool:
    """Return whether the target of a row has start-up on the path: a change of the target makes start-up shorter."""
    calls = np.array([*results.first_calls], np.int64)
    if results.steps > 1 or not row["target"] or not len(calls):
        return False
    return bool(activities_of(initial(results.graph), criteria(row["target"]))[calls].any())


def gain_name(claim: GainClaim, beside: Sequence[str] = ()) -> str:
    """Return the subject of a gain in words, unlike names `beside` it."""
    if claim.is_unknown:
        return "time without any event"
    return _named(claim.what, claim.about, beside)


def _named(what: What, name: str, beside: Sequence[str] = ()) -> str:
    """Return a name behind the word for its kind, unless it says the kind, as names of phases and ranks do."""
    if what == "group":
        group = group_words(name)  # of communication whose group is not known, a kernel's name
        return f"transfers of {in_short(group) if group == name else group}"
    return f"{_WHAT[what]}{in_short(name, beside)}"


def _short(*claims: GainClaim) -> str:
    """Return the gains as a sentence, each with the named whole of which it is a part."""
    parts = []
    wholes = [each.about for each in claims]
    names = distinct([gain_name(each, wholes) for each in claims], wholes, LETTERS_IN_SHORT)
    whole = {claim.about: name for claim, name in zip(claims, names, strict=True)}
    for claim, name in zip(claims, names, strict=True):
        name_around = whole.get(claim.inside, "")
        how = "nearly all of it in" if claim.encloses else "part of"
        part = f"; {how} {name_around}" if name_around else ""
        gain = gain_in(claim)
        saved = f"{time_text(gain.per_step_us)} ({gain.percent:.0f} %{likely(gain)}{part})"
        mostly = f", nearly all in {in_short(claim.mostly)}" if claim.mostly else ""
        parts.append(f"{name}, {saved}{mostly}")
    each = " per step" if gain_in(claims[0]).scope == "step" else ""
    inside = " (interruptions inside it counted)" if claims[0].is_interrupted else ""
    most = "Other gains" if claims[0].is_beside else "Most you could win"
    return f"{most}{each}, each alone{inside}: {'; '.join(parts)}."


def _evidence(results: Results, *claims: GainClaim) -> Evidence:
    steps = max(gain_in(claims[0]).steps, 1)
    places = [_most_critical(results, claim) for claim in claims]
    ends = [claim.interval or (claim.figure, claim.figure) for claim in claims]
    bars = [
        Bar(gain_name(claim), claim.figure / steps, (low / steps, high / steps) if high > low else None, place)
        for claim, (low, high), place in zip(claims, ends, places, strict=True)
    ]
    chart = Chart(f"How much shorter {'a step' if steps > 1 else 'the job'} would be", bars, "less")
    frame = pd.DataFrame({
        "what": [gain_name(claim) for claim in claims], "gain_us": [claim.figure / steps for claim in claims],
        "low_us": [low / steps for low, _ in ends], "high_us": [high / steps for _, high in ends],
        "half_us": [claim.half.value_us / steps for claim in claims],
    })  # fmt: skip
    headings = {"low_us": "at least_us", "high_us": "at most_us", "half_us": "with half its time_us"}
    first = next((at for at, claim in enumerate(claims) if claim.change and claim.target), None)
    return Evidence(
        chart, Rows(frame, f"What each saves{' per step' if steps > 1 else ''}", places, headings),
        place=None if first is None else places[first],
        look="" if first is None else f"{gain_name(claims[first])} on the critical path",
        meaning=opportunities,
    )  # fmt: skip


def _most_critical(results: Results, claim: GainClaim) -> Place | None:
    """Return where what a claim is about is on the critical path longest; None for nowhere."""
    if not claim.target:
        return None
    parts = results.path.segments
    which = criteria(claim.target)
    if which.get("kind") in (UNTRACED, [UNTRACED]):  # no activity, but the pauses between some
        return stretches(results, parts.gap == GapKind.HOST_UNTRACED).first
    try:
        chosen = results.graph.select(**which).activities
    except SelectionError:  # of what no activity is
        return None
    time = np.bincount(parts.activity, parts.length, len(results.graph.activities))[chosen]
    return Place(int(chosen[time.argmax()])) if len(chosen) and time.max() > 0 else None


def proposed(claim: GainClaim) -> PredictedChange | None:
    """Half the time of a name, a loader that keeps up, or a straggler as fast as its peers: no code takes no time."""
    if _is_no_code(claim):
        return None
    if claim.what == "straggler":
        (rank,) = claim.ranks
        return PredictedChange(f"rank {rank} as fast as its peers", ("--fix-straggler", "auto"), gain_in(claim))
    if not claim.target:
        return None
    if claim.is_loader:
        return PredictedChange(_LOADER, ("--free-dataloader",), gain_in(claim))
    code = claim.code or gain_name(claim)
    return PredictedChange(f"half the time of {code}", ("--scale", f"{claim.target}:0.5"), claim.half)


def _is_no_code(claim: GainClaim) -> bool:
    """Return whether a claim is of time that no code makes shorter, or that another row of the list is about."""
    if claim.is_started or claim.is_unknown or claim.is_around:  # nobody can halve first calls, or the unknown
        return True
    if claim.is_region or claim.is_at_limit or _is_without_rows(claim.about, has_stacks=claim.has_stacks):
        return True
    return claim.code == ""  # transfers, which another row of the list is about


def halved_in(claim: GainClaim) -> str:
    """Return the subject of a claim that proposes half the time of it; empty for claims of other changes."""
    is_other = claim.change is None or claim.is_loader or claim.what == "straggler"
    return "" if is_other else claim.code or gain_name(claim)


def _is_without_rows(name: str, *, has_stacks: bool) -> bool:
    """Return whether a name is of time between operators of which no row of Python tells what ran: no code to halve."""
    return name == BETWEEN_OPERATORS and not has_stacks


class FasterCode(NamedTuple):
    """A change of code that gains."""

    change: PredictedChange
    action: str
    """The advice; empty where no way is known."""
    is_tuned: bool
    """Whether the code is of a vendor's library in low precision."""
    subject: str = ""
    """The code that would have to be written twice as fast; empty for other changes."""


def gaining(results: Results) -> Iterator[FasterCode]:
    """Yield the changes of `rows_that_gain`: a loader that keeps up, and code that is faster.

    Regions around operators are left out: nobody can free a whole region. Calls of collectives are left out where a
    better way to reduce gradients is known. Gains are as in `htagraph.opportunities`,
    without an interval.
    """
    if PREDICTS & results.graph.ledger.lacks:
        return
    has_stacks = _has_stacks(results)
    rows = list(rows_that_gain(results))
    code = _code_by_name(results, rows)
    for row in rows:
        name = str(row["name"])
        if _is_region(results.graph, row) or not row["target"] or is_unknown(results, name):
            continue
        if _has_way(results, name) or _is_without_rows(name, has_stacks=has_stacks):
            continue
        is_loader = name == "data loading"
        stays = _HALF if is_loader else max(_HALF, _least_share(results, row))
        if stays > _HALF:
            whole_us = usual_us(_outcome(results.warm_graph, row, stays))
        else:
            whole_us = row["gain_us"] if is_loader else row["gain_at_50_us"] * row["gain_us"] / row["whole_us"]
        gain = gain_without_interval(whole_us, results.whole)
        if gain.percent < MIN_PERCENT:
            continue
        if is_loader:
            change = PredictedChange(_LOADER, ("--free-dataloader",), gain)
            yield FasterCode(change, loader_advice(results.bound.batches), is_tuned=False)
        elif name in code:
            words = code[name]
            title = f"{words} at the limit of the device" if stays > _HALF else f"half the time of {words}"
            change = PredictedChange(title, ("--scale", f"{row['target']}:{stays:.4g}"), gain)
            yield FasterCode(change, "", _is_tuned(results, row), words)


def _code_by_name(results: Results, rows: Sequence[Mapping[Any, Any]]) -> dict[str, str]:
    """Return the words for the code of each row, by its name; no two names have the same words.

    An operator whose time is mostly transfers is no code: the process group names this time, where that is a row.
    """
    wholes = [str(row["name"]) for row in rows]
    has_group = any(row["what"] == "group" for row in rows)
    words = dict[str, str]()
    for row, name in zip(rows, wholes, strict=True):
        is_transfers = row["what"] == "operator" and _is_mostly_transfers(results, str(row["target"]))
        if is_transfers and has_group:
            continue
        within = "transfers in " if is_transfers else ""
        words[name] = f"{within}{_named(row['what'], name, wholes)}"
    kept = list(words)
    apart = distinct(list(words.values()), kept, LETTERS_IN_SHORT)
    return dict(zip(kept, apart, strict=True))


def _is_mostly_transfers(results: Results, target: str) -> bool:
    """Return whether most time of the critical path in the work of a target is transfers between ranks."""
    segments = results.path.segments
    chosen = activities_of(initial(results.graph), criteria(target))[:-1] if target else None
    if chosen is None:
        return False
    length = segments.length * chosen[segments.activity]
    transfers = length[segments.category == CATEGORIES.index("communication")]
    return bool(transfers.sum() > MOST * length.sum())


def _is_region(graph: DependencyGraph, row: Mapping[Any, Any]) -> bool:
    """Return whether a row is a region around the code of operators: a phase, or code of torch.compile."""
    name = str(row["name"])
    if row["what"] == "operator":
        return is_compiled_region(name)
    return row["what"] == "phase" and _is_around_others(graph, name)


def _is_around_others(graph: DependencyGraph, name: str) -> bool:
    """Return whether a name is of regions, other than of a data loader, whose time is mostly not their own code."""
    acts = graph.activities
    regions = names_that(lambda other: other == name and not is_data_loader(other), graph.names)[acts.name]
    regions &= (acts.kind == ActivityKind.ANNOTATION) & ~acts.on_device
    return bool(graph.own_time[regions].sum() < MOST * acts.duration[regions].sum())


def _advice(*claims: GainClaim) -> str:
    """Return what to change, or what to record to see it; of what contains another gain, that one says it."""
    named = next((each for each in claims if each.target and not each.is_around), None)
    if named is None:
        return ""
    is_seen = named.has_stacks or named.is_unknown
    if named.about == BETWEEN_OPERATORS and named.is_largest and not is_seen:
        return named.recorder.to_see("modules", "what Python does between operators")
    return loader_advice(named.batches) if named.is_loader else ""


GAIN = Finding(
    "gain",
    needs=PREDICTS,
    when=_when,
    short=_short,
    evidence=_evidence,
    is_list=True,
    advice=_advice,
)
