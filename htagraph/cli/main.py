"""The command line: results on stdout, everything else on stderr, exit code 0, 1 (bad input) or 2 (usage).

``diff --fail-on`` leaves with 3 where a limit is exceeded.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from htagraph.cli.verbs import Verbs
from htagraph.core.errors import HtagraphError, printable
from htagraph.core.tables import SCHEMA_VERSION

__all__ = ["app", "error_envelope", "main", "wants_json"]

_COLLECT_AFTER = 500_000
"""Objects made, less those freed, before Python looks for cycles among them. Measured: at its own 700, that takes 7 %
of `summary data/demo`, at 50,000 3 %, most of it while modules are imported. Doubled, nothing more is won."""

app = typer.Typer(
    name="htagraph", cls=Verbs, help="Why is this PyTorch job slow? Answers from the Kineto traces of all its ranks.",
    no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}, pretty_exceptions_enable=False,
)  # fmt: skip

_OPTIONS = ("--format", "-f")
_JSON = ("--format=json", "-fjson")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,  # noqa: FBT002 - typer
) -> None:
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"htagraph {version_of('htagraph')}")
        raise typer.Exit


def main() -> None:
    """Run the command line; errors of the user's input become one line."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them reads what every package declares
    atexit.register(gc.freeze)  # else Python looks for cycles among all objects before it leaves: a fifth of its time
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        _run()
    finally:
        gc.set_threshold(*before)
        with suppress(ValueError):  # elsewhere than on the main thread
            # Python is about to leave: an exception raised by a handler would be printed as a traceback
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without µ and • still gets its answer
            stream.reconfigure(errors="replace")
    with suppress(ValueError):  # elsewhere than on the main thread
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # as Ctrl-C: temporary files go
    if sys.stdout is None:  # closed by the caller: there is nowhere to answer to
        sys.exit(1)
    try:
        app()
    except SystemExit as left:
        if left.code == typer.BadParameter.exit_code and left.__context__ is not None:  # what click said of the words
            _explain(getattr(left.__context__, "message", "") or str(left.__context__), typer.BadParameter.exit_code)
        raise
    except HtagraphError as error:
        _complain(str(error))
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _complain("not enough memory; read less at once, such as --ranks 0-7 or --steps 4, or use a larger machine")
    except OSError as error:
        _complain(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))


def _complain(message: str) -> None:
    line = printable(re.sub(r"(\S{99})\S{900,}", r"\1…", " ".join(message.split())))  # a word without an end is cut
    _explain(line, 1)
    typer.echo(f"htagraph: error: {line}", err=True)
    sys.exit(1)


def _explain(message: str, code: int) -> None:
    """Print what is wrong as JSON, if that is how results were asked for."""
    words = sys.argv[1:]
    if wants_json(words):
        typer.echo(json.dumps(error_envelope(message, words, code), indent=2))


def wants_json(words: Sequence[str]) -> bool:
    """Return whether the words of a command line ask for JSON.

    Example:
        >>> wants_json(["summary", "x", "-f", "json"]), wants_json(["summary", "x", "-o", "a.json"])
        (True, False)
    """
    own = words[: words.index("--")] if "--" in words else words
    return any(word in _JSON for word in own) or any(a in _OPTIONS and b == "json" for a, b in pairwise(own))


def error_envelope(message: str, words: Sequence[str], code: int) -> dict[str, Any]:
    """Return the envelope of a command that failed, see `schema.error_model`; null is what there is none of.

    Example:
        >>> error_envelope("a.json: no such file; give another", ["idle", "a.json"], 1)["error"]["hint"]
        'give another'
    """
    from importlib.metadata import version

    hint = message.rpartition("; ")[2] if "; " in message else None
    error = {"message": message, "file": _file_of(message, words), "hint": hint, "exit_code": code}
    command = next((word for word in words if not word.startswith("-")), None)
    return {
        "schema_version": SCHEMA_VERSION, "tool": "htagraph", "tool_version": version("htagraph"), "command": command,
        "error": error,
    }  # fmt: skip


def _file_of(message: str, words: Sequence[str]) -> str | None:
    """Return the path that a message begins with, if it is one that was given or is there."""
    first = message.partition(": ")[0] if ": " in message else ""
    first = first.removeprefix("--output ")
    try:
        return first if first and (first in words or Path(first).exists()) else None
    except (OSError, ValueError):  # too long for a path, or with characters that none has
        return None
