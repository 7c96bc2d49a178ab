"""Repairs of the text of one damaged event: each undoes one kind of damage that writers are known to do.

Every repair takes time in proportion to the text, whatever the text is: no pattern can match one character in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

__all__ = ["MEANING", "candidates"]

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"?'  # to the end of the text if it is not closed, so that no quote is tried twice
_BARE = re.compile(_STRING + rb"|(?<![\w.+-])([-+]?(?:inf|nan|infinity)|N/A)(?=\s*[,}\]])", re.IGNORECASE | re.DOTALL)
_STRAY_COMMA = re.compile(_STRING + rb"|(,)(?=\s*[,}\]])|(?<=[{\[])(\s*,)", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NAME = re.compile(rb'"name"\s*:\s*"')
_NAME_END = re.compile(rb'"\s*,\s*"(?:ph|cat|pid|tid|ts|dur|s|id|args)"\s*:')
_QUOTE = re.compile(rb'(?<!\\)"')
_ARGS = re.compile(rb',\s*"args"\s*:')
_TWO_BRACES = re.compile(rb"\}(?=\s*(\}))")
_END = re.compile(rb"(?<=\})\s*(?:(?:\}\s*)?\Z|\]\s*(?:[,}]|\Z))")
_SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})", re.DOTALL)
_NO_ARGS = re.compile(rb',\s*"args"\s*:\s*(?:(?:null|"[^"]*"|\[\s*\])\s*)?(?=\})')


def candidates(body: bytes, *, whole: bool = True) -> Iterator[tuple[list[str], bytes]]:
    """Yield (codes of the repairs made, repaired text): each repair alone, then two, three and more together.

    Args:
        body: the text of a damaged event, and maybe more after it.
        whole: False if the event may go on behind the text; it is then not tried without its arguments.
    """
    mends = _MENDS if whole else _MENDS[:-1]
    for name, mend in mends:
        mended = mend(body)
        if mended != body:
            yield [name], mended
    names: list[str] = []
    for name, mend in mends:
        mended = mend(body)
        if mended != body:
            names, body = [*names, name], mended
            yield names, mended


def _escape_name(body: bytes) -> bytes:
    """Return the text with the quotes inside the first name escaped; the name ends before a key of the event."""
    start = _NAME.search(body)
    end = _NAME_END.search(body, start.end()) if start else None
    if not start or not end:
        return body
    return body[: start.end()] + _QUOTE.sub(rb'\\"', body[start.end() : end.start()]) + body[end.start() :]


def _quote_bare(body: bytes) -> bytes:
    return _BARE.sub(lambda match: b'"' + match[1] + b'"' if match[1] else match[0], body)


def _drop_stray_commas(body: bytes) -> bytes:
    return _STRAY_COMMA.sub(lambda match: b"" if match[1] or match[2] else match[0], body)


def _replace_lone_surrogates(body: bytes) -> bytes:
    return _SURROGATES.sub(lambda match: b"\\ufffd" if match[1] else match[0], body)


def _drop_args(body: bytes) -> bytes:
    """Return the text without the arguments of its first event: up to the last two braces that end an event."""
    start = _ARGS.search(body)
    if not start:
        return body
    for braces in reversed(list(_TWO_BRACES.finditer(body, start.end()))):
        if _END.match(body, braces.end(1)):
            body = body[: start.start()] + b"}" + body[braces.end(1) :]
            break
    return _NO_ARGS.sub(b"", body)


_MENDS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("bad_utf8", lambda body: body.decode("utf-8", "replace").encode()),
    ("control_characters", lambda body: _CONTROL.sub(b" ", body)),
    ("non_finite", _quote_bare),
    ("stray_comma", _drop_stray_commas),
    ("unescaped_quotes", _escape_name),
    ("slashed_quotes", lambda body: body.replace(b'/"', b'\\"')),
    ("lone_surrogate", _replace_lone_surrogates),
    ("args_dropped", _drop_args),
)
MEANING = {
    "bad_utf8": "text is not valid UTF-8; bad bytes replaced",
    "control_characters": "control characters in a string; replaced by spaces",
    "non_finite": "inf, nan or N/A without quotes; read as text",
    "stray_comma": "an extra comma; ignored",
    "unescaped_quotes": "quotes inside a name are not escaped; repaired",
    "slashed_quotes": 'quotes in args are written /" instead of \\"; repaired',
    "lone_surrogate": "half of a surrogate pair in a text; replaced",
    "args_dropped": "the args of an event are unreadable; the event is kept without them",
}
"""What each repair is, for users, by its code."""
