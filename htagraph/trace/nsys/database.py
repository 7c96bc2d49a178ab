"""An exported database: opened for reading only, refused with a sentence where it is no export, read column by column.

SQLite gives any column values of any type, whatever was declared, and exports of each release have other tables and
columns. So every column is read as numbers or as texts, and `ABSENT` or an empty text stands for all else.
"""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import DamagedTraceError, NotATraceError, OtherFileError, TraceError
from htagraph.trace.remote import RemotePath, TracePath

__all__ = ["ABSENT", "SUFFIXES", "Database", "opened", "quoted", "recognizes", "words_of"]

SUFFIXES: tuple[str, ...] = (".sqlite", ".sqlite.gz")
"""How names of these files end."""
_REPORTS: Final = (".nsys-rep", ".qdrep")
"""How reports end that are not exported yet."""
ABSENT: Final = int(np.iinfo(np.int64).min)
"""What stands for a number that a row lacks: no time and no id is so small."""
_NEWEST: Final = 3
"""Major version of the export's schema (``EXPORT_SCHEMA_VERSION_MAJOR``) up to which files are read: that of the
releases to 2026. A later one may give columns another meaning. It is a version and cannot be doubled."""
_HEAD_BYTES: Final = 100
"""Bytes of a database's header, by SQLite's file format. It cannot be doubled."""
_INFLATED: Final = 64
"""Bytes of a database per byte of its gzipped file, at most. Chosen: exports shrink 3 to 10 times. Doubled, a hostile
file fills twice as much of the disk before it is refused."""


def recognizes(path: TracePath) -> bool:
    """Return whether a file is named as exports or reports of Nsight Systems are."""
    return path.name.endswith((*SUFFIXES, *_REPORTS))


class Database:
    """An open export."""

    def __init__(self, path: TracePath, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        # as SQLite stores the words of a table; another writer may put a comment between CREATE and VIRTUAL
        tables = self.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'")
        about = {table: self.rows(f"PRAGMA table_info({quoted(table)})") for (table,) in tables}
        self.columns = {table: tuple(row[1] for row in rows) for table, rows in about.items()}
        """The columns of each table; views and virtual tables are none, because they run what their author wrote."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            if "UTF-8" not in str(error) or self._connection.text_factory is not str:
                raise
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")  # three times as slow
        return self.rows(query, values)

    def count(self, table: str) -> int:
        """Return the number of rows of a table, 0 if it is not there."""
        # not count(*), which SQLite answers in one step, however long it takes: `_with_budget` could not end it
        return int(self.rows(f"SELECT total(1) FROM {quoted(table)}")[0][0]) if table in self.columns else 0

    def numbers(self, table: str, columns: Sequence[str], where: str = "") -> dict[str, Array]:
        """Return columns of integers by name, in the order of the rows; of those asked for, the columns that exist.

        `where` is a condition in SQL, see `of_process`.
        """
        have = [column for column in columns if column in self.columns.get(table, ())]
        same = self._constant(table, have, where)
        varied = [column for column in have if column not in same] or have[:1]
        if not have:
            return {}
        try:  # nearly every column holds integers alone, and asking for the type of each takes twice as long
            cells = self._cells(table, [f"IFNULL({quoted(column)}, {ABSENT})" for column in varied], where)
        except (TypeError, ValueError, OverflowError):
            cells = self._cells(table, [*map(_integer, varied)], where)
        found = {column: np.ascontiguousarray(cells[:, number]) for number, column in enumerate(varied)}
        return {column: np.full(len(cells), same[column]) if column in same else found[column] for column in have}

    def _constant(self, table: str, columns: Sequence[str], where: str) -> dict[str, int]:
        """Return the columns that have one value, or none, in all rows: a comparison in SQL is faster than reading."""
        of = f"FROM {quoted(table)} NOT INDEXED {where}"
        first = self.rows(f"SELECT {', '.join(map(quoted, columns))} {of} LIMIT 1") if columns else []
        some = {column: cell for column, cell in zip(columns, *first, strict=True)} if first else {}
        return {
            column: ABSENT if cell is None else cell
            for column, cell in some.items()
            if cell is None or (isinstance(cell, int) and column not in ("start", "end"))
            if not self.rows(f"SELECT 1 {of} {'AND' if where else 'WHERE'} {quoted(column)} IS NOT ? LIMIT 1", (cell,))
        }

    def _cells(self, table: str, columns: Sequence[str], where: str) -> Array:
        query = f"SELECT {', '.join(columns)} FROM {quoted(table)} NOT INDEXED {where}"
        return np.fromiter(chain.from_iterable(self._connection.execute(query)), np.int64).reshape(-1, len(columns))

    def of_process(self, table: str, process: int | None) -> tuple[str, Array | None]:
        """Return (a condition in SQL that a row is of a process or of none, positions of these rows among all).

        The positions are None for all rows. Numbers of rows tell positions if no row was ever deleted.
        """
        column = next((each for each in ("globalPid", "globalTid") if each in self.columns[table]), "")
        if process is None or not column:
            return "", None
        first, behind = process << 24, process + 1 << 24
        name = quoted(column)
        foreign = f"typeof({name}) = 'integer' AND ({name} < {first} OR {name} >= {behind})"
        if not self.rows(f"SELECT 1 FROM {quoted(table)} WHERE {foreign} LIMIT 1"):
            return "", None
        with suppress(sqlite3.OperationalError):  # a table may have no numbers of rows
            last = self._connection.execute(f"SELECT max(rowid) FROM {quoted(table)}").fetchone()[0]
            if last == self.count(table):
                where = f"WHERE NOT ({foreign})"
                return where, self._cells(table, ["rowid - 1"], where)[:, 0]
        return "", None

    def processes(self, table: str, column: str, *others: str) -> list[tuple[Any, ...]]:
        """Return (upper bits of a global id, values of other columns, number of rows) for all rows that have an id."""
        if not {column, *others} <= {*self.columns.get(table, ())}:
            return []
        name, group = quoted(column), ", ".join(map(str, range(1, len(others) + 2)))
        some = f"FROM {quoted(table)} WHERE typeof({name}) = 'integer' GROUP BY {group}"
        return self.rows(f"SELECT {', '.join([f'{name} >> 24', *map(quoted, others)])}, count(*) {some}")

    def texts(self, table: str, column: str, where: str = "") -> list[str]:
        """Return a column of texts; an empty one stands for what is no text, or for a column that is not there."""
        if column not in self.columns[table]:
            return [""] * int(self.rows(f"SELECT total(1) FROM {quoted(table)} NOT INDEXED {where}")[0][0])
        found = self.rows(f"SELECT {quoted(column)} FROM {quoted(table)} NOT INDEXED {where}")
        return [text if isinstance(text, str) else "" for (text,) in found]

    def strings(self, ids: Array) -> dict[int, str]:
        """Return the texts of the table of strings, by id; ids that it lacks are left out."""
        if not {"id", "value"} <= {*self.columns.get("StringIds", ())}:
            return {}
        wanted = np.unique(ids[ids != ABSENT]).tolist()
        some = "value IS NOT NULL AND id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return dict(self.rows(f"SELECT id, CAST(value AS TEXT) FROM StringIds WHERE {some}", [str(wanted)]))

    def pairs(self, table: str, key: str, value: str) -> dict[Any, Any]:
        """Return two columns of a small table as a map; nothing if a column is not there."""
        if not {key, value} <= {*self.columns.get(table, ())}:
            return {}
        return dict(self.rows(f"SELECT {quoted(key)}, {quoted(value)} FROM {quoted(table)}"))


def quoted(name: str) -> str:
    """Return the name of a table or column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


_LARGEST_REAL: Final = 2**62
"""Floating-point numbers from here on are no times and no ids: ns since 1970 reach it in 2116. It cannot be doubled:
what is larger does not fit into 64 bits, and SQLite would give the largest integer for it."""


def _integer(column: str) -> str:
    """Return SQL for a column as an integer: other programs write some as floating-point numbers."""
    cell = quoted(column)
    real = f"CASE WHEN abs({cell}) < {_LARGEST_REAL} THEN CAST({cell} AS INTEGER) ELSE {ABSENT} END"
    return f"CASE typeof({cell}) WHEN 'integer' THEN {cell} WHEN 'real' THEN {real} ELSE {ABSENT} END"


@contextmanager
def opened(path: TracePath) -> Iterator[Database]:
    """Yield an export, open for reading.

    Raises:
        NotATraceError: it is a report that is not exported, or no export of a release that is known.
        DamagedTraceError: the database is cut short or damaged.
        TraceError: the file cannot be read, or lies in a store.
    """
    if path.name.endswith(_REPORTS):
        msg = f"{path}: a report, which only Nsight Systems can read: export it with nsys export --type sqlite {path}"
        raise NotATraceError(msg)
    if isinstance(path, RemotePath):
        msg = f"{path}: databases are read from disks only; download the file first"
        raise TraceError(msg)
    with ExitStack() as kept, _connected(_unpacked(path, kept), path) as connection:
        database = Database(path, connection)
        _refuse_others(database)
        yield database


def _unpacked(path: Path, kept: ExitStack) -> Path:
    """Return the path of a database that is not packed: the file, or a temporary one as long as `kept` is open."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if not head.startswith(b"\x1f\x8b"):  # of gzip
            _refuse_header(path, path.stat().st_size, head)
            return path
        most = path.stat().st_size * _INFLATED
        plain = kept.enter_context(tempfile.NamedTemporaryFile(suffix=SUFFIXES[0]))  # noqa: SIM115 - `kept` closes it
        with gzip.open(path) as packed:
            while piece := packed.read(1 << 20):
                plain.write(piece)
                if plain.tell() > most:
                    msg = f"{path}: unpacks to more than {_INFLATED} times its size; unpack the file yourself"
                    raise TraceError(msg)
        plain.flush()
        plain.seek(0)
        _refuse_header(path, Path(plain.name).stat().st_size, plain.read(_HEAD_BYTES))
        return Path(plain.name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{path}: the packed file is cut short or damaged ({error}); copy it again"
        raise DamagedTraceError(msg) from error
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error


def _refuse_header(path: Path, size: int, head: bytes) -> None:
    """Refuse what is no database, and a database that is shorter than its header says."""
    if not head:
        msg = f"{path}: the file is empty; was nsys export interrupted?"
        raise DamagedTraceError(msg)
    if not head.startswith(b"SQLite format 3\0"[: len(head)]):
        msg = f"{path}: not an SQLite database; export the report: nsys export --type sqlite report.nsys-rep"
        raise OtherFileError(msg)
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    if len(head) < _HEAD_BYTES or size < (1 << 16 if page == 1 else page) * pages:
        msg = f"{path}: the database is cut short: it has {size:,} bytes, and its header says more; export it again"
        raise DamagedTraceError(msg)


@contextmanager
def _connected(plain: Path, path: TracePath) -> Iterator[sqlite3.Connection]:
    """Yield a connection, and turn SQLite's errors into those of traces."""
    address = f"{plain.absolute().as_uri()}?mode=ro&immutable=1"  # no journal is written beside the file
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            _with_budget(connection, plain.stat().st_size)
            yield connection
    except sqlite3.OperationalError as error:
        if str(error) != "interrupted":
            msg = f"{path}: the database is damaged ({error}); export the report again"
            raise DamagedTraceError(msg) from error
        msg = f"{path}: the database holds far more rows than so few bytes can; it is damaged: export the report again"
        raise DamagedTraceError(msg) from error
    except (sqlite3.Error, OverflowError) as error:
        msg = f"{path}: the database is damaged ({error}); export the report again"
        raise DamagedTraceError(msg) from error


def _with_budget(connection: sqlite3.Connection, size: int) -> None:
    """End queries that take more steps than a database of so many bytes can need: pages may lead to each other."""
    left = _STEPS + _STEPS_PER_BYTE * size

    def is_spent() -> bool:
        nonlocal left
        left -= _STEPS_AT_ONCE
        return left < 0

    connection.set_progress_handler(is_spent, _STEPS_AT_ONCE)


_STEPS_PER_BYTE: Final = 100
"""Steps of SQLite's machine per byte of a database. Measured: reading the public exports whole takes 1 to 4. Doubled, a
damaged file is refused after twice the time, a second per MB."""
_STEPS: Final = 10_000_000
"""Steps that any database may take: half a second. Chosen. Doubled, a second."""
_STEPS_AT_ONCE: Final = 100_000
"""Steps between two looks at the budget. Chosen: milliseconds. Doubled, the budget is exceeded by twice as much."""


def _refuse_others(database: Database) -> None:
    """Refuse databases of other programs, and of releases whose schema is not known."""
    tables = database.columns
    written = database.pairs("META_DATA_EXPORT", "name", "value")
    version = written.get("EXPORT_SCHEMA_VERSION_MAJOR")
    if version is not None and not (str(version).isdigit() and int(version) <= _NEWEST):
        release = written.get("EXPORT_PRODUCT_VERSION", "unknown")
        msg = (
            f"{database.path}: exported by Nsight Systems {release} with schema {version}; schemas up to {_NEWEST} are "
            "known. Export the report with an earlier release, or ask for this one"
        )
        raise NotATraceError(msg)
    by_nvprof = "StringTable" in tables and "StringIds" not in tables
    if by_nvprof or not any(table.startswith("CUPTI_ACTIVITY_KIND_") or table in _SIGNS for table in tables):
        what = "a database of nvprof" if by_nvprof else "an SQLite database"
        msg = f"{database.path}: {what}, but no export of Nsight Systems: nsys export --type sqlite writes one"
        raise OtherFileError(msg)


_SIGNS: Final = ("NVTX_EVENTS", "OSRT_API", "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT")
"""Tables of which every export has one."""


def words_of(database: Database, table: str, known: Mapping[int, str]) -> dict[int, str]:
    """Return the words of an enumeration by number: what the export says, else what is known of it."""
    found = database.pairs(table, "id", "label")
    return {**known, **{number: str(word) for number, word in found.items() if isinstance(number, int) and word}}
