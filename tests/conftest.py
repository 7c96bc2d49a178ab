"""Fixtures that several test files share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from htagraph import cli
from tests.command_line import Ran


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs the command line in this process."""

    def call(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["htagraph", *map(str, arguments)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code or 0
        out, err = capsys.readouterr()
        return Ran(int(code), out, err)

    return call
