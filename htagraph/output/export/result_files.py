"""The tables of a result as files: one per table, as CSV or Parquet."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pandas as pd

from htagraph.core.errors import HtagraphError
from htagraph.output.render import plain
from htagraph.output.whole_files import write_whole

__all__ = ["table_bytes", "write_tables"]


def write_tables(frames: Mapping[str, pd.DataFrame], folder: Path, form: Literal["csv", "parquet"]) -> list[Path]:
    """Write a file per table, each whole or not at all, and return their paths.

    Args:
        frames: tables by the names of the files.
        folder: where to write; it is made if it is not there, and files of these names in it are replaced.
        form: CSV as `pandas.read_csv` reads it, or Parquet.

    Raises:
        HtagraphError: pyarrow, which Parquet needs, is not installed.
        OSError: a file cannot be written.
    """
    contents = {folder / f"{name}.{form}": table_bytes(frame, form) for name, frame in frames.items()}
    folder.mkdir(exist_ok=True)
    for path, data in contents.items():
        write_whole(path, data)
    return list(contents)


def table_bytes(frame: pd.DataFrame, form: Literal["csv", "parquet"]) -> bytes:
    """Return a table as the content of a file; texts that are no Unicode have replacements.

    Raises:
        HtagraphError: pyarrow, which Parquet needs, is not installed.
    """
    if form == "csv":
        return plain(frame).to_csv(index=False).encode("utf-8", "replace")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        msg = "--format parquet needs pyarrow: pip install 'htagraph[parquet]'"
        raise HtagraphError(msg) from None
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    columns = {
        str(name): pa.array([_text(value) for value in frame[name]], type=pa.string())
        if name in texts
        else pa.array(frame[name], from_pandas=True)
        for name in frame.columns
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def _text(value: object) -> str | None:
    return None if value is None else str(value).encode("utf-8", "replace").decode()
