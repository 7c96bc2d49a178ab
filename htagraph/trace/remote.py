"""Files that a URL names, such as ``s3://bucket/run42/rank-0.json.gz``: found and read through fsspec."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias, Union

from htagraph.core.errors import HtagraphError, TraceError, printable

__all__ = ["BLOCK_BYTES", "RemotePath", "RemoteState", "TracePath", "fingerprint", "is_url", "on_disk", "path_of"]

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(::.*)?://")  # two letters at least: C:// is a drive
_MAGIC: Final = re.compile(r"[*?\[]")
_ON_DISK: Final = re.compile(r"^(file|local)://", re.IGNORECASE)
_WEB: Final = ("http", "https")
_WRAPPERS: Final = (
    "asyncwrapper", "blockcache", "cached", "dask", "data", "dir", "filecache", "generic", "jlab", "jupyter",
    "libarchive", "reference", "simplecache", "tar", "zip",
)  # fmt: skip
"""File systems of fsspec that stand for another one. A graph that a stranger saved names its files: none of them may
run code or write files, as `reference` and the caches do."""
BLOCK_BYTES: Final = 4 << 20
"""Bytes of a request. Chosen: about 10,000 events; a store answers one in a tenth of a second or less. Doubled,
there are half as many requests, and twice the memory for text in flight."""
_BLOCKS: Final = 3
"""Blocks of a file in memory: the one that is read, the next, which is fetched meanwhile, and the one before. Doubled,
reading is not faster."""
_TAGS: Final = (
    "ETag", "etag", "md5Hash", "Content-MD5", "Digest", "content_md5", "checksum", "crc32c", "generation", "blob_id",
)  # fmt: skip
"""Where stores say what changes with a file's content."""
_TIMES: Final = ("LastModified", "Last-Modified", "last_modified", "mtime", "modified", "updated", "created")
"""Where stores say when a file was written."""
_SECRET_CHARACTERS: Final = 4
"""Characters from which a password of a URL is left out of messages. Chosen: shorter ones protect nothing, and are in
words of any message. Doubled, short passwords are shown."""
_CONTAINERS: Final = ("abfs", "abfss", "az", "wasb", "wasbs")
"""Protocols whose URLs have a container before ``@`` and its account behind."""
_REPOSITORIES: Final = ("git", "github")
"""Protocols whose URLs have a repository before ``@`` and its revision behind."""
_PACKAGES: Final[dict[str, str]] = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "az": "adlfs", "abfs": "adlfs",
    "abfss": "adlfs", "http": "aiohttp", "https": "aiohttp", "sftp": "paramiko", "ssh": "paramiko", "hdfs": "pyarrow",
    "smb": "smbprotocol", "git": "pygit2", "github": "requests", "webhdfs": "requests", "dbfs": "requests",
    "oss": "ossfs", "oci": "ocifs", "webdav": "webdav4", "wasb": "adlfs", "wasbs": "adlfs",
}  # fmt: skip
"""The package that fsspec needs for a protocol."""


class RemoteState(NamedTuple):
    """What a store says of a file; the names are those of `os.stat_result`."""

    st_size: int
    """Bytes; 0 if it does not say."""
    st_mtime_ns: int
    """A number that differs once the content does: of its tag or time. 0 if the store says neither."""


@dataclass(frozen=True, order=True)
class RemotePath:
    """A file or folder that a URL names; it has what reading needs of a `pathlib.Path`.

    Credentials, endpoints and other options are those that the store's own tools take (``AWS_PROFILE``,
    ``AWS_ENDPOINT_URL``, ``GOOGLE_APPLICATION_CREDENTIALS``, ``HF_TOKEN``), or fsspec's configuration.
    """

    url: str
    named_by: str = field(default="", compare=False)
    """The file that names this one, if no user did: it is not followed then, as anyone may have written it."""

    def __str__(self) -> str:
        """Return the URL for messages and results: without a signature or a password."""
        user = _user_in(self.url)
        url = self.url.replace(f"://{user}@", f"://{_public(user, self.protocol)}", 1) if user else self.url
        return url.split("?", 1)[0] if self.protocol in _WEB else url

    def __fspath__(self) -> str:
        return self.url

    @property
    def protocol(self) -> str:
        """What is before ``://``."""
        return self.url.split("://", 1)[0].lower()

    @property
    def name(self) -> str:
        """The last part."""
        return str(self).rstrip("/").rsplit("/", 1)[-1]

    @property
    def suffix(self) -> str:
        """The end of the name from the last dot on."""
        return Path(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        """The folder."""
        url = self.url.split("?", 1)[0] if self.protocol in _WEB else self.url
        return RemotePath(url.rstrip("/").rsplit("/", 1)[0])

    @property
    def has_magic(self) -> bool:
        """Whether it is a glob; addresses of web servers are none."""
        return self.protocol not in _WEB and _MAGIC.search(self.url) is not None

    def open(self, block_bytes: int | None = None) -> BinaryIO:
        """Return the file, open for reading; while a block is read, the next one is fetched."""
        with _explained(self):
            files, path = self._found()
            file = files.open(
                path, "rb", block_size=block_bytes or BLOCK_BYTES, cache_type="background",
                cache_options={"maxblocks": _BLOCKS},
            )  # fmt: skip
            return _Explaining(self, file)  # type: ignore[return-value] # what reading needs of a file

    def stat(self) -> RemoteState:
        """Return the state of the file in the store, asked now.

        A file that is not there, or a store that does not answer, raises an OSError.
        """
        with _explained(self):
            files, path = self._found()
            files.invalidate_cache(path)
            info = files.info(path)
            return RemoteState(int(info.get("size") or 0), _tag(info))

    def is_file(self) -> bool:
        """Return whether there is such a file; False if the store does not answer."""
        if self.has_magic:
            return False
        try:
            with _explained(self):
                files, path = self._found()
                return bool(files.isfile(path))
        except OSError:
            return False

    def below(self) -> list[RemotePath]:
        """Return the files of a folder, or those that a glob matches, or the file itself.

        Where there is nothing of that name, or the store does not answer, an OSError is raised.
        """
        with _explained(self):
            files, path = self._found()
            if self.has_magic:
                found = files.glob(path, detail=True).values()
                if not found:  # the listing of its folder raises an error if that is not there
                    files.ls(_MAGIC.split(path)[0].rpartition("/")[0] or path.split("/")[0], detail=True)
            elif self.protocol in _WEB or files.isfile(path):
                return [self]
            else:
                found = files.ls(path, detail=True)
            return [self._child(files, each["name"]) for each in found if each["type"] == "file"]

    def _child(self, files: Any, name: str) -> RemotePath:  # noqa: ANN401 - a file system of fsspec
        """Return a file below by its path on the file system, which need not name the host or account of this URL."""
        folder = _MAGIC.split(self.url)[0].rpartition("/")[0] if self.has_magic else self.url.rstrip("/")
        within = files._strip_protocol(folder).rstrip("/")
        if name.startswith(f"{within}/"):
            return RemotePath(folder + name[len(within) :])
        return RemotePath(files.unstrip_protocol(name))

    def _found(self) -> tuple[Any, str]:
        """Return (the file system, the path on it)."""
        if self.named_by:
            msg = (
                f"{self}: only the saved graph {self.named_by} names this address, and it is not followed for it; if "
                "you trust it, give the traces yourself: htagraph.open(folder, traces=…)"
            )
            raise TraceError(msg)
        if self.protocol in _WRAPPERS or "::" in self.url:
            msg = f"{self}: {self.protocol}:// stands for other files; give the URL of the traces themselves"
            raise TraceError(msg)
        try:
            from fsspec.core import url_to_fs

            return url_to_fs(self.url)
        except ImportError as error:
            raise _package_missing(self, error) from error
        except ValueError as error:  # no such protocol
            if self.protocol in _PACKAGES and f"not known: {self.protocol}" in str(error):
                raise _package_missing(self, error) from error
            msg = f"{self}: no file system has URLs of the form {self.protocol}:// ({error})"
            raise TraceError(msg) from error


TracePath: TypeAlias = Union[Path, RemotePath]  # noqa: UP007 - evaluated
"""Where a trace lies."""


class _Explaining:
    """An open file whose errors are those of files on disks."""

    def __init__(self, path: RemotePath, file: Any) -> None:  # noqa: ANN401 - a file of fsspec
        self.name, self._path, self._file = str(path), path, file

    def __enter__(self) -> _Explaining:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, size: int = -1) -> bytes:
        with _explained(self._path):
            return self._file.read(size)

    def seek(self, position: int) -> int:
        return self._file.seek(position)

    def tell(self) -> int:
        return self._file.tell()


def is_url(path: object) -> bool:
    r"""Return whether a path is a URL, which names a file on another machine or in memory.

    Example:
        >>> is_url("s3://bucket/rank-0.json.gz"), is_url("C:\\traces"), is_url("file:///tmp/rank-0.json")
        (True, False, False)
    """
    if isinstance(path, RemotePath):
        return True
    match = _URL.match(path) if isinstance(path, str) else None
    return match is not None and not _ON_DISK.match(match[0])


def path_of(path: str | PathLike[str]) -> TracePath:
    """Return a path on the disk, or that of a URL.

    Example:
        >>> path_of("s3://bucket/rank-0.json.gz").name
        'rank-0.json.gz'
        >>> path_of("file:///tmp/rank-0.json").as_posix()
        '/tmp/rank-0.json'
    """
    if isinstance(path, RemotePath):
        return path
    if is_url(path):
        return RemotePath(fspath(path))
    return Path(on_disk(path)).expanduser()


def on_disk(path: str | PathLike[str]) -> str:
    """Return the text of a path on the disk, without ``file://``."""
    return _ON_DISK.sub("", fspath(path))


def fingerprint(path: TracePath) -> tuple[int, int]:
    """Return (size in bytes, a number that differs once the content does: when it changed, ns, or that of a tag)."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def known_state(path: TracePath) -> tuple[int, int]:
    """Return the fingerprint of a file that is about to be read; an error for users if it cannot be."""
    try:
        return fingerprint(path)
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error


@contextmanager
def _explained(path: RemotePath) -> Iterator[None]:
    """Turn the errors of stores, each of which has its own, into those of files on disks."""
    try:
        yield
    except (HtagraphError, MemoryError):
        raise
    except FileNotFoundError as error:
        why = f"no such file, folder or bucket{f': {_told(error, path)}' if str(error) not in path.url else ''}"
        raise FileNotFoundError(errno.ENOENT, why) from error
    except ImportError as error:
        raise _package_missing(path, error) from error
    except Exception as error:  # each store has errors of its own, without a common class; the cause stays attached
        text = f"{type(error).__name__}: {_told(error, path)}"
        if isinstance(error, PermissionError) or "credential" in text.lower():
            text += "; are the credentials of the store given as its own tools take them, and do they allow reading?"
            raise PermissionError(errno.EACCES, text) from error
        raise OSError(errno.EIO, text) from error


def _told(error: Exception, path: RemotePath) -> str:
    """Return what an error of a store says, without the password and the signature of the URL, which it may repeat."""
    user = _user_in(path.url)
    parts = [] if f"{user}@" == _public(user, path.protocol) else [user, *user.split(":", 1)[1:]]
    parts += path.url.split("?", 1)[1:] if path.protocol in _WEB else []
    text = str(error)
    for part in parts:
        text = text.replace(part, "…") if len(part) >= _SECRET_CHARACTERS else text
    return text


def _user_in(url: str) -> str:
    """Return what is between ``://`` and the last ``@`` before the path: passwords may have an ``@``."""
    found = re.match(r"[^/]*://([^/]*)@", url)
    return found[1] if found else ""


def _public(user: str, protocol: str) -> str:
    """Return what messages show of the part of a URL before ``@``, with the ``@``: no name and no password of a user.

    Some protocols have other things there, which say where the file is: a container, or an organisation and its
    repository.
    """
    place = user.rsplit("@", 1)[-1]
    if protocol in _CONTAINERS:
        return f"{place.split(':', 1)[0]}@"
    return f"{place}@" if protocol in _REPOSITORIES else ""


def _package_missing(path: RemotePath, error: Exception) -> TraceError:
    package = _PACKAGES.get(path.protocol)
    says = f"pip install fsspec {package}" if package else printable(_told(error, path))
    return TraceError(f"{path}: {path.protocol}:// needs a package: {says}")


def _tag(info: dict[str, Any]) -> int:
    """Return a number that stands for a file's content, from what a store says of it; 0 if it says nothing."""
    versions = [str(info[key]) for key in _TAGS if info.get(key)] or [str(info[key]) for key in _TIMES if info.get(key)]
    if not versions:
        return 0
    return int.from_bytes(hashlib.blake2b(" ".join(versions).encode(), digest_size=7).digest(), "little") or 1
