from __future__ import annotations

import logging

import pytest

from htagraph.cli.messages import show_messages

logger = logging.getLogger("htagraph.tests")


def test_what_is_logged_is_a_line_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("htagraph"), "filters", [])
    show_messages()
    show_messages()  # which shows nothing twice
    logger.info("compiling %s", "once")
    logger.warning("no place")
    logger.debug("details")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "htagraph: compiling once\nhtagraph: warning: no place\n"
