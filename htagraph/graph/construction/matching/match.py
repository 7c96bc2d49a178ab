"""Which activities of different ranks are one collective: by ids, else by order within known or inferred groups.

Every match is tested against time before it is linked: after clock correction, no member of a barrier-like collective
ends before all have started. Ranks and groups that fail are left out and reported as issues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, coded, joined, marked
from htagraph.core.errors import Issue
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.activities import Activities
from htagraph.graph.clock_fits import medians
from htagraph.graph.clocks import Clock, corrected, estimate_clocks
from htagraph.graph.construction.matching.alignment import Cluster, Track
from htagraph.graph.construction.matching.members import Members, members_of
from htagraph.graph.construction.matching.teams import (
    Complaint,
    Team,
    aligned,
    host_collectives,
    host_transfers,
    tested,
    times,
)
from htagraph.graph.evidence.calls import grouped
from htagraph.graph.evidence.recordings import hosts_of
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.columns import Trace

__all__ = ["Matching", "match"]


@dataclass(frozen=True, eq=False)
class Matching:
    """The matched collectives before they are in a graph."""

    members: Members
    collective: Ints
    """Per member: its collective, 0 to the number of them less 1; -1 where it has none."""
    op: tuple[str, ...]
    """Per collective: its operation."""
    group: tuple[str, ...]
    """Per collective: a label of its group."""
    key: tuple[str, ...]
    """Per collective: how its members were matched."""
    size: Ints
    """Per collective: the members its group has, 0 where unknown."""
    team: Ints
    """Per collective: the number of its group in this job."""
    issues: tuple[Issue, ...] = ()
    host: Mapping[int, int] = field(default_factory=dict)
    """By rank: the number of its host; a rank whose host is unknown is left out."""

    def __len__(self) -> int:
        return len(self.op)

    @property
    def barrier(self) -> Mask:
        """Which collectives no member can leave before all have arrived."""
        return marked(self.collective[(self.collective >= 0) & self.members.barrier], len(self))


def match(
    activities: Activities, names: tuple[str, ...], traces: Mapping[int, Trace], naming: Naming = DEFAULT_NAMING
) -> Matching:
    """Return the collectives of a job: which communication activities of its ranks belong together.

    Those that at least two ranks have count; ``issues`` says what was refused and why.
    """
    if len(activities) == 0 or activities.rank[0] == activities.rank[-1]:
        return _collect(members_of(activities.take(np.zeros(len(activities), np.bool_)), names, naming), [], (), {})
    hosts = hosts_of(traces)
    members, kept, doubtful, complaints = _found(members_of(activities, names, naming, traces), hosts)
    if _some_name_no_group(members):
        _, by_time, *_ = _found(members_of(replace(activities, args={}), names, naming, traces), hosts)
        kept, _ = tested(members, _extended(members, kept, by_time))
    where = str(next(iter(traces.values())).path.parent) if traces else ""
    complaints += [*_absent(members, kept), *_alone(members, kept, doubtful), *_apart(members, kept, [*traces], hosts)]
    return _collect(members, kept, tuple(Issue(where, *complaint) for complaint in complaints), hosts)


def _found(members: Members, hosts: Mapping[int, int]) -> tuple[Members, list[Team], Mask, list[Complaint]]:
    """Return (members, with the operations that were found, their groups, which name no partner, complaints)."""
    teams, left = _by_id(members)
    left &= ~members.host_transfer
    kept, issues = tested(members, teams + host_collectives(members))
    held = ~_unheld(members, kept)
    held |= members.on_host & (members.group >= 0) & np.isin(members.group, members.group[held])  # the rest is doubtful
    labels = {team.label for team in kept}
    refused = ~_unheld(members, [team for team in teams if team.label not in labels])  # their order may still tell
    partnerless = members.partnerless
    ordered = _by_order(members, np.flatnonzero((left | refused) & ~held & ~partnerless), hosts)
    unnamed = _unnamed_pairs(members, ordered)
    more, complaints = tested(members, [team for team in ordered if not unnamed[team.rows.max()]])
    kept += more
    if unnamed.any():
        ops = (*members.ops, "send_recv")
        members = replace(members, ops=ops, op=np.where(unnamed, ops.index("send_recv"), members.op))
    pairs, doubts = tested(members, _by_partner(members, np.flatnonzero(partnerless | unnamed), kept, hosts))
    kept += pairs
    on_hosts, contradictions = host_transfers(members, hosts)
    kept += on_hosts
    if pairs:  # they show clocks, under which a few collectives may prove enough
        rest = _unheld(members, kept) & ~partnerless & ~unnamed & ~members.host_transfer
        more, _ = tested(members, _by_order(members, np.flatnonzero(rest), hosts, _clocks(members, kept, hosts)))
        kept += more
    return members, kept, partnerless | unnamed, [*issues, *complaints, *doubts, *contradictions]


def _some_name_no_group(members: Members) -> bool:
    """Return whether most communication of some ranks names its group, and of others does not."""
    _, rank = np.unique(members.rank, return_inverse=True)
    named = np.bincount(rank.ravel(), members.group >= 0) > LIMITS.most * np.bincount(rank.ravel())
    return bool(named.any() and not named.all())


def _extended(members: Members, teams: list[Team], by_time: list[Team]) -> list[Team]:
    """Return groups with the ranks that name no group where order and time place them, unless an id speaks against."""
    guessed = [team for team in teams if team.key == "lane+order"]
    found = [team for team in teams if team.key != "lane+order"]
    of_team, column = np.full((2, len(members)), -1)

    def note(number: int, rows: Array) -> None:
        held = rows >= 0
        of_team[rows[held]], column[rows[held]] = number, np.broadcast_to(np.arange(rows.shape[1]), rows.shape)[held]

    for number, team in enumerate(found):
        note(number, team.rows)
    for team in (*by_time, *guessed):
        rows, held = team.rows, team.rows >= 0
        own, place = (np.where(held, each[rows], -1) for each in (of_team, column))
        into, groups = np.unique(own[own >= 0]), np.unique(members.group[rows[held]])
        groups = groups[groups >= 0]
        if len(into) > 1 or len(groups) > 1:
            continue
        known, at = Team(rows[:0], team.label, team.key, 0), np.arange(rows.shape[1])
        if len(into):
            known, at = found[into[0]], place.max(axis=0)
        elif len(groups):
            known = replace(known, label=members.groups[groups[0]], size=int(members.group_size[groups[0]]))
        new = rows[(own < 0).all(axis=1)][:, at >= 0]
        apart = ((own >= 0) & (place != at)).any() or len(np.unique(at[at >= 0])) < (at >= 0).sum()
        if apart or not len(new) or 0 < known.size < len(known.rows) + len(new):
            continue
        grid = np.concatenate((known.rows, np.full((len(new), known.rows.shape[1]), -1)))
        grid[len(known.rows) :, at[at >= 0]] = new
        grid = grid[np.argsort(members.rank[grid.max(axis=1)])]
        number = int(into[0]) if len(into) else len(found)
        found[number : number + 1] = [Team(grid, known.label, known.key, known.size)]
        note(number, grid)
    return found


def _unheld(members: Members, teams: list[Team]) -> Mask:
    """Return which members have a place in none of the groups."""
    out = np.ones(len(members), np.bool_)
    for team in teams:
        out[team.rows[team.rows >= 0]] = False
    return out


def _clocks(members: Members, teams: list[Team], hosts: Mapping[int, int]) -> tuple[Clock, ...]:
    """Return the clocks of all ranks, as some groups show them."""
    return estimate_clocks(np.unique(members.rank).tolist(), _collect(members, teams, (), hosts))


def _by_id(members: Members) -> tuple[list[Team], Mask]:
    """Return (the groups whose members have ids of their collectives, which members have none).

    If a rank has an id twice (a collective of several kernels), the occurrences are matched by order.
    """
    left = np.ones(len(members), np.bool_)
    grouped_rows = np.flatnonzero((members.group >= 0) & ~members.partnerless)
    teams = []
    for own in sorted(grouped(members.group[grouped_rows]), key=lambda rows: members.group[grouped_rows[rows[0]]]):
        group = int(members.group[grouped_rows[own[0]]])
        for ids, known, key in (
            (members.comms_id, members.comms_id != 0, "comms_id"), (members.seq, members.seq >= 0, "pg+seq")
        ):  # fmt: skip
            rest = grouped_rows[own][left[grouped_rows[own]]]
            rows = rest[known[rest]]
            if not len(rows) or len(np.unique(members.rank[rows])) < len(np.unique(members.rank[rest])):
                continue  # the order is what all ranks have
            left[rows] = False
            number = np.unique(ids[rows], return_inverse=True)[1].ravel()
            grid = _grid(members, rows, coded(number, _occurrence(members.rank[rows], number)))
            teams.append(Team(grid, members.groups[group], key, int(members.group_size[group])))
    return teams, left


def _occurrence(rank: Array, number: Array) -> Ints:
    """Return for each row how many rows of its rank and number precede it."""
    code = coded(rank, number)
    order = np.argsort(code, kind="stable")
    out = np.empty(len(rank), np.int64)
    out[order] = np.arange(len(rank)) - np.searchsorted(code[order], code[order])
    return out


def _grid(members: Members, rows: Array, column: Array) -> Ints:
    """Return rows by (rank, column), columns in the order of their first starts."""
    ranks, line = np.unique(members.rank[rows], return_inverse=True)
    grid = np.full((len(ranks), int(column.max()) + 1), -1, np.int64)
    grid[line.ravel(), column] = rows
    start = np.where(grid >= 0, members.start[grid], np.iinfo(np.int64).max).min(axis=0)
    return grid[:, np.argsort(start, kind="stable")]


def _by_order(members: Members, rows: Array, hosts: Mapping[int, int], clocks: Sequence[Clock] = ()) -> list[Team]:
    """Return the groups of members without ids, known from arguments or inferred from time; members match by order."""
    if not len(rows) or members.rank[rows[0]] == members.rank[rows[-1]]:
        return []
    from htagraph.graph.construction.matching.clusters import cluster  # few jobs lack ids

    tracks = _tracks(members, rows, members.sequence[rows], hosts, clocks)
    lone = len(rows) == len(members)
    return _teams(members, tracks, cluster(tracks, _compared(clocks) if clocks else None, lone=lone))


def _unnamed_pairs(members: Members, teams: list[Team]) -> Mask:
    """Return which members nothing names but a kernel of sends and receives, and seem to have one partner each.

    Order and time are too weak a proof of that; of an all-to-all of more ranks they are not.
    """
    out = np.zeros(len(members), np.bool_)
    named = np.array([word != "" for word in members.ops], np.bool_)
    for team in teams:
        held = team.rows[team.rows >= 0]
        out[held] = len(team.rows) == 2 and team.key == "lane+order" and not named[members.op[held]].any()
    return out


def _by_partner(members: Members, rows: Array, known: list[Team], hosts: Mapping[int, int]) -> list[Team]:
    """Return the pairs of sends and receives that name no partner, as far as time leaves no doubt."""
    ranks = np.unique(members.rank[rows])
    if len(ranks) < 2:
        return []
    from htagraph.graph.construction.matching.clusters import partners  # few jobs lack ids

    clocks = _clocks(members, known, hosts)
    way = members.way[rows]
    tracks = _tracks(members, rows, 3 * members.sequence[rows] + way, hosts, clocks)
    return _teams(members, tracks, partners(tracks, _compared(clocks)))


def _compared(clocks: Sequence[Clock]) -> dict[int, int]:
    """Return a number by rank, equal for ranks whose clocks are known against each other."""
    return {clock.rank: clock.gauge if clock.gauge >= 0 else clock.rank for clock in clocks}


def _teams(members: Members, tracks: list[Track], clusters: list[Cluster]) -> list[Team]:
    teams = []
    for fellows in clusters:
        grid = _placed(fellows, tracks)
        held = grid[grid >= 0]
        if members.on_host[held[0]] and (members.asked[held] == members.start[held]).any():
            grid = _unswapped(members, grid)
        grid = np.where(_of_majority(members, grid), grid, -1)
        group = int(members.group[grid[grid >= 0][0]])
        ranks = sorted({int(rank) for rank in members.rank[grid[grid >= 0]]})
        label = members.groups[group] if group >= 0 else f"ranks {', '.join(map(str, ranks))}"
        size = int(members.group_size[group]) if group >= 0 else 0
        teams.append(Team(grid, label, "pg+order" if group >= 0 else "lane+order", size))
    return teams


def _tracks(
    members: Members, rows: Array, sequence: Array, hosts: Mapping[int, int], clocks: Sequence[Clock] = ()
) -> list[Track]:
    """Return the sequences: of each rank and group, or each rank and stream where no argument names the group."""
    order = np.lexsort((members.asked[rows], sequence))
    parts = np.split(rows[order], np.flatnonzero(np.diff(sequence[order])) + 1)
    start, end = (corrected(clocks, members.rank, times) for times in (members.start, members.end))
    origin = int(start[rows].min())
    barrier, partnerless = members.barrier, members.partnerless
    pairwise = members.ops.index("send_recv") if "send_recv" in members.ops else -1
    tracks = []
    lanes = Counter((members.rank[part[0]], members.group[part[0]]) for part in parts)
    several = {group for (_, group), count in lanes.items() if count > 1}
    pools = _pools([members.label[part] for part in parts])
    for number, part in enumerate(parts):
        group, host, way = int(members.group[part[0]]), bool(members.on_host[part[0]]), members.way[part]
        tracks.append(
            Track(
                number, int(members.rank[part[0]]), part,
                (start[part] - origin).astype(np.float64), (end[part] - origin).astype(np.float64),
                members.label[part], barrier[part],
                group if group >= 0 else -2 if host else -3 - pools[number],
                host or (group >= 0 and not partnerless[part[0]] and group not in several),
                bool((members.op[part] == pairwise).mean() > 0.5), float(LIMITS.turn_ns if host else 1_000),
                int(way[0]) if (way == way[0]).all() else 0, members.step[part].astype(np.int64),
                hosts.get(int(members.rank[part[0]]), -1), host,
            )
        )  # fmt: skip
    return tracks


def _pools(labels: Sequence[Array]) -> list[int]:
    """Return a number per sequence, equal for those that share a label, directly or through other sequences."""
    pools = list(range(len(labels)))
    holder: dict[int, int] = {}  # by label: a sequence that has it

    def root(number: int) -> int:
        while pools[number] != number:
            number = pools[number]
        return number

    for number, own in enumerate(labels):
        for label in np.unique(own).tolist():
            pools[root(number)] = root(holder.setdefault(label, number))
    return [root(number) for number in range(len(labels))]


def _placed(fellows: Cluster, tracks: list[Track]) -> Ints:
    united = (fellows.holed.get(number, tracks[number]) for number in fellows.shift)
    members = sorted(united, key=lambda track: track.rank)
    low = min(fellows.shift.values())
    columns = [track.place + fellows.shift[track.number] - low for track in members]
    grid = np.full((len(members), max(int(at[-1]) for at in columns) + 1), -1, np.int64)
    for line, track, at in zip(grid, members, columns, strict=True):
        line[at] = track.rows
    return grid


def _of_majority(members: Members, grid: Array) -> Mask:
    """Return which members have the label that most of their column have."""
    label = np.where(grid >= 0, members.label[grid], -1)
    first = label.max(axis=0)
    if (label == np.where(grid >= 0, first, -1)).all():
        return np.asarray(grid >= 0)
    held = np.flatnonzero(label.ravel() >= 0)
    key = held % grid.shape[1] * (int(first.max()) + 1) + label.ravel()[held]
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    votes = np.zeros(label.shape, np.int64)
    votes.ravel()[held] = count[place.ravel()]
    best = np.where(votes == votes.max(axis=0), label, -1).max(axis=0)
    return np.asarray((grid >= 0) & (label == best))


def _unswapped(members: Members, grid: Array) -> Array:
    """Return places where neighbours that two threads started nearly at once are exchanged if so they end together."""
    grid = grid.copy()
    for _ in range(2):
        end, start = times(members, grid)
        end, start = aligned(end, start, np.ones(grid.shape[1], np.bool_))
        middle = medians(end, axis=0)
        for line in range(len(grid)):
            kept = np.abs(end[line, :-1] - middle[:-1]) + np.abs(end[line, 1:] - middle[1:])
            swapped = np.abs(end[line, 1:] - middle[:-1]) + np.abs(end[line, :-1] - middle[1:])
            at_once = np.abs(start[line, 1:] - start[line, :-1]) < LIMITS.turn_ns
            for place in np.flatnonzero(at_once & (swapped < kept / 2)):
                grid[line, [place, place + 1]] = grid[line, [place + 1, place]]
    return grid


def _absent(members: Members, teams: list[Team]) -> list[Complaint]:
    """Return a complaint for each group some of whose ranks are not among the files."""
    complaints = []
    for team in teams:
        if team.size > len(team.rows):
            ranks = ", ".join(str(int(members.rank[line.max()])) for line in team.rows[:8])
            why = f"collectives of {team.label} without {team.size - len(team.rows)} of its {team.size} ranks"
            why += f" (only {ranks} are linked): waiting for the others looks like transfer"
            complaints.append(("collectives_ranks_absent", why, team.rows.shape[1], -1))
    return complaints


def _alone(members: Members, teams: list[Team], doubtful: Array) -> list[Complaint]:
    """Return complaints that count the communication without a match: ambiguous ones, and those with no counterpart."""
    left = _unheld(members, teams)
    unsure = left & doubtful & (len(np.unique(members.rank[doubtful])) > 1)
    alone = "communication without a counterpart on another rank; not linked"
    doubt = "sends and receives that name no partner, and whose times fit several; not linked"
    reasons = (("p2p_ambiguous", doubt, unsure), ("collectives_unmatched", alone, left & ~unsure))
    return [(what, why, int(which.sum()), -1) for what, why, which in reasons if which.any()]


def _apart(members: Members, teams: list[Team], ranks: list[int], hosts: Mapping[int, int]) -> list[Complaint]:
    """Return a complaint if ranks of several hosts share no barrier-like collective: their clocks were not compared."""
    on_host = np.array([hosts.get(rank, -1 - rank) for rank in ranks])
    islands = [{ranks[row] for row in rows.tolist()} for rows in grouped(on_host)]
    for team in teams:
        met = {int(members.rank[line.max()]) for line in team.rows if members.barrier[line[line >= 0]].any()}
        linked = [island for island in islands if island & met]
        if len(met) > 1 and linked:
            islands = [island for island in islands if not island & met] + [set().union(*linked)]
    if len(islands) < 2 or not len(members):
        return []
    islands.sort(key=min)
    listed = "; ".join(", ".join(map(str, sorted(island)[:8])) + ", ..." * (len(island) > 8) for island in islands[:8])
    why = f"clocks of ranks {listed} were not compared: times across them mean nothing unless they share a clock"
    return [("clocks_unknown", why, len(ranks) - max(map(len, islands)), -1)]


def _collect(members: Members, teams: list[Team], issues: tuple[Issue, ...], hosts: Mapping[int, int]) -> Matching:
    """Return the groups' collectives under one numbering."""
    collective = np.full(len(members), -1, np.int64)
    op: list[str] = []
    group: list[str] = []
    key: list[str] = []
    numbers: list[tuple[Array, Array]] = []  # by collective: the size of its group, the number of the group
    for each, team in enumerate(teams):
        count = team.rows.shape[1]
        column = np.broadcast_to(np.arange(count) + len(op), team.rows.shape)
        held = team.rows >= 0
        collective[team.rows[held]] = column[held]
        code = np.where(held, members.op[team.rows], -1)
        named = np.array([word != "" for word in (*members.ops, "")], np.bool_)  # the last is that of -1
        best = np.where(named[code], code, -1).max(axis=0)
        unnamed = "send_recv" if len(team.rows) == 2 else "all_to_all"
        op += [members.ops[code] if code >= 0 else unnamed for code in best.tolist()]
        group += [team.label] * count
        key += [team.key] * count
        numbers.append((np.full(count, team.size), np.full(count, each)))
    size, number = joined(numbers, 2)
    return Matching(members, collective, tuple(op), tuple(group), tuple(key), size, number, issues, hosts)
