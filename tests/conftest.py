"""Fixtures that several test files share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from htagraph.cli import main as cli
from tests.command_line import Ran

settings.register_profile("same", derandomize=True, phases=(Phase.explicit, Phase.generate))
settings.register_profile("new")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
"""The same examples in every run, so that what was good stays good; ``HYPOTHESIS_PROFILE=new`` looks for others and
makes them small."""


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
