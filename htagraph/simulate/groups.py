"""Process groups: which ranks take part in which collectives."""

from dataclasses import dataclass

from htagraph.simulate.job import Job


@dataclass(frozen=True, slots=True)
class Group:
    """One process group, the same object for all its members."""

    index: int  # position in the job's list of groups
    name: str  # pg_name
    description: str  # pg_desc
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank stands in the job, and its group for each role."""

    rank: int
    stage: int
    roles: dict[str, Group]


def _coordinates(job: Job, rank: int) -> tuple[int, int, int]:
    """Return the (data, tensor, stage) indices of a rank; tensor neighbours have adjacent ranks."""
    data, tensor, _ = job.sizes
    return rank // tensor % data, rank % tensor, rank // (tensor * data)


def _rank(job: Job, data: int, tensor: int, stage: int) -> int:
    sizes = job.sizes
    return (stage * sizes[0] + data) * sizes[1] + tensor


def _members(job: Job) -> dict[tuple[int, ...], str]:
    """Return the rank sets of all groups but the default one, in creation order, with a description."""
    data, tensor, stages = job.sizes
    description_by_ranks: dict[tuple[int, ...], str] = {}
    for stage in range(stages):
        for t in range(tensor):
            description_by_ranks.setdefault(tuple(_rank(job, d, t, stage) for d in range(data)), "dp")
        for d in range(data):
            description_by_ranks.setdefault(tuple(_rank(job, d, t, stage) for t in range(tensor)), "tp")
    return {ranks: name for ranks, name in description_by_ranks.items() if 1 < len(ranks) < job.ranks}


def places(job: Job) -> tuple[list[Group], list[Place]]:
    """Return the job's process groups and the place of every rank.

    The roles of a rank: `dp` and `tp`; and for a pipeline, one group per pair of neighbours and direction,
    `forward_in`, `forward_out`, `backward_in`, `backward_out`.
    """
    groups = [Group(0, "0", "default_pg", tuple(range(job.ranks)))]
    by_ranks = {groups[0].ranks: groups[0]}
    for ranks, description in _members(job).items():
        groups.append(Group(len(groups), str(len(groups)), description, ranks))
        by_ranks[ranks] = groups[-1]
    pairs = _pairs(job, groups)
    data, tensor, stages = job.sizes
    result = []
    for rank in range(job.ranks):
        d, t, stage = _coordinates(job, rank)
        roles: dict[str, Group] = {}
        if data > 1:
            roles["dp"] = by_ranks[tuple(_rank(job, i, t, stage) for i in range(data))]
        if tensor > 1:
            roles["tp"] = by_ranks[tuple(_rank(job, d, i, stage) for i in range(tensor))]
        if stage > 0:
            roles["forward_in"], roles["backward_out"] = pairs[_rank(job, d, t, stage - 1), rank]
        if stage + 1 < stages:
            roles["forward_out"], roles["backward_in"] = pairs[rank, _rank(job, d, t, stage + 1)]
        result.append(Place(rank, stage, roles))
    return groups, result


def _pairs(job: Job, groups: list[Group]) -> dict[tuple[int, int], tuple[Group, Group]]:
    """Append two groups (forward, backward) per pair of neighbours to `groups`, and return them by pair."""
    data, tensor, stages = job.sizes
    pairs: dict[tuple[int, int], tuple[Group, Group]] = {}
    for stage in range(stages - 1):
        for index in range(data * tensor):
            low = stage * data * tensor + index
            pair = (low, low + data * tensor)
            made = []
            for name in ("pp_forward", "pp_backward"):
                made.append(Group(len(groups), str(len(groups)), name, pair))
                groups.append(made[-1])
            pairs[pair] = (made[0], made[1])
    return pairs
