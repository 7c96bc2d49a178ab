"""Tables as files that other programs read."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from htagraph.core.errors import HtagraphError
from htagraph.output.export.result_files import table_bytes, write_tables

TABLES = {
    "kernels": pd.DataFrame({"name": ['a,b\n"c"', "=1"], "total_us": [1.5, math.inf], "rank": [0, -1]}),
    "empty": pd.DataFrame({"rank": pd.array([], dtype="int64")}),
    "figures": pd.DataFrame({"straggler": [None], "by": ["name"]}),
}


def test_pandas_reads_each_csv(tmp_path: Path) -> None:
    files = write_tables(TABLES, tmp_path / "out", "csv")
    assert sorted(file.name for file in files) == ["empty.csv", "figures.csv", "kernels.csv"]
    read = pd.read_csv(tmp_path / "out" / "kernels.csv")
    assert read["rank"].tolist() == [0, -1]
    assert read["total_us"].isna().tolist() == [False, True]
    assert read["name"].tolist() == ['a,b "c"', "'=1"]
    assert list(pd.read_csv(tmp_path / "out" / "empty.csv").columns) == ["rank"]


def test_parquet_has_the_names_and_types_of_the_tables(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_tables(TABLES, tmp_path / "out", "parquet")
    read = pd.read_parquet(tmp_path / "out" / "kernels.parquet")
    assert read["name"].tolist() == TABLES["kernels"]["name"].tolist()
    assert read.dtypes["rank"] == "int64"
    assert pd.read_parquet(tmp_path / "out" / "figures.parquet")["straggler"].isna().all()


def test_without_pyarrow_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(HtagraphError, match=r"htagraph\[parquet\]"):
        table_bytes(TABLES["kernels"], "parquet")
