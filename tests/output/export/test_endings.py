"""Which names of written files are taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.core.errors import HtagraphError
from htagraph.output.export.endings import PERFETTO, PICTURES, check_ending, is_native


@pytest.mark.parametrize("name", ["o.json", "o.json.gz", "O.JSON", "a.pt.trace.json.gz", "o.pftrace", "o.pftrace.gz"])
def test_names_of_traces_are_taken(name: str) -> None:
    check_ending(Path("folder") / name, PERFETTO, "traces")
    assert is_native(name) == ("pftrace" in name)


@pytest.mark.parametrize("name", ["o.txt", "o", "o.gz", "o.json.bz2", "json"])
def test_other_names_are_refused_and_the_endings_listed(name: str) -> None:
    with pytest.raises(HtagraphError, match=rf"{name}: traces end in \.json, \.json\.gz, \.pftrace or \.pftrace\.gz"):
        check_ending(name, PERFETTO, "traces")
    with pytest.raises(HtagraphError, match=r"pictures end in \.svg, \.pdf, \.png, \.dot or \.gv"):
        check_ending(name, PICTURES, "pictures")
