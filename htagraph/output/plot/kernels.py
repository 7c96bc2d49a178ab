"""Kernels, operators and modules: who takes time, on which rank longer, how late it starts, how much slack it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.naming import short_name, sibling_names
from htagraph.findings.phrases import plural, share_text, shortened, time_text
from htagraph.output.plot import style
from htagraph.output.scene import COLORS, KIND_COLORS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "kernel_breakdown", "kernel_distribution", "kernel_owners", "launch_stats", "module_breakdown",
    "operator_breakdown", "roofline", "slack",
]  # fmt: skip

_ROWS = 30
"""Kernels of a heat map of ranks, those with most time. Chosen: they fit a screen. Doubled, one scrolls."""
_OUTSIDE = {"module": "outside all modules and annotations", "operator": "outside all operators"}
_ON_HOSTS = frozenset({"op", "host_communication"})
_BY_KIND = ("kind", "name")
_OTHERS = "\0"
"""The name of the tile that holds what is small: no name of a trace, which has no NUL after it was cleaned."""
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
        The figure, not shown. The size of a tile is the time of the device work that the operator launched itself; in a
        job without device work, the operator's own time on the host; pointing at it gives the time in µs, ms or s.

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
        The figure, not shown. The size of a tile is the time of the device work launched in the module, but not in
        modules inside it; in a job without device work, the own time of hosts; pointing at it gives the time in µs, ms
        or s.

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


def _by_owner(table: pd.DataFrame, what: str) -> Figure:
    table = table.assign(name=table["name"].replace("", _OUTSIDE[what]), kind=table["kind"].replace("", "neither"))
    on_device = not len(table) or float(table["device_us"].sum()) > 0
    if on_device:
        about = f"Device work of all ranks by the innermost {what} that launched it."
        return _treemap(table, _BY_KIND, "device_us", "device time", about)
    about = f"Own time on the threads of all ranks, by {what}: there was no device work."
    return _treemap(table, _BY_KIND, "host_self_us", "own time on the host", about)


def _treemap(table: pd.DataFrame, levels: Sequence[str], value: str, what: str, about: str) -> Figure:
    """Return a treemap of the sums of a column of times by columns of names, the outermost first."""
    total = float(table[value].sum()) if len(table) else 0.0
    if not total > 0:
        return style.nothing("No work was recorded", about)
    sums = table.groupby(list(levels), sort=False)[value].sum()
    sums = sums[sums > 0].sort_values(ascending=False, kind="stable")
    times = _tiles(sums)
    paths, kinds = [*times], dict(zip(table["name"], table["kind"], strict=True))
    number = {path: str(at) for at, path in enumerate(paths)}
    by_kind, whole = levels == _BY_KIND, float(sums.sum())
    kind_of = [path[0] if by_kind else kinds[path[-1]] if len(path) == len(levels) else "" for path in paths]
    colors = [KIND_COLORS.get(kind, COLORS["grey"]) if kind else COLORS["light"] for kind in kind_of]
    first = [style.plain(short_name(str(name)), style.Sizes.name) or "(no name)" for name in sums.index[0]]
    name = first[-1] if by_kind else " > ".join(first)
    finding = f"Most {what}: {name}, {100 * float(sums.iloc[0]) / total:.0f} % of {time_text(total)}"
    tiles = {
        "type": "treemap", "ids": [*number.values()], "values": [*times.values()], "branchvalues": "total",
        "labels": [_label(path, is_kind=by_kind and len(path) == 1) for path in paths],
        "parents": [number.get(path[:-1], "") for path in paths],
        "hovertext": [_hover(path, levels, us, whole) for path, us in times.items()], "hoverinfo": "text",
        "texttemplate": "%{label}<br>%{percentRoot:.1%}", "tiling": {"pad": 1}, "pathbar": {"thickness": 18},
        "marker": {"colors": colors, "line": {"width": 1, "color": "rgba(128,128,128,0.6)"}},
        "textfont": {"size": 11, "color": [style.text_color(color) for color in colors]},
    }  # fmt: skip
    return style.drawn(
        [tiles], finding, about, height=520, margin={"l": 8, "r": 8, "b": 8}, uniformtext={"minsize": 9, "mode": "hide"}
    )


def _tiles(sums: pd.Series[float]) -> dict[tuple[str, ...], float]:
    """Return the time of each tile by its names, outermost first; the smallest, which cannot be read, are one tile."""
    outer = sums.groupby(level=0, sort=False).sum().sort_values(ascending=False, kind="stable")
    kept = set(outer.index[:16])
    times: dict[tuple[str, ...], float] = {}
    for number, (names, us) in enumerate(zip(sums.index.tolist(), sums.tolist(), strict=True)):
        path = tuple(map(str, names)) if number < 60 else (str(names[0]), _OTHERS)
        path = path if names[0] in kept else (_OTHERS,)
        for depth in range(1, len(path) + 1):
            times[path[:depth]] = times.get(path[:depth], 0.0) + us
    return times


def _label(path: Sequence[str], *, is_kind: bool) -> str:
    """Return the label of a tile, in lines that end where its words do: plotly leaves out labels that do not fit."""
    if path[-1] == _OTHERS:
        return "smaller ones"
    word = (path[-1].replace("_", " ") if is_kind else short_name(path[-1])) or "(no name)"
    lines = [""]
    for part in re.findall(r"[^_:. ]+[_:. ]*|[_:. ]+", shortened(style.plain(word), 32)):
        if lines[-1] and len(lines[-1]) + len(part) > 18:
            lines.append("")
        lines[-1] += part
    return "<br>".join(map(style.escaped, lines))


def _hover(path: Sequence[str], levels: Sequence[str], us: float, whole: float) -> str:
    names = ["smaller ones" if name == _OTHERS else style.hover_name(name) for name in path]
    words = ["kernel" if level == "name" else level for level in levels]
    lines = [f"{word}: {name}" for word, name in zip(words, names, strict=False)]
    return f"{'<br>'.join(lines)}<br>{time_text(us)}, {100 * us / whole:.1f} % of all"


def kernel_distribution(table: pd.DataFrame) -> Figure:
    """Return the figure of which ranks take longer in which kernels: a heat map of kernels by rank.

    Args:
        table: result of `htagraph.kernel_distribution`.

    Returns:
        The figure, not shown: mean durations of the 30 kernels with most time, relative to the median of the ranks;
        pointing at a cell gives the durations in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.kernel_distribution(hg.kernel_distribution(hg.load("data/demo")))
        >>> figure.layout.title.text.split("<br>")[0]
        'Rank 2 is the slowest in all 21 computation kernels shown'
    """
    about = (
        f"Mean duration over the median of the ranks, of the {_ROWS} kernels with most time. Ranks that arrive first "
        "wait in communication kernels: there, longer is not slower."
    )
    if not len(table):
        return style.nothing("No kernels were recorded", about)
    kernels = table[["kind", "name"]].drop_duplicates().head(_ROWS)
    shown = kernels.merge(table, on=["kind", "name"])
    ranks = sorted(shown["rank"].unique().tolist())
    keys = [*zip(shown["kind"], shown["name"], shown["rank"], strict=True)]

    def cells(values: Iterable[Any], none: object) -> list[list[Any]]:
        cell = dict(zip(keys, values, strict=True))
        return [[cell.get((*kernel, rank), none) for rank in ranks] for kernel in kernels.itertuples(index=False)]

    z = np.array(cells(shown["relative"], np.nan), np.float64)
    hover: list[list[str]] | str = "%{y}<br>rank %{x}: %{z:.2f} × the median"
    if len(ranks) <= style.Sizes.cells:
        mean = "{name}<br>rank {rank}: {mean_us} on average, {relative:.2f} × the median"
        hover = cells(style.hover_of(shown, mean + "<br>{count:,} times, {total_us} in all"), "did not run")
    # 10 % is pale, and a rank that is twice as slow is not paler for one that is ten times as slow
    far = min(max(0.5, float(np.nanpercentile(np.abs(z - 1), 95))), 1.0) if np.isfinite(z).any() else 0.5
    labels = style.row_labels(sibling_names(kernels["name"].tolist()))
    heat = style.heat_map(
        [*map(str, ranks)], labels, z, hover, zmid=1, zmin=1 - far, zmax=1 + far, colorscale=style.DIVERGING,
        colorbar=style.color_bar("× the median of the ranks"), xgap=int(len(ranks) <= style.Sizes.cells), ygap=1,
    )  # fmt: skip
    return style.drawn(
        [heat], _uneven(shown, len(ranks)), about, height=90 + 22 * len(kernels),
        xaxis=style.rank_axis(ranks),
        yaxis={"autorange": "reversed", "showgrid": False, "tickfont": {"size": 11}, "dtick": 1},
    )  # fmt: skip


def _uneven(shown: pd.DataFrame, ranks: int) -> str:
    """Return which rank is the slowest in most of the kernels that compute, if one is."""
    if ranks < 2:
        return "Mean durations of kernels; only one rank was read, so there is none to compare it with"
    kernels = shown[shown["kind"] != "communication"].drop_duplicates(["kind", "name"])
    kernels = kernels[kernels["kind"].isin(["computation", "op"])]  # of which means of one device differ by up to 5 %
    slow = kernels.loc[kernels["spread"] >= 1.05, "slowest_rank"].value_counts()
    word = "operators" if (kernels["kind"] == "op").any() else "computation kernels"
    if len(slow) and 2 * int(slow.iloc[0]) > len(kernels):
        count, whole = int(slow.iloc[0]), len(kernels)
        of = f"all {whole}" if count == whole else f"{count} of the {whole}"
        return f"Rank {slow.index[0]} is the slowest in {of} {word} shown"
    return f"No rank is the slowest in most of the {len(kernels)} {word} shown"


_SIDES = ("bottom left", "top left", "bottom right", "top right")
"""Where names stand beside their points, in turn, so that names of points that lie close do not cover each other."""
_NAMED_POINTS = 4
"""Points of a roofline with a name beside them. Chosen: more cover each other. Doubled, names lie on names."""


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
    known = table[(table["intensity"] > 0) & (table["tflop_s"] > 0)].head(3000)  # a browser draws as many at once
    if not len(known):
        why = "No operator's operations and bytes are known: profile with record_shapes=True"
        return style.nothing(why, about)
    longest = float(known["time_us"].max())
    points = []
    for bound, (word, color) in _BOUNDS.items():
        rows = known[known["bound"] == bound]
        marker = {
            "size": (40 * (rows["time_us"] / longest) ** 0.5).to_numpy(), "sizemin": 4, "color": color, "opacity": 0.7,
            "line": {"width": 1, "color": style.GREY},
        }  # fmt: skip
        point = {
            "type": "scatter", "name": word, "x": rows["intensity"], "y": rows["tflop_s"], "mode": "markers",
            "marker": marker, "hovertext": style.hover_of(rows, _point_says), "hoverinfo": "text",
        }  # fmt: skip
        points += [point] if len(rows) else []
    return style.drawn(
        [*points, _labels_of(known), *_roofs(known)], _finding(known), about, height=460, showlegend=True,
        legend={"itemsizing": "constant"},
        xaxis={"title": "arithmetic intensity (flop/B)", "type": "log", "exponentformat": "SI", "dtick": 1},
        yaxis={"title": "TFLOP/s", "type": "log", "exponentformat": "power", "dtick": 1},
    )  # fmt: skip


def _finding(known: pd.DataFrame) -> str:
    """Return which operator loses the most time below its roof; without peaks, which one takes the most time."""
    lost = _time_lost(known)
    of_operator = lost.clip(lower=0.0).groupby(known["operator"], sort=False).transform("sum")
    rows = known.assign(lost=lost, of_operator=of_operator)
    first = rows.sort_values(["of_operator", "lost"], ascending=False, kind="stable").iloc[0]
    name = style.plain(str(first["operator"]), 60)
    reached = float(first["tflop_s"])
    if first["roof_percent"] > 0:
        share = f"{share_text(float(first['roof_percent']))} of what {first['bound']} allows"
        return f"{name} loses the most time below the roof: it reaches {share} ({reached:.3g} TFLOP/s)"
    return f"{name}, the row with most time, reaches {reached:.3g} TFLOP/s; the peaks of its device are not known"


def _time_lost(known: pd.DataFrame) -> pd.Series[float]:
    """Return the time that each row loses below its roof, µs; its whole time where no peaks are known."""
    has_roof = known["roof_percent"].notna()
    lost = known["time_us"] * (1 - known["roof_percent"].clip(upper=100) / 100)
    return lost.where(has_roof, -1.0) if has_roof.any() else known["time_us"]


def _labels_of(known: pd.DataFrame) -> dict[str, Any]:
    """Return the names beside the points that lose the most time, one for each operator."""
    order = _time_lost(known).sort_values(ascending=False).index
    rows = known.loc[order].drop_duplicates("operator").head(_NAMED_POINTS)
    return {
        "type": "scatter",
        "x": rows["intensity"],
        "y": rows["tflop_s"],
        "mode": "text",
        "showlegend": False,
        "text": style.row_labels(rows["operator"].tolist()),
        "hoverinfo": "skip",
        "cliponaxis": False,
        "textposition": [_SIDES[place % len(_SIDES)] for place in range(len(rows))],
    }


def _point_says(row: Mapping[str, Any]) -> str:
    shapes = "<br>{shapes}" if row["shapes"] else ""
    roof = "<br>{roof_percent:.0f} % of the roof" if row["roof_percent"] > 0 else ""
    speed = "{intensity:.3g} flop/B, {tflop_s:.3g} TFLOP/s"
    return f"{{operator}}{shapes}<br>rank {{rank}}, {{count:,}} times, {{time_us}}<br>{speed}{roof}"


def _roofs(known: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one line per pair of limits: the memory's slope up to the ridge, then the level of the arithmetic."""
    lines = []
    for gb_s, tflop_s in known[["peak_gb_s", "peak_tflop_s"]].dropna().drop_duplicates().itertuples(index=False):
        ridge = 1000 * tflop_s / gb_s
        left, right = min(known["intensity"].min(), ridge) / 10, max(known["intensity"].max(), ridge) * 10  # a decade
        lines.append({
            "type": "scatter", "x": [left, ridge, right], "y": [left * gb_s / 1000, tflop_s, tflop_s], "mode": "lines",
            "name": f"{tflop_s:g} TFLOP/s,<br>{gb_s:g} GB/s", "hoverinfo": "name",
            "line": {"color": style.GREY, "width": 2},
        })  # fmt: skip
    return lines


_BOUNDS_US = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
"""Lower ends, µs. Chosen: half a decade, so that all of them have a label of their own at a width of 700 pixels."""
CLASS_LABELS = [
    "0", "< 1 µs", "1 µs", "3 µs", "10 µs", "30 µs", "100 µs", "300 µs", "1 ms", "3 ms", "10 ms", "30 ms", "100 ms",
    "300 ms", "1 s",
]  # fmt: skip
"""Of the classes: what belongs to them is at least that long."""
_GROUPS = {
    "computation": "computation", "communication": "communication", "host_communication": "communication",
    "memory": "memory",
}  # fmt: skip
"""Names in the legend by kind of activity; all others belong to the host."""


def launch_stats(table: pd.DataFrame) -> Figure:
    """Return the figure of launch delays and of the lengths of launch calls: two histograms over all ranks.

    Args:
        table: result of `htagraph.launch_stats`.

    Returns:
        The figure, not shown. Classes of time are half a decade wide, from 0 and less than 1 µs upwards.

    Example:
        >>> import htagraph as hg
        >>> table = hg.launch_stats(hg.load("data/demo"))
        >>> figure = hg.plot.launch_stats(table)
        >>> sum(int(bar.y.sum()) for bar in figure.data if bar.xaxis == "x") == len(table)
        True
    """
    about = "Top: from the end of the launch call to the start of its work. Bottom: how long the launch calls take."
    if not len(table):
        return style.nothing("No launch of device work was recorded", about)
    of_calls = counts_of(table.drop_duplicates("launch")["launch_us"].to_numpy())
    of_kinds = {
        kind: counts_of(table.loc[table["work_kind"] == kind, "delay_us"].to_numpy())
        for kind in table["work_kind"].value_counts().index
    }
    shown = used_classes([*of_kinds.values(), of_calls])  # the same for both, so that they can be compared
    bars = [_bars(kind, counts, shown, KIND_COLORS.get(kind, COLORS["yellow"])) for kind, counts in of_kinds.items()]
    above = [bar | {"xaxis": "x", "yaxis": "y"} for bar in bars]
    below = _bars("launch calls", of_calls, shown, COLORS["yellow"]) | {"xaxis": "x2", "yaxis": "y2"}
    finding = (
        f"Half of {plural(len(table), 'kernel')} and copies start within {time_text(table['delay_us'].median())} of "
        f"their launch, the latest after {time_text(table['delay_us'].max())}"
    )
    return style.drawn(
        [*above, below], finding, about, height=520, barmode="stack", bargap=0.1, showlegend=True,
        xaxis=_axis("delay, at least", shown) | {"anchor": "y"},
        yaxis={"domain": [0.62, 1.0], "title": "kernels and copies", "anchor": "x"},
        xaxis2=_axis("length of the call, at least", shown) | {"anchor": "y2"},
        yaxis2={"domain": [0.0, 0.36], "title": "launch calls", "anchor": "x2"},
    )  # fmt: skip


def slack(table: pd.DataFrame) -> Figure:
    """Return the figure of how many activities have how much slack: a histogram by kind.

    Args:
        table: result of `htagraph.slack`.

    Returns:
        The figure, not shown. Classes of slack are half a decade wide, from 0 and less than 1 µs upwards.

    Example:
        >>> import htagraph as hg
        >>> table = hg.slack(hg.load("data/demo"))
        >>> sum(int(bar.y.sum()) for bar in hg.plot.slack(table).data) == len(table)
        True
    """
    about = "Activities by slack: how much later each may end without the job ending later."
    if not len(table):
        return style.nothing("No activity that does work was recorded", about)
    group = table["kind"].map(_GROUPS).fillna("host")
    counts = {
        name: counts_of(table.loc[group == name, "slack_us"].to_numpy(np.float64))
        for name in (*dict.fromkeys(_GROUPS.values()), "host")
    }
    shown = used_classes([*counts.values()])
    bars = [
        _bars(f"of kind {name}", each, shown, KIND_COLORS[name], "slack") | {"name": name}
        for name, each in counts.items()
        if each.any()
    ]
    none = int((table["slack_us"] <= 0).sum())
    finding = (
        f"{none:,} of {len(table):,} activities have no slack: if one of them ends later, so does the job"
        if none
        else f"Each of {len(table):,} activities has some slack"
    )
    return style.drawn(
        bars, finding, about, barmode="stack", bargap=0.1, showlegend=True, xaxis=_axis("slack, at least", shown),
        yaxis_title="activities",
    )  # fmt: skip


def _bars(what: str, counts: npt.NDArray[np.int64], shown: slice, color: str, of: str = "") -> dict[str, Any]:
    """Return a histogram of what is counted by class; `of` is what the times are, where the axis does not say it."""
    labels = CLASS_LABELS[shown]
    hover: list[str] = []
    for label, count in zip(labels, counts[shown], strict=True):
        exact = label == "0" or label.startswith("<")
        length = style.escaped(label) if exact else f"{label} or more"
        words = f"{of} {'' if exact else 'of '}{length}" if of else length
        hover.append(f"{count:,} {what}<br>{words}")
    return {
        "type": "bar", "name": what.replace("_", " "), "x": labels, "y": counts[shown], "marker_color": color,
        "hovertext": hover, "hoverinfo": "text",
    }  # fmt: skip


def counts_of(times: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how many times, in µs, fall into each class; what is below 0 counts as 0.

    Example:
        >>> counts_of(np.array([0.0, 0.5, 1.0, 2.9, 5e6])).tolist()
        [1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    """
    place = np.where(times <= 0, 0, 1 + np.searchsorted(_BOUNDS_US, times, side="right"))
    return np.bincount(place.astype(np.int64), minlength=len(CLASS_LABELS)).astype(np.int64)


def used_classes(counts: Sequence[npt.NDArray[np.int64]]) -> slice:
    """Return the classes from the first to the last one that one of several histograms has something in.

    Example:
        >>> used_classes([counts_of(np.array([2.0])), counts_of(np.array([40.0]))])
        slice(2, 6, None)
    """
    used = np.flatnonzero(np.sum(counts, axis=0)) if len(counts) else np.zeros(0, np.int64)
    return slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)


def _axis(title: str, shown: slice) -> dict[str, Any]:
    """Return an axis of classes, in their order."""
    return {"type": "category", "categoryorder": "array", "categoryarray": CLASS_LABELS[shown], "title": title}
