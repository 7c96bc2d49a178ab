"""Whether a job became slower: the comment on a pull request, and the check for tests of users."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from htagraph.analyses.differences.diff import Diff
from htagraph.analyses.differences.step_change import StepChange, step_change
from htagraph.core.errors import printable
from htagraph.findings.differences.pair import compared
from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import time_text
from htagraph.graph.load import load
from htagraph.trace.discover import runs_of

__all__ = ["assert_no_slower", "comment", "plain"]

_BAR = 24
"""Characters of the longest bar. Chosen: a line of the figure fits beside a name on a telephone. Doubled, no."""
_MIN_SHARE = 0.02
"""Share of the largest change from which a category has a bar. Chosen: less is no whole character. Doubled, bars of one
character vanish."""
_MARKUP = re.compile(r"([\\`*_{}\[\]|~])")
_LIVE = re.compile(r"(?<=[@#])(?=\w)|(?<=:/)(?=/)|(?<=www)(?=\.)")
"""Where names would notify people, link to issues, or become addresses."""


def comment(
    result: Diff,
    change: StepChange,
    exceeded: Sequence[str],
    *,
    limits: Sequence[str] = (),
    unknown: Sequence[str] = (),
) -> str:
    """Return a difference as Markdown, for a pull request. Names are data: they cannot link, notify or format.

    `unknown` are the limits of which the recordings cannot tell whether they are exceeded.
    """
    unit = result.unit
    lost = compared(result.parts).lost
    if lost and change.is_incomplete:
        mark = "❌" if exceeded else "⚪"
        return "\n".join([f"### {mark} Cannot tell: one of the recordings is incomplete", "", *_said(result), ""])
    categories = result.summary().query("group == 'category'")
    largest = float(categories["change_us"].abs().max()) if len(categories) else 0.0
    rows = categories[(categories["change_us"].abs() > _MIN_SHARE * largest) & (not change.is_noise) & (not lost)]
    by_key = {} if change.is_empty else dict(zip(categories["key"], categories["change_us"], strict=True))
    lines = [f"### {_verdict(change, by_key, exceeded, limits, unknown)}", ""]
    lines += [f"| per {unit} | before | after | change |", "|---|---:|---:|---:|"]
    lines += [_row(f"**{unit} time**", change.before_us, change.after_us, f"**{change.text()}**")]
    lines += [
        _row(plain(str(row["key"])), row["before_us"], row["after_us"], _signed(row["change_us"]))
        for row in rows.to_dict("records")
    ]
    bars = [max(1, round(abs(us) / largest * _BAR)) * ("█" if us > 0 else "░") for us in rows["change_us"]]
    pairs = zip(rows["key"], rows["change_us"], bars, strict=True)
    figure = [f"{key:<15}{_signed(us):>10}  {bar}" for key, us, bar in pairs]
    if figure:
        lines += ["", f"Where the change lies on the critical path, per {unit}:", "", "```text", *figure, "```"]
    lines += ["", *_said(result)]
    return "\n".join(lines) + "\n"


def _said(result: Diff) -> list[str]:
    """Return the sentences of a difference as a list in Markdown."""
    return [f"- {plain(sentence)}" for sentence in result.sentences()[:MAX_LISTED]]


def plain(text: str) -> str:
    r"""Return a text that Markdown shows as it is, without links, mentions or markup.

    Example:
        >>> plain("gemm<float> *x* `y`")
        'gemm&lt;float&gt; \\*x\\* \\`y\\`'
    """
    escaped = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LIVE.sub("\N{ZERO WIDTH SPACE}", _MARKUP.sub(r"\\\1", escaped))


def _verdict(
    change: StepChange, by_key: dict[str, float], exceeded: Sequence[str], limits: Sequence[str], unknown: Sequence[str]
) -> str:
    named = unknown if set(exceeded) <= set(unknown) else exceeded
    if named:
        of = {each: each.partition(">")[0].strip() for each in named}  # a category, or the step time
        changed = {
            each: f"{key} {_signed(by_key[key])}" if key in by_key else change.text() for each, key in of.items()
        }
        text = ", ".join(f"{plain(how)} ({plain(each)})" for each, how in changed.items())
        word = "Cannot tell" if named is unknown else "Slower than allowed"
        return f"{'❌' if exceeded else '⚪'} {word}: {text}"
    if not change.is_known:
        return f"⚪ Step time {change.text()}"
    is_unknown = change.is_empty or change.is_incomplete
    text = change.text() if is_unknown else change.interval()
    word = "No change beyond noise" if change.is_noise else ("Slower" if change.percent > 0 else "Faster")
    within = ", within the limits" if limits else ""
    mark = "⚪" if change.is_noise else "✅" if change.percent < 0 or limits else "⚠️"
    return f"{mark} {word}{within}: {text}"


def _row(name: str, before_us: float, after_us: float, change: str) -> str:
    return f"| {name} | {time_text(before_us)} | {time_text(after_us)} | {change} |"


def _signed(us: float) -> str:
    return f"{'+' if us >= 0 else '-'}{time_text(abs(us))}"


def assert_no_slower(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    *,
    percent: float = 0.0,
    steps: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    strict: bool = False,
) -> StepChange:
    """Fail if the steps of a job take longer than before, by more than a limit and by more than noise.

    Args:
        before: a folder with the traces of a job, or a folder of such folders: several runs of it.
        after: the same for the job as recorded now.
        percent: how much longer the usual step may take, percent of the step before.
        steps: only from the first to the last of these steps, of both.
        ranks: only these ranks.
        strict: also fail where the recordings cannot tell: too few steps, or steps that differ by more than `percent`.

    Returns:
        The change of the usual step and its 99 % interval.

    Raises:
        AssertionError: the job is slower, or one of the jobs has no recording; the message says by how much the job is
            slower, and which command says why.
        HtagraphError: the traces cannot be read.

    Example:
        >>> import htagraph as hg
        >>> hg.assert_no_slower("data/demo", "data/demo").text()
        '+0.0 % ± ... %, within noise'
    """
    sides = [[load(run) for run in runs_of(os.fspath(path))] for path in (before, after)]
    change = step_change(sides[0], sides[1], steps=steps, ranks=ranks)
    if change.fails(percent, strict=strict):
        msg = f"step time: {change.text()} (limit +{percent:g} %); why: htagraph diff {before} {after}"
        raise AssertionError(msg)
    return change
