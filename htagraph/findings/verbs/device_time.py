"""Sentences of ``htagraph kernels``: which work takes the most device time, and the command to run next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd

from htagraph.core.kinds import HOST, ActivityKind
from htagraph.core.naming import exact_glob, literal_glob, short_name
from htagraph.findings.limits import LARGE_SHARE
from htagraph.findings.phrases import Suggestion, command_line, plural, shortened, spoken, time_text
from htagraph.graph.selection import named
from htagraph.trace.readers import Recorder
from htagraph.whatif.options import criteria_text

__all__ = ["OUTSIDE", "UNKNOWN", "launch_not_recorded", "top_entry"]

_PYTORCH = Recorder()
"""The recorder of most jobs: PyTorch's profiler."""
_LETTERS = 80
"""Letters of a name in a sentence. Chosen: half a line of a terminal. Doubled, a name is as long as its sentence."""
_LONGEST_CRITERIA = 80
"""Letters of criteria that a command shows. Chosen: half a line of a terminal. Doubled, the command fills two lines."""
OUTSIDE = {
    "operator": "outside all operators", "shape": "outside all operators", "annotation": "outside all annotations",
    "module": "outside all modules and annotations",
}  # fmt: skip
"""The name of device work that belongs to nothing of the kind that it is summed up by."""
UNKNOWN = "launch not recorded"
"""The name of device work whose launch is not in the traces."""


def launch_not_recorded(count: int, percent: float) -> str:
    """Return the sentence about device work whose launch is missing; `percent` is of the device time, NaN of none."""
    work = "1 kernel or copy" if count == 1 else f"{count:,} kernels or copies"
    share = f" ({percent:.0f} % of device time)" if math.isfinite(percent) else ""
    return f"The launch of {work} was not recorded{share}: start recording earlier to see what launched that work."


def top_entry(
    table: pd.DataFrame,
    by: str,
    inputs: Sequence[str],
    saved_us: Callable[[str], float] | None = None,
    recorder: Recorder = _PYTORCH,
    calls_us: float = 0.0,
) -> list[str]:
    """Return the work with the most device time, and the command to run next; `saved_us` is the gain of half its time.

    The own time of operators leaves out the calls of the runtime inside them, `calls_us` in all.
    """
    spent = "device_us" if "device_us" in table else "total_us"
    if not len(table) or not table[spent].any():
        return ["No device work was recorded."]
    work = table[table["kind"] != ActivityKind.DEVICE_OTHER.label] if "kind" in table else table
    table = work if len(work) else table  # what frames or awaits work is none
    owned = table[table["name"] != ""]
    row = (owned if len(owned) and owned[spent].any() else table).iloc[0]
    outside = f"work {OUTSIDE.get(by, '')}"
    launches_work = row.get("device_count", 0) > 0
    on_host = not launches_work and row.get("kind") in {kind.label for kind in HOST}
    is_operator = row.get("kind") == ActivityKind.OP.label
    unit = "device time"
    if on_host:
        unit = "own time of all operators" if is_operator else "time"
    among = f" (not counting {outside})" if len(owned) < len(table) and row["name"] else ""
    several = table["ranks"].max() > 1 if "ranks" in table else True
    over_ranks = f" over {plural(int(row['ranks']), 'rank') if 'ranks' in row else 'all ranks'}" if several else ""
    what_if = _criteria(row, table["name"]) if by == "name" else ""
    is_worth = by != "name" or saved_us is None or _is_worth(row, saved_us, what_if)
    at_most = "at most " if row.get("at_most_us", 0.0) > 0 else ""
    family = "The family " if by == "family" else ""
    subject = family + (shortened(short_name(row["name"]), _LETTERS) or outside)
    without_calls = f" (calls of the runtime, {time_text(calls_us)}, not counted)" if calls_us and is_operator else ""
    return spoken(
        f"{subject} takes the most {unit}{without_calls}{among}: {at_most}{time_text(float(row[spent]))}{over_ranks}, "
        f"{row['share_percent']:.0f} %{'' if is_worth else ', but half of that would hardly make the job shorter'}.",
        _after_top(table, by, inputs, what_if) or _to_group(table, by, recorder) if is_worth
        else Suggestion("To see what bounds the job", command_line("critical-path", inputs)),
    )  # fmt: skip


def _criteria(row: pd.Series, names: pd.Series[str]) -> str:
    """Return the criteria of a row for a what-if: of operators, also the communication they ask for and wait for.

    Args:
        row: the row of the table.
        names: the names of all rows: a short name is a criterion only where no further row has it.
    """
    name = row["name"]
    if row.get("kind") == ActivityKind.OP.label:
        return criteria_text({"op": exact_glob(name)})
    brief = f"*{literal_glob(short_name(name))}*"
    is_named = named(names.tolist(), brief)
    is_exact = set(names[is_named]) == {name}
    kind = {"kind": row["kind"]} if "kind" in row else {}
    return criteria_text(kind | {"name": brief if is_exact else exact_glob(name)})


def _is_worth(row: pd.Series, saved_us: Callable[[str], float], what_if: str) -> bool:
    """Return whether the job is shorter by a good part of half of a row's time, as a row beside what binds is not.

    Args:
        row: the row of the table.
        saved_us: returns how much shorter the job is where the work that fits criteria takes half its time.
        what_if: the criteria of the row.
    """
    is_talk = row["kind"].endswith("communication")  # which has another command
    return is_talk or saved_us(what_if) >= LARGE_SHARE * row["total_us"] / row.get("ranks", 1) / 2


def _after_top(table: pd.DataFrame, by: str, inputs: Sequence[str], what_if: str) -> str:
    """Return the command to run next behind the work with the most device time; empty for none."""
    if by == "name":
        if "kind" in table and table["kind"].iloc[0].endswith("communication"):
            return Suggestion("To split it into waiting and transfer", command_line("collectives", inputs))
        if len(what_if) > _LONGEST_CRITERIA:
            by_operator = command_line("kernels", inputs, "--by", "operator")
            return Suggestion("To see which operators launch it", by_operator)
        half = command_line("what-if", inputs, "--scale", f"{what_if}:0.5")
        return Suggestion("To predict the job if it took half its time", half)
    return ""


def _to_group(table: pd.DataFrame, by: str, recorder: Recorder) -> str:
    """Return the names that a table by shape or by module lacks, and the setting to record; empty for nothing."""
    if by == "shape" and not (table["input_dims"] != "").any():
        how = recorder.of_pytorch(f": record them with {recorder.setting('shapes')}")
        return f"The traces have no input shapes{how}."
    if by == "module" and not (table["kind"] == "module").any():
        how = recorder.of_pytorch(f": record with {recorder.setting('modules')}")
        return f"The traces have no module frames, so annotations are shown instead{how}."
    return ""
