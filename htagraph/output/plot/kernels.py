"""Kernels, operators and modules: who takes the time, and on which rank they take longer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened, time_text
from htagraph.output.plot.style import (
    COLORS,
    DIVERGING,
    GREY,
    KIND_COLORS,
    NAME_LETTERS,
    color_bar,
    drawn,
    escaped,
    hover_name,
    nothing,
    plain,
    rank_axis,
    row_labels,
    text_color,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

__all__ = [
    "kernel_breakdown", "kernel_distribution", "kernel_owners", "module_breakdown", "operator_breakdown", "roofline",
]  # fmt: skip

_TILES = 60
"""Tiles of a treemap that are kept apart, those with most time. Chosen: smaller ones cannot be read. Doubled, a third
of the tiles is smaller than a letter."""
_OUTERMOST = 16
"""Outermost tiles that are kept apart, those with most time. Chosen: models have hundreds of modules, and their frames
hide what is in them. Doubled, a third of the picture is frames."""
_ROWS = 30
"""Kernels of a heat map of ranks, those with most time. Chosen: they fit a screen. Doubled, one scrolls."""
_RANGE = 0.5
"""Difference from the median at which the colours of a heat map end at least, as a share of it. Chosen: 10 % is pale
then, and a rank that is twice as slow is not paler for one that is ten times as slow. Doubled, 20 % is pale."""
_MAX_RANGE = 1.0
"""The largest such difference: the median itself. What is more than twice the median has the colour of twice. It
cannot be doubled: no duration is below 0."""
_NAMED_RANKS = 64
"""Ranks whose cells give all their numbers where one points. Chosen: they take 0.5 MB. Doubled, 1 MB."""
_CLEAR = 1.05
"""Slowest rank's mean over the fastest's from which a title says that it is slower. Chosen: kernels of one device
differ by less. Doubled, differences of 5 to 110 % are not named."""
_NO_NAME = "(no name)"
_OUTSIDE = {"module": "outside all modules and annotations", "operator": "outside all operators"}
_ON_HOSTS = frozenset({"op", "host_communication"})
_BY_KIND = ("kind", "name")
_TILE_LETTERS, _TILE_LINE = 32, 18
"""Letters of the label of a tile, and of a line of it. Chosen: plotly leaves out labels that do not fit. Doubled, most
tiles have none."""
_MAX_MARKER_SIZE = 40
"""Pixels of the point of the operator with the most time; chosen. Doubled, points hide each other."""
_MAX_POINTS = 3000
"""Points, those with most time. Chosen: a browser draws them at once. Doubled, small ones hide large ones."""
_DECADE = 10.0
"""Factor by which roofs are drawn beyond the points and the ridge."""
_BOUNDS = {
    "compute": ("compute-bound", COLORS["blue"]), "memory": ("memory-bound", COLORS["orange"]),
    "": ("peaks unknown", COLORS["green"]),
}  # fmt: skip


def kernel_breakdown(table: pd.DataFrame) -> Figure:
    """Return the figure of which kernels take the time of all ranks: a treemap of kind > kernel.

    Args:
        table: result of `htagraph.kernel_breakdown`, by rank or for the whole job.

    Returns:
        The figure, not shown. The size of a tile is its summed time; pointing at it gives the time in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.kernel_breakdown(hg.kernel_breakdown(hg.load("data/demo")))
        >>> figure.data[0].type
        'treemap'
    """
    about = "Summed durations over all ranks, by kind and name; those that overlap count in full."
    if len(table) and set(table["kind"]) <= _ON_HOSTS:
        about = "Operators by self time and collectives on threads, over all ranks: there was no device work."
        return _treemap(table, _BY_KIND, "total_us", "time on the host", about)
    return _treemap(table, _BY_KIND, "total_us", "kernel time", about)


def operator_breakdown(table: pd.DataFrame) -> Figure:
    """Return the figure of which operators launch the device work: a treemap of kind > operator.

    Args:
        table: result of `htagraph.operator_breakdown`, by rank or for the whole job.

    Returns:
        The figure, not shown. The size of a tile is the time of the device work that it launched itself; in a job
        without device work, its own time on the host; pointing at it gives the time in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.operator_breakdown(hg.operator_breakdown(hg.load("data/demo")))
        >>> figure.data[0].type
        'treemap'
    """
    return _by_owner(table, "operator")


def module_breakdown(table: pd.DataFrame) -> Figure:
    """Return the figure of which modules launch the device work: a treemap of kind > module.

    Args:
        table: result of `htagraph.module_breakdown`, by rank, by class or for the whole job.

    Returns:
        The figure, not shown. The size of a tile is the time of the device work launched in it, not in modules inside
        it; in a job without device work, the own time of hosts; pointing at it gives the time in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.module_breakdown(hg.module_breakdown(hg.load("data/demo")))
        >>> figure.data[0].type
        'treemap'
    """
    return _by_owner(table, "module")


def kernel_owners(table: pd.DataFrame) -> Figure:
    """Return the figure of who launches which kernel: a treemap of module > operator > kernel.

    Args:
        table: result of `htagraph.kernel_owners`, by rank or for the whole job.

    Returns:
        The figure, not shown. The size of a tile is its summed time; pointing at it gives the time in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.kernel_owners(hg.kernel_owners(hg.load("data/demo")))
        >>> len(set(figure.data[0].ids)) == len(figure.data[0].ids)
        True
    """
    about = "Device work of all ranks by innermost module (or annotation), operator that launched it, and kernel."
    table = table.assign(**{what: table[what].replace("", word) for what, word in _OUTSIDE.items()})
    return _treemap(table, ["module", "operator", "name"], "device_us", "device time", about)


def kernel_distribution(table: pd.DataFrame) -> Figure:
    """Return the figure of which ranks take longer in which kernels: a heat map of kernels by rank.

    Args:
        table: result of `htagraph.kernel_distribution`.

    Returns:
        The figure, not shown: mean durations relative to the median of the ranks, of the 30 kernels with most time;
        pointing at a cell gives them in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.kernel_distribution(hg.kernel_distribution(hg.load("data/demo")))
        >>> figure.layout.title.text.split("<br>")[0]
        'Rank 2 is the slowest in all 21 computation kernels shown'
    """
    about = (
        f"Mean duration over the median of the ranks, of the {_ROWS} kernels with most time. Ranks that arrive first"
    )
    about += " wait in communication kernels: there, longer is not slower."
    if not len(table):
        return nothing("No kernels were recorded", about)
    from plotly.graph_objects import Heatmap

    kernels = table[["kind", "name"]].drop_duplicates().head(_ROWS)
    shown = kernels.merge(table, on=["kind", "name"])
    labels = row_labels([short_name(name) for name in kernels["name"]])
    rows = {pair: at for at, pair in enumerate(kernels.itertuples(index=False, name=None))}
    ranks = sorted(shown["rank"].unique().tolist())
    z = np.full((len(kernels), len(ranks)), np.nan)
    hover = [["did not run" for _ in ranks] for _ in rows]
    column = {rank: at for at, rank in enumerate(ranks)}
    for each in shown.to_dict("records"):
        row, at = rows[each["kind"], each["name"]], column[each["rank"]]
        z[row, at] = each["relative"]
        hover[row][at] = (
            f"{hover_name(str(each['name']))}<br>rank {each['rank']}: {time_text(each['mean_us'])} on average, "
            f"{each['relative']:.2f} × the median<br>{each['count']:,} times, {time_text(each['total_us'])} in all"
        )
    far = max(_RANGE, float(np.nanpercentile(np.abs(z - 1), 95))) if np.isfinite(z).any() else _RANGE
    far = min(far, _MAX_RANGE)
    brief = {"hovertemplate": "%{y}<br>rank %{x}: %{z:.2f} × the median<extra></extra>"}
    words = brief if len(ranks) > _NAMED_RANKS else {"hovertext": hover, "hoverinfo": "text"}
    heat = Heatmap(
        x=[*map(str, ranks)], y=labels, z=z, zmid=1, zmin=1 - far, zmax=1 + far, colorscale=DIVERGING,
        colorbar=color_bar("× the median of the ranks"), xgap=int(len(ranks) <= _NAMED_RANKS), ygap=1, **words,
    )  # fmt: skip
    return drawn(
        [heat],
        _uneven(shown, len(ranks)),
        about,
        height=90 + 22 * len(kernels),
        xaxis=rank_axis([*map(str, ranks)]),
        yaxis={"autorange": "reversed", "showgrid": False, "tickfont": {"size": 11}, "dtick": 1},
    )


def _uneven(shown: pd.DataFrame, ranks: int) -> str:
    """Return which rank is the slowest in most of the kernels that compute, if one is."""
    if ranks < 2:
        return "Mean durations of kernels; only one rank was read, so there is none to compare it with"
    kernels = shown[shown["kind"] != "communication"].drop_duplicates(["kind", "name"])
    kernels = kernels[kernels["kind"].isin(["computation", "op"])]
    slow = kernels.loc[kernels["spread"] >= _CLEAR, "slowest_rank"].value_counts()
    word = "operators" if (kernels["kind"] == "op").any() else "computation kernels"
    if len(slow) and 2 * int(slow.iloc[0]) > len(kernels):
        count, whole = int(slow.iloc[0]), len(kernels)
        of = f"all {whole}" if count == whole else f"{count} of the {whole}"
        return f"Rank {slow.index[0]} is the slowest in {of} {word} shown"
    return f"No rank is the slowest in most of the {len(kernels)} {word} shown"


def _by_owner(table: pd.DataFrame, what: str) -> Figure:
    table = table.assign(name=table["name"].replace("", _OUTSIDE[what]), kind=table["kind"].replace("", "neither"))
    on_device = not len(table) or float(table["device_us"].sum()) > 0
    if on_device:
        about = f"Device work of all ranks by the innermost {what} that launched it."
        return _treemap(table, _BY_KIND, "device_us", "device time", about)
    about = f"Own time on the threads of all ranks, by {what}: there was no device work."
    return _treemap(table, _BY_KIND, "host_self_us", "own time on the host", about)


def _treemap(table: pd.DataFrame, levels: Sequence[str], value: str, what: str, about: str) -> Figure:
    """Return a treemap of sums.

    Args:
        table: rows with names and a time.
        levels: columns of names, the outermost first.
        value: the column of times, µs.
        what: what the times are.
        about: what is drawn.
    """
    total = float(table[value].sum()) if len(table) else 0.0
    if not total > 0:
        return nothing("No work was recorded", about)
    from plotly.graph_objects import Treemap

    sums = table.groupby(list(levels), sort=False)[value].sum()
    sums = sums[sums > 0].sort_values(ascending=False, kind="stable")
    kinds = dict(zip(table["name"], table["kind"], strict=True))
    tiles = _Tiles(sums, levels, kinds)
    first = [plain(short_name(str(name)), NAME_LETTERS) or _NO_NAME for name in sums.index[0]]
    name = " > ".join(first) if len(levels) > len(_BY_KIND) else first[-1]
    finding = f"Most {what}: {name}, {100 * float(sums.iloc[0]) / total:.0f} % of {time_text(total)}"
    whole = Treemap(
        ids=tiles.ids, labels=tiles.labels, parents=tiles.parents, values=tiles.values, branchvalues="total",
        hovertext=tiles.hover, hoverinfo="text", texttemplate="%{label}<br>%{percentRoot:.1%}",
        marker={"colors": tiles.colors, "line": {"width": 1, "color": "rgba(128,128,128,0.6)"}}, tiling={"pad": 1},
        textfont={"size": 11, "color": [text_color(color) for color in tiles.colors]}, pathbar={"thickness": 18},
    )  # fmt: skip
    return drawn(
        [whole], finding, about, height=520, margin={"l": 8, "r": 8, "b": 8}, uniformtext={"minsize": 9, "mode": "hide"}
    )


def _lines(name: str) -> list[str]:
    """Return a name in lines that end where its words do."""
    lines = [""]
    for word in filter(None, re.findall(r"[^_:. ]*[_:. ]*", name)):
        if lines[-1] and len(lines[-1]) + len(word) > _TILE_LINE:
            lines.append("")
        lines[-1] += word
    return lines


class _Tiles:
    """The tiles of a treemap as plotly's columns; small ones are one tile, so that sums are kept."""

    def __init__(self, sums: pd.Series[float], levels: Sequence[str], kinds: Mapping[str, str]) -> None:
        self.ids: list[str] = []
        self.labels: list[str] = []
        self.parents: list[str] = []
        self.values: list[float] = []
        self.hover: list[str] = []
        self.colors: list[str] = []
        self._at: dict[tuple[str, ...], int] = {}
        self._whole = float(sums.sum())
        self._levels, self._kinds = levels, kinds
        outer = sums.groupby(level=0, sort=False).sum().sort_values(ascending=False, kind="stable")
        kept = set(map(str, outer.index[:_OUTERMOST]))
        for number, (key, us) in enumerate(sums.items()):
            path = tuple(map(str, key)) if isinstance(key, tuple) else (str(key),)
            path = path if number < _TILES else (path[0], _Tiles._OTHERS)
            self._add(path if path[0] in kept else (_Tiles._OTHERS,), float(us))

    _OTHERS = "\0"
    """The name of the tile that holds what is small: no name of a trace, which has no NUL after it was cleaned."""

    def _add(self, path: tuple[str, ...], us: float) -> None:
        """Add a time to a tile and to those around it."""
        for depth in range(1, len(path) + 1):
            at = self._at.get(path[:depth])
            if at is None:
                at = self._at[path[:depth]] = self._new(path[:depth])
            self.values[at] += us
            self.hover[at] = self._hover(path[:depth], self.values[at])

    def _new(self, path: tuple[str, ...]) -> int:
        name = path[-1]
        at = len(self.ids)
        self.ids.append(str(at))
        self.parents.append(str(self._at[path[:-1]]) if len(path) > 1 else "")
        self.labels.append(self._label(path))
        self.values.append(0.0)
        self.hover.append("")
        kind = path[0] if self._levels == _BY_KIND else self._kinds[name] if len(path) == len(self._levels) else ""
        self.colors.append(KIND_COLORS.get(kind, COLORS["grey"]) if kind else COLORS["light"])
        return at

    def _label(self, path: tuple[str, ...]) -> str:
        name = path[-1]
        if name == self._OTHERS:
            return "smaller ones"
        is_kind = self._levels == _BY_KIND and len(path) == 1
        word = (name.replace("_", " ") if is_kind else short_name(name)) or _NO_NAME
        return "<br>".join(map(escaped, _lines(shortened(plain(word), _TILE_LETTERS))))

    def _hover(self, path: tuple[str, ...], us: float) -> str:
        names = [hover_name(name) if name else _NO_NAME for name in path if name != self._OTHERS]
        names += ["smaller ones"] if path[-1] == self._OTHERS else []
        lines = [f"{level}: {name}" for level, name in zip(self._words(), names, strict=False)]
        return f"{'<br>'.join(lines)}<br>{time_text(us)}, {100 * us / self._whole:.1f} % of all"

    def _words(self) -> list[str]:
        return [{"name": "kernel"}.get(level, level) for level in self._levels]


def roofline(table: pd.DataFrame) -> Figure:
    """Return the figure of operators as points, larger for more time, below the roofs of their devices.

    Args:
        table: result of `htagraph.roofline`; rows of unknown intensity or speed are left out.

    Returns:
        The figure, not shown; both axes are logarithmic, flop/B and TFLOP/s. Pointing at an operator gives its shapes
        and its time in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> table = hg.roofline(hg.load("data/gloo_ddp", ranks=[0]), peak_tflop_s=2.0, peak_gb_s=100.0)
        >>> [trace.mode for trace in hg.plot.roofline(table).data][-1]
        'lines'
    """
    about = "Operators by arithmetic intensity and speed reached; the area of a point is its time. Lines: the peaks."
    known = table[(table["intensity"] > 0) & (table["tflop_s"] > 0)].head(_MAX_POINTS)
    if not len(known):
        why = "No operator's operations and bytes are known: profile with record_shapes=True"
        return nothing(why, about)
    from plotly.graph_objects import Scatter

    longest = float(known["time_us"].max())
    points = []
    for bound, (word, color) in _BOUNDS.items():
        rows = known[known["bound"] == bound]
        if not len(rows):
            continue
        points.append(
            Scatter(
                name=word, x=rows["intensity"].to_numpy(), y=rows["tflop_s"].to_numpy(), mode="markers",
                marker={
                    "size": (_MAX_MARKER_SIZE * (rows["time_us"] / longest) ** 0.5).to_numpy(), "sizemin": 4,
                    "color": color, "opacity": 0.7, "line": {"width": 1, "color": GREY},
                },
                hovertext=[_hover(row) for row in rows.to_dict("records")], hoverinfo="text",
            )
        )  # fmt: skip
    return drawn(
        [*points, *_roofs(known)], _finding(known), about, height=460, showlegend=True,
        legend={"itemsizing": "constant"},
        xaxis={"title": {"text": "arithmetic intensity (flop/B)"}, "type": "log", "exponentformat": "SI", "dtick": 1},
        yaxis={"title": {"text": "TFLOP/s"}, "type": "log", "exponentformat": "power", "dtick": 1},
    )  # fmt: skip


def _finding(known: pd.DataFrame) -> str:
    first = known.iloc[int(known["time_us"].to_numpy().argmax())]
    name, reached = plain(str(first["operator"]), 60), float(first["tflop_s"])
    speed = f"{name}, the row with most time, reaches {reached:.3g} TFLOP/s"
    if first["roof_percent"] > 0:
        return f"{speed}, {first['roof_percent']:.0f} % of what the device allows at its intensity"
    return f"{speed}; the peaks of its device are not known"


def _hover(row: dict[Any, Any]) -> str:
    roof = f"<br>{row['roof_percent']:.0f} % of the roof" if row["roof_percent"] > 0 else ""
    shapes = f"<br>{hover_name(str(row['shapes']))}" if row["shapes"] else ""
    return (
        f"{hover_name(str(row['operator']))}{shapes}<br>rank {row['rank']}, "
        f"{row['count']:,} times, {time_text(row['time_us'])}<br>{row['intensity']:.3g} flop/B, "
        f"{row['tflop_s']:.3g} TFLOP/s{roof}"
    )


def _roofs(known: pd.DataFrame) -> list[Scatter]:
    """Return one line per pair of limits: the memory's slope up to the ridge, then the level of the arithmetic."""
    from plotly.graph_objects import Scatter

    limits = known[["peak_gb_s", "peak_tflop_s"]].dropna().drop_duplicates()
    lines = []
    for gb_s, tflop_s in limits.itertuples(index=False, name=None):
        ridge = 1000 * tflop_s / gb_s
        left = min(known["intensity"].min(), ridge) / _DECADE
        right = max(known["intensity"].max(), ridge) * _DECADE
        name = f"{tflop_s:g} TFLOP/s,<br>{gb_s:g} GB/s"
        lines.append(
            Scatter(
                x=[left, ridge, right], y=[left * gb_s / 1000, tflop_s, tflop_s], mode="lines", name=name,
                line={"color": GREY, "width": 2}, hoverinfo="name",
            )
        )  # fmt: skip
    return lines
