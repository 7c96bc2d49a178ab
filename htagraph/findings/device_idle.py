"""Devices are idle for one cause: a late launch, pauses between kernels, or other waits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias, TypedDict, cast

import numpy as np
import pandas as pd

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.core.arrays import Array
from htagraph.core.intervals import clip, union
from htagraph.core.intervals import length as length_of
from htagraph.core.kinds import GapKind
from htagraph.core.naming import is_compiled_region, is_graph_launch, names_that, short_name
from htagraph.core.statistics import MOST
from htagraph.findings.bound import BOUND, LOADER_ADVICE, BoundClaim
from htagraph.findings.change import Gain, PredictedChange, gain_of, scenario_of
from htagraph.findings.finding import (
    JUDGES,
    NO_CHART,
    BarPart,
    Chart,
    Claim,
    Evidence,
    Finding,
    Place,
    Rows,
    claims_that_are,
    in_short,
)
from htagraph.findings.limits import LARGE_SHARE, MIN_SHARE, MOST_ROWS, SHORT_LIST
from htagraph.findings.phrases import Advice, and_list, plural, share_text, spoken, steps_text, time_text
from htagraph.findings.preconditions import ARE_MANY, HAS_GRAPHS, HAS_ROOM, IS_CAPTURABLE, IS_NOT_REPLAYED, checks_of
from htagraph.findings.reach import NODE_US
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.results import Results
from htagraph.findings.waiting import are_waits_known
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.earlier_work import ends_of_earlier_work
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.own_time import upper_bounds
from htagraph.graph.measures.pauses import CAUSES, IdleCause
from htagraph.graph.measures.waits import waiting_devices
from htagraph.queries.host_time import MANY, LateLaunches, LateReason, late_launches, late_reason, while_loading

__all__ = ["DEVICE_IDLE", "DeviceIdleClaim", "DeviceUse", "device_use", "idle_chart", "idle_times"]

HostReason: TypeAlias = Literal[LateReason, "some", "graphs", "nothing", ""]
"""Why the host is late: one of `LATE_REASONS`, of launches each or some; it launches CUDA graphs, or nothing. Empty
where the device does not wait for the host."""

_TEXT: dict[IdleCause | Literal["other_work"], str] = {
    "kernel_wait": "{where}, {who} pause{s} {share} of the time{at} between {many}kernels.",
    "other": (
        "{where}, {who} {are} idle {share} of the time{at}, but not for a late launch: work waited for an event, a "
        "stream or a rank, or its launch was not recorded."
    ),
    "other_work": (
        "{where}, {who} {are} idle {share} of the time{at}, mostly while launched work waited: work that this "
        "recording does not show, of another process or an unrecorded stream, probably had the device (check "
        "nvidia-smi)."
    ),
}
_FUSED = "Fuse the kernels{{compile}}{replays}."
_OR_REPLAY = ", or replay them as a CUDA graph"
_FEWER = "fewer operators{compile}"
_LARGER = "larger batches"
_GRAPHS = "CUDA graphs"
_MORE_GRAPHS = "CUDA graphs for more of a step"
"""The same advice for a job that replays some."""


class _LateHost(NamedTuple):
    """Why the host is late, in words."""

    does: str = ""
    """The verb with its object; empty where `note` says why."""
    note: str = ""
    """The words behind a colon."""
    advice: str = ""


_HOST: dict[HostReason, _LateHost] = {
    "loader": _LateHost("waits for the data loader", advice=LOADER_ADVICE),
    "source": _LateHost(
        "waits for another process or thread", advice="Make what it waits for faster, or run more of them."
    ),
    "ranks": _LateHost("waits for other ranks or transfers"),
    "pauses": _LateHost(
        note="a few long pauses of the host, not many launches",
        advice="See what the host does in them (htagraph idle).",
    ),
    "graphs": _LateHost(
        "launches CUDA graphs, each too late",
        advice="Launch graphs with fewer kernels, or earlier: a launch takes longer, the more kernels its graph has.",
    ),
    "nothing": _LateHost(note="nothing is launched then"),
    "few": _LateHost("launches little work, each piece late"),
    "launches": _LateHost(
        "launches many small pieces of work, each too late",
        advice="Use {ways}.",
    ),
    "some": _LateHost("launches some pieces of work too late", advice="Use {ways}."),
}
"""Why the host is late, and the advice, by the reason."""
_OF_LAUNCHES = ("launches", "some")
"""The reasons by which late launches cost time."""
_COMMANDS: dict[HostReason, tuple[str, ...]] = {
    "ranks": ("collectives",), "graphs": ("launches",), "loader": ("what-if", "--free-dataloader"),
    "source": ("what-if", "--free-outside"),
}  # fmt: skip
"""What to run where devices wait for the host, by why it is late."""
_CAUSES: dict[IdleCause, tuple[str, str]] = {
    "host_wait": ("host wait", "host"),
    "kernel_wait": ("kernel wait", "waiting"),
    "other": ("other", "other"),
}
"""Causes of idle time in words, and their colors."""


class LoadingTime(NamedTuple):
    """A device waits while the host loads data."""

    us: float
    """All waits together, µs."""
    waits: int


class _Preconditions(TypedDict):
    """The fields of a claim that say which advice a person can follow."""

    can_replay: bool
    checks: tuple[str, ...]
    is_many: bool
    has_room: bool


@dataclass(frozen=True, kw_only=True)
class DeviceIdleClaim(Claim):
    """Devices are idle for one cause; the figure is that share of their time, percent."""

    about: IdleCause = field(kw_only=False)
    """The cause."""
    scope: str
    """The part of the job that the claim is about, as the start of a sentence."""
    rank: int
    """The rank whose device is idle for the largest share."""
    rank_percent: float
    """That share of the time of its device, percent."""
    has_several_devices: bool = False
    """Whether several devices do work."""
    host: HostReason = ""
    """Why the host is late, where devices wait for the host."""
    late: LateLaunches | None = None
    """How many launches come late; None where devices do not wait for the host."""
    late_places: tuple[str, ...] = ()
    """The places of the host that most of that time passes in, where not each launch is late."""
    is_compiled: bool = False
    """Whether the job uses torch.compile."""
    is_recorded: bool = True
    """Whether what the host does was recorded."""
    can_replay: bool = True
    """Whether the device replays CUDA graphs, as far as known."""
    is_many: bool = True
    """Whether many pauses are that idle time."""
    has_room: bool = True
    """Whether the memory of devices has room for larger batches, as far as known."""
    checks: tuple[str, ...] = ()
    """Sentences on facts to check before the advice is followed."""
    has_replays: bool = False
    """Whether the job replays CUDA graphs."""
    behind_other_work: bool = False
    """Whether launched work waits for most of that time, while the device runs nothing that was recorded."""
    in_collectives_percent: float = 0.0
    """Percent of their time that devices wait in collectives for late ranks."""
    lead_us: float = 0.0
    """How long the rank's device waits before its first work, µs; 0 where that is too little to be told."""
    trail_us: float = 0.0
    """How long it is idle after its last work, µs; 0 where that is too little to be told."""
    loading: LoadingTime | None = None
    """How long it waits while the host loads data; None where that is too little to be told."""


def idle_times(results: Results) -> pd.DataFrame:
    """Return how long each device of a rank is idle in the steps, or from its first work to its last without steps.

    One row per rank, device and cause. A job that starts in the recording counts without start-up: all of the job,
    where steps are missing. Columns: ``rank``, ``cause``, ``idle_us``, ``window_us``, ``lead_us`` and
    ``trail_us``: how much of the steps comes before the first device work and after the last, which then wait for the
    host; not where earlier work was running.
    """
    graph = results.judged_graph
    rows = []
    acts = graph.activities
    pauses = graph.device_pauses
    earlier = ends_of_earlier_work(graph)
    causes = pauses.causes()
    ranks = results.busy.loc[results.busy["executor"] != "host", "rank"]
    ordinals = np.array([lane.device for lane in graph.lanes], np.int64)
    for place in np.flatnonzero(np.isin(pauses.places[:, 0], ranks)).tolist():
        rank, device = pauses.places[place].tolist()
        every = np.arange(acts.of_rank(rank).start, acts.of_rank(rank).stop)
        every = every[ordinals[acts.lane[every]] == device]
        work = every[acts.on_device[every]]
        first, last = int(graph.time[2 * work].min()), int(graph.time[2 * work + 1].max())
        begins, ends = _marks(results, rank, work)
        start, stop = min(first, int(graph.time[begins].min())), max(last, int(graph.time[ends].max()))
        begun = earlier.get((rank, device))
        start = start if begun is None else int(graph.time[begun])  # before that it was not idle
        if results.usual:
            begin, stop = results.usual_path.window
            start = begin if begun is None else max(begin, start)
        lead = max(first - start, 0)
        trail = max(stop - last, 0)
        window = stop - start
        own = np.arange(*np.searchsorted(pauses.place, (place, place + 1)))
        for at, cause in enumerate(CAUSES):
            of_cause = own[causes[own] == at]
            begin = pauses.begin[of_cause]
            outside = (lead + trail) * (cause == "host_wait")
            idle = clip(union(begin, begin + pauses.length[of_cause]), start, stop)
            ns = (length_of(idle) + outside, window, lead, trail)
            rows.append((rank, cause, *(each / 1000 for each in ns)))
    return pd.DataFrame(rows, columns=["rank", "cause", "idle_us", "window_us", "lead_us", "trail_us"])


def _marks(results: Results, rank: int, work: Array) -> tuple[Array, Array]:
    """Return moments, given the work of a device: the first and the last bound the window of the device."""
    graph = results.judged_graph
    spans = graph.step_spans
    of_rank = spans.rank == rank
    if of_rank.any():
        return spans.start[of_rank], spans.end[of_rank]
    if graph is results.graph:
        return 2 * work, 2 * work + 1
    rows = graph.activities.of_rank(rank)
    at_work = rows.start + np.flatnonzero(graph.awake[rows])  # a thread that only waits may last as long as the process
    return 2 * at_work, 2 * at_work + 1


class DeviceUse(NamedTuple):
    """The share of the time in which devices are busy, in words."""

    busy: str = ""
    """A part of a sentence; empty where the recording lacks device work."""
    aside: str = ""
    """The share in which devices only communicate, for brackets; empty for none."""

    @property
    def text(self) -> str:
        """The words, with the brackets."""
        return f"{self.busy} ({self.aside})" if self.aside else self.busy


def device_use(results: Results) -> DeviceUse:
    """Return how busy devices are in the usual steps, and how much they only communicate."""
    if Part.DEVICE in results.graph.ledger.lacks:
        return DeviceUse()
    table = idle_times(results)
    window, who = table["window_us"].sum() / len(CAUSES), "devices" if len(table) > len(CAUSES) else "device"
    if not window:
        return DeviceUse()
    at_most = "at most " if upper_bounds(results.graph).any() else ""
    text = f"{who} busy {at_most}{share_text(100 * (1 - table['idle_us'].sum() / window))}"
    if results.usual:
        return DeviceUse(f"{text} of these steps")
    talks = 100 * results.busy["exposed_communication_us"].sum() / window
    if len(results.graph.start_up):
        text += " apart from start-up"
    elif not len(results.graph.step_spans):
        text += " from first to last work"
    if not talks:
        return DeviceUse(text)
    waits = ", mostly waiting for late ranks" if _mostly_waits(results) else ""
    return DeviceUse(text, f"{share_text(talks)} only communicating{waits}")


def _mostly_waits(results: Results) -> bool:
    """Return whether most time in collectives on devices is known to be waiting for the last rank to arrive."""
    waits = results.graph.waits
    is_known = waits.shows_transfer & results.graph.activities.on_device[waits.activity]
    spent = (waits.wait + waits.transfer)[is_known].sum()
    return bool(are_waits_known(results) and waits.wait[is_known].sum() > MOST * spent)


def _when(results: Results) -> list[DeviceIdleClaim]:
    table = idle_times(results)
    graph = results.judged_graph
    claims = []
    scope = "In the steps" if len(graph.step_spans) else "In the recording"
    scope = (
        steps_text(results.usual) if results.usual else "Apart from start-up" if len(results.graph.start_up) else scope
    )
    window = float(table["window_us"].sum()) / len(CAUSES)
    if not window:
        return []
    compiled = bool(names_that(is_compiled_region, graph.names).any())
    for cause, us in table.groupby("cause")["idle_us"].sum().sort_values(ascending=False).items():
        if us < MIN_SHARE * window:
            continue
        of_cause = table[table["cause"] == cause]
        shares = 100 * of_cause["idle_us"] / of_cause["window_us"]
        worst = of_cause.iloc[int(shares.to_numpy().argmax())]
        claim = DeviceIdleClaim(
            "device_idle",
            cast("IdleCause", cause),
            100 * us / window,
            "percent",
            scope=scope,
            rank=int(worst["rank"]),
            rank_percent=float(shares.max()),
            has_several_devices=len(shares) > 1,
            is_compiled=compiled,
            behind_other_work=cause == "other" and _behind_other_work_us(graph) > MOST * us,
            **_preconditions(graph, cast("IdleCause", cause)),
        )
        claims.append(_of_host(results, claim, worst, window) if cause == "host_wait" else claim)
    return claims


def _preconditions(graph: DependencyGraph, cause: IdleCause) -> _Preconditions:
    """Return the preconditions of advice against idle time of a cause, given the pauses of that cause."""
    pauses = graph.device_pauses
    is_of_cause = (pauses.causes() == CAUSES.index(cause)) & (pauses.length > 0)
    waiting = pauses.after[is_of_cause].astype(np.int64)
    of_graphs = [HAS_GRAPHS, IS_CAPTURABLE]
    of_graphs += [IS_NOT_REPLAYED] if cause == "kernel_wait" else []
    checks = checks_of(of_graphs, graph, waiting)
    return {
        "can_replay": checks is not None,
        "checks": checks or (),
        "is_many": checks_of([ARE_MANY], graph, waiting) is not None,
        "has_room": checks_of([HAS_ROOM], graph, waiting) is not None,
    }


def _of_host(results: Results, claim: DeviceIdleClaim, worst: pd.Series, window_us: float) -> DeviceIdleClaim:
    """Return a claim that devices wait for the host, with why, and the change of the host.

    Args:
        results: the results of the job.
        claim: the claim without these.
        worst: the row of `idle_times` of the rank whose device waits most.
        window_us: the time of all devices together, µs.
    """
    graph = results.judged_graph
    least_us = MIN_SHARE * worst["window_us"]
    lead_us = float(worst["lead_us"])
    trail_us = float(worst["trail_us"])
    is_after = trail_us > MOST * worst["idle_us"]
    late = late_launches(graph, claim.rank)
    reason: HostReason = "nothing" if is_after else _host_reason(results, claim.rank)
    if reason == "launches" and not late.are_most:
        reason = "some"
    claim = replace(
        claim,
        late=late,
        late_places=_late_places(graph, claim.rank) if reason == "some" else (),
        lead_us=lead_us if lead_us >= least_us else 0.0,
        trail_us=trail_us if trail_us >= least_us else 0.0,
        host=reason,
        loading=_loading(results, worst),
        # the work and savings of a host without operators are not known
        is_recorded=Part.HOST not in graph.ledger.lacks,
        in_collectives_percent=100 * sum(waiting_devices(graph).values()) / 1000 / window_us,
    )
    if claim.host not in _OF_LAUNCHES or not claim.is_recorded:  # only then late launches cost time
        return claim
    change = _change_of_host(results, is_loading=claim.loading is not None)
    has_replays = bool(names_that(is_graph_launch, graph.names)[graph.activities.name].any())
    return replace(claim, gain=change.gain if change else None, change=change, has_replays=has_replays)


def _late_places(graph: DependencyGraph, rank: int) -> tuple[str, ...]:
    """Return the places of the host in which a rank's device waits longest for a launch, the longest first."""
    from htagraph.queries.waited_for import HOST, waited_for  # most summaries do without

    waits = waited_for(graph)
    of_host = waits[(waits["rank"] == rank) & (waits["waited_for"] == HOST)]
    place = of_host["inside"].where(of_host["inside"] != "", of_host["what"])
    time = of_host["total_us"].groupby(place).sum().sort_values(ascending=False, kind="stable")
    named = [short_name(str(name)) for name in time.index if name]
    return tuple(named[:SHORT_LIST])


def _change_of_host(results: Results, *, is_loading: bool) -> PredictedChange | None:
    """Return a host that takes no time, with the gain beyond changes that need no other program.

    No CUDA graph gains more. None where nothing is gained beyond these changes.

    Args:
        results: the results of the job.
        is_loading: whether the device waits for the data loader.
    """
    bound = claims_that_are(BoundClaim, results.claims(BOUND.when))
    bounds = [claim.gain for claim in bound if claim.about == "host" and claim.gain]
    gain = bounds[0] if bounds else _gain_of_host(results)
    beyond_us = 0.0
    beyond = []
    if is_loading:
        beyond_us += results.free.get("data_loading", 0) / 1000
        beyond.append("a faster data loader")
    gain = _with_launches_of_graphs(results, gain)
    remedies = claims_that_are(RemedyClaim, results.claims(REMEDY.when))
    remedies = [claim for claim in remedies if claim.about == "optimizer"]
    if remedies:
        beyond_us += remedies[0].figure
        beyond.append("a fused optimizer")
    if gain.value_us <= beyond_us:
        return None
    left = replace(
        gain,
        value_us=gain.value_us - beyond_us,
        low_us=0.0,  # no graph and no compiler makes a host take no time
        high_us=gain.high_us - beyond_us,
    )
    name = f"a host that takes no time{f' (beyond {and_list(beyond)})' if beyond else ''}"
    return PredictedChange(name, ("--infinite-host",), left)


def _with_launches_of_graphs(results: Results, gain: Gain) -> Gain:
    """Return the gain of a free host without the time that launches of the same kernels as CUDA graphs take.

    The host needs that time in any case: the job is no shorter.
    """
    acts = results.warm_graph.activities
    is_launched = acts.on_device & (acts.cause >= 0)
    if results.usual:
        is_launched &= np.isin(acts.step, results.usual)
    busiest = int(np.bincount(acts.rank[is_launched]).max(initial=0))
    most_us = max(0.0, gain.makespan_us - NODE_US * busiest)
    return replace(gain, value_us=min(gain.value_us, most_us), high_us=min(gain.high_us, most_us))


def _gain_of_host(results: Results) -> Gain:
    """Return the gain of the job if its host takes no time."""
    outcome = scenario_of(results.warm_graph, ["--infinite-host"]).run()
    return gain_of(outcome, results.whole)


def _loading(results: Results, worst: pd.Series) -> LoadingTime | None:
    """Return how long a rank's device waits while the host loads data; None for next to nothing.

    `worst` is the row of `idle_times` of the rank.
    """
    graph = results.judged_graph
    rank = int(worst["rank"])
    acts = graph.activities
    work = np.flatnonzero(acts.on_device & (acts.rank == rank))
    first = graph.time[2 * work].min()
    lead = (np.array([first - round(1000 * float(worst["lead_us"]))]), np.array([first]))
    begin, end = while_loading(graph, rank, lead)
    us = float((end - begin).sum()) / 1000
    return LoadingTime(us, len(begin)) if us > 0 and us >= LARGE_SHARE * worst["idle_us"] else None


def _behind_other_work_us(graph: DependencyGraph) -> float:
    """Return how long launched work waited while its device ran nothing recorded, µs, summed over all work."""
    return float(graph.gap[graph.gap_kind == GapKind.OTHER_WORK].sum()) / 1000


def _host_reason(results: Results, rank: int) -> HostReason:
    """Return why the host launches too late."""
    graph, acts = results.graph, results.graph.activities
    reason = late_reason(graph, rank, graph.start_up.activity)
    cause = acts.cause[acts.on_device & (acts.cause >= 0)]
    in_graph = names_that(is_graph_launch, graph.names)[acts.name[cause]]
    most = bool(len(cause)) and float(in_graph.mean()) > MOST
    if reason in ("launches", "few", "") and most:
        return "graphs"
    return reason or ("launches" if len(cause) >= MANY else "few")


def _words(claim: DeviceIdleClaim) -> str:
    share, waits = share_text(claim.figure), claim.in_collectives_percent
    at = f" (rank {claim.rank}: {claim.rank_percent:.0f} %)" if claim.has_several_devices else ""
    who, s, are = ("devices", "", "are") if claim.has_several_devices else ("the device", "s", "is")
    if claim.about != "host_wait":
        text = _TEXT["other_work" if claim.behind_other_work else claim.about]
        many = "many small " if claim.is_many else ""
        return text.format(where=claim.scope, who=who, s=s, are=are, share=share, at=at, many=many)
    text = f"{who} wait{s} {share} of the time{at} for the host"
    if waits >= 100 * MIN_SHARE:  # in kernels that spin, so that the device looks busy
        text = f"{who} wait{s} {waits:.0f} % in collectives for late ranks and {share} for the host{at}"
    sides = ((claim.lead_us, "before its first work"), (claim.trail_us, "after its last"))
    outside = [f"{time_text(us)} {words}" for us, words in sides if us]
    why = _why_late(claim, ", which ", in_full=True)
    loading = claim.loading
    if loading and claim.host != "loader":
        loads = f"{time_text(loading.us)} of this in {plural(loading.waits, 'wait')} for the data loader"
        why = f", {loads}; beside that, the host{_why_late(claim, ' ')}" if why else f", {loads}"
    return f"{claim.scope}, {text}{why}{f' ({and_list(outside)})' if outside else ''}."


def _why_late(claim: DeviceIdleClaim, joint: str, *, in_full: bool = False) -> str:
    """Return why the host is late, behind the words that join a verb to the host; empty where that is not known.

    In full, the words say how many launches are late.
    """
    late = _HOST.get(claim.host)
    if late is None:
        return ""
    if claim.host == "some" and claim.late:
        count = f"{claim.late.late:,} of {claim.late.launched:,}" if in_full else "some"
        places = f", mostly in {and_list(map(in_short, claim.late_places))}" if claim.late_places else ""
        return f"{joint}launches {count} pieces of work too late{places}"
    if claim.host == "pauses" and claim.late and claim.late.long == 1:
        return ": one long pause of the host, not many launches"
    return f"{joint}{late.does}" if late.does else f": {late.note}"


def _why(claim: DeviceIdleClaim) -> str:
    """Return the share of the time that devices wait, and the reason."""
    share = share_text(claim.figure)
    who = "Devices wait" if claim.has_several_devices else "The device waits"
    if claim.about == "host_wait":
        return f"{who} {share} of the time for the host{_why_late(claim, ', which ')}."
    if claim.about == "kernel_wait":
        return f"{who} {share} of the time between {'many small ' if claim.is_many else ''}kernels."
    if claim.behind_other_work:
        return f"{who} {share} of the time, probably behind work of another process."
    return f"{who} {share} of the time, but not for a late launch."


def _advice(claim: DeviceIdleClaim) -> str:
    is_told = claim.about == "host_wait" and claim.is_recorded
    advice = _HOST[claim.host].advice if is_told and claim.host in _HOST else ""
    compiles = "" if claim.is_compiled else claim.recorder.of_pytorch(" (torch.compile)")  # no advice to who does
    graphs = _MORE_GRAPHS if claim.has_replays else _GRAPHS
    ways = spoken(graphs if claim.can_replay else "", _LARGER if claim.has_room else "", _FEWER)
    if claim.about == "kernel_wait":
        advice = _FUSED if claim.is_many else ""
    replays = _OR_REPLAY if claim.can_replay else ""
    *first, last = ways
    listed = f"{', '.join(first)} or {last}" if first else last
    said = advice.format(ways=listed, replays=replays).format(compile=compiles)
    is_of_graphs = claim.can_replay and (claim.about == "kernel_wait" or claim.host in _OF_LAUNCHES)
    return Advice(said, *claim.checks) if said and is_of_graphs else said


def _evidence(results: Results, claim: DeviceIdleClaim) -> Evidence:
    rank = claim.rank
    table = _pauses(results.graph, rank, claim.about).nlargest(MOST_ROWS, "pause_us")
    places = Place.of_rows(table, "start_us", "pause_us", "after")
    names = {
        word: [short_name(name) for name in results.rows(table[side].to_numpy())["name"]]
        for side, word in (("before", "after"), ("after", "until"))
    }
    shown = table[["start_us", "pause_us"]].rename(columns={"pause_us": "idle_us"}).assign(**names)
    return Evidence(
        idle_chart(results.rank_idle), Rows(shown, f"The longest of these pauses of rank {rank}", places),
        place=places[0] if places else None, look=f"the longest pause of rank {rank}",
        command=_COMMANDS.get(claim.host, ("idle",)), meaning=idle_breakdown,
    )  # fmt: skip


def _pauses(graph: DependencyGraph, rank: int, cause: IdleCause) -> pd.DataFrame:
    """Return the pauses of a rank's device for one cause: begin and length, µs, the work before and after each."""
    pauses = graph.device_pauses
    of_rank = (pauses.places[pauses.place, 0] == rank) & (pauses.length > 0)
    rows = np.flatnonzero(of_rank & (pauses.causes() == CAUSES.index(cause)))
    return pd.DataFrame({
        "before": pauses.last[rows], "after": pauses.after[rows],
        "start_us": (pauses.begin[rows] - graph.origin_ns) / 1000, "pause_us": pauses.length[rows] / 1000,
    })  # fmt: skip


def idle_chart(rank_idle: pd.DataFrame) -> Chart:
    """Return a chart of why the devices of each rank are idle; it shows nothing where no device is."""
    if not rank_idle["idle_us"].any():
        return NO_CHART
    stacks = []
    for rank, causes in rank_idle.groupby("rank"):
        time = dict(zip(causes["cause"], causes["idle_us"], strict=True))
        parts = [BarPart(word, color, float(time.get(cause, 0.0))) for cause, (word, color) in _CAUSES.items()]
        stacks.append((f"rank {rank}", parts))
    return Chart("Idle device time by cause", stacks=stacks)


DEVICE_IDLE = Finding(
    "device_idle",
    needs=JUDGES,
    when=_when,
    short=_words,
    why=_why,
    evidence=_evidence,
    advice=_advice,
)
