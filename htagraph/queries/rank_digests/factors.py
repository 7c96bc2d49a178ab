"""Classes of a skeleton that are those of some of its edges only, such as of one rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from htagraph.core.arrays import Array
from htagraph.queries.skeleton import Skeleton

__all__ = ["with_classes_of_ranks"]


def with_classes_of_ranks(skeleton: Skeleton, edges: Array, names: Sequence[str]) -> tuple[Skeleton, dict[str, str]]:
    """Return (the skeleton with classes of its own for the time of some edges, the new name of each class).

    That time then belongs to the new class too: both factors multiply it.

    Args:
        skeleton: a skeleton.
        edges: a mask of its edges.
        names: the classes whose time on these edges gets a class of its own.
    """
    classes = skeleton.classes
    new = {name: f"{name}@{len(classes.names)}" for name in names}
    numbers = {classes.names.index(name): len(classes.names) + at for at, name in enumerate(names)}
    parts, columns = list(classes.parts), [column.copy() for column in skeleton.weight.T]
    for at, part in enumerate(classes.parts, start=1):
        more = [numbers[number] for number in part if number in numbers]
        if more and columns[at][edges].any():
            parts.append((*part, *more))
            columns.append(np.where(edges, columns[at], 0))
            columns[at][edges] = 0
    limits = tuple(classes.limits[classes.names.index(name)] for name in names)
    classes = replace(
        classes, names=(*classes.names, *new.values()), limits=(*classes.limits, *limits),
        switches=(*classes.switches, *(False,) * len(names)), parts=tuple(parts),
    )  # fmt: skip
    return replace(skeleton, classes=classes, weight=np.stack(columns, axis=1)), new
