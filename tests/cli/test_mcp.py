"""``htagraph mcp``: a client starts it and asks over standard input and output."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from htagraph.cli.mcp import read_change
from htagraph.core.errors import HtagraphError
from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY


def test_a_client_lists_the_tools_and_asks_for_the_summary() -> None:
    pytest.importorskip("mcp.server.mcpserver")
    import anyio
    from mcp import Client, StdioServerParameters, stdio_client

    async def asked() -> tuple[list[str], str]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "htagraph", "mcp", str(REPOSITORY / "data" / "demo")],
            env=dict(os.environ), cwd=REPOSITORY,
        )  # fmt: skip
        async with Client(stdio_client(server)) as client:
            tools = await client.list_tools()
            answer = await client.call_tool("summary", {})
            return [tool.name for tool in tools.tools], str(getattr(answer.content[0], "text", ""))

    names, text = anyio.run(asked)
    assert {"jobs", "summary", "what_if", "diff", "event"} <= set(names)
    assert json.loads(text)["results"]["verdict"]


def test_without_the_package_it_says_what_to_install(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    one_line_of_error(run("mcp", str(REPOSITORY / "data" / "demo")), "pip install 'htagraph[mcp]'")


def test_a_folder_that_is_not_there_is_an_error(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver")
    one_line_of_error(run("mcp", str(tmp_path / "nothing")), "no such file or folder")


def test_changes_are_those_of_what_if() -> None:
    assert read_change("--scale name=*gemm*,rank=0:0.5").options == {"factor": 0.5, "name": "*gemm*", "rank": 0}
    assert read_change("no-launch-overhead").options == {}
    assert read_change("no-launch-overhead=rank=1").options == {"rank": 1}
    for text in ("", "--", "rm -rf /", "network", "infinite-host 3"):
        with pytest.raises(HtagraphError):
            read_change(text)
