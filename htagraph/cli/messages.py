"""What the package logs, shown on stderr, a line each."""

from __future__ import annotations

import logging

import typer

__all__ = ["show_messages"]


class _OnStderr(logging.Handler):
    """Writes to stderr as it is when the message comes."""

    def emit(self, record: logging.LogRecord) -> None:
        word = "warning: " if record.levelno >= logging.WARNING else ""
        typer.echo(f"htagraph: {word}{record.getMessage()}", err=True)


def show_messages() -> None:
    """Show what is logged from now on."""
    logger = logging.getLogger("htagraph")
    if not any(isinstance(each, _OnStderr) for each in logger.handlers):
        logger.addHandler(_OnStderr())
        logger.setLevel(logging.INFO)
