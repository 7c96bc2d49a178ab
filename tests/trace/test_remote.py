"""Traces that a URL names: those of a store are the graph of those on the disk, and errors say what is wrong."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

import htagraph as hg
from htagraph.graph.storage.cache import file_states, is_unchanged
from htagraph.trace.discover import find_files, rank_files
from htagraph.trace.remote import RemotePath, _told, fingerprint, is_url, path_of

fsspec = pytest.importorskip("fsspec")
MemoryFileSystem = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem

DEMO = Path("data/demo")
NAMES = sorted(path.name for path in DEMO.glob("*.json.gz"))


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder of fsspec's memory with the demo's traces and other files."""
    memory = fsspec.filesystem("memory")
    for name in NAMES:
        memory.pipe(f"/bucket/run/{name}", (DEMO / name).read_bytes())
    memory.pipe("/bucket/run/notes.txt", b"none")
    yield "memory://bucket/run"
    memory.rm("/bucket", recursive=True)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A folder of a local S3 server with the demo's traces."""
    pytest.importorskip("s3fs")
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    store = fsspec.filesystem("s3")
    store.mkdir("traces")
    for name in NAMES:
        store.pipe(f"traces/run/{name}", (DEMO / name).read_bytes())
    yield "s3://traces/run"
    os.environ.clear()
    os.environ.update(before)
    server.stop()


def same(one: hg.DependencyGraph, other: hg.DependencyGraph) -> None:
    """Assert that two graphs are the same but for the paths of their files."""
    for name in ("start", "end", "kind", "rank", "event"):
        assert (getattr(one.activities, name) == getattr(other.activities, name)).all(), name
    assert (one.edges.source == other.edges.source).all()
    assert (one.edges.lag == other.edges.lag).all()
    pd.testing.assert_frame_equal(hg.temporal_breakdown(one), hg.temporal_breakdown(other))


@pytest.mark.parametrize("ending", ["", "/*.json.gz", "/rank-?.json.gz"])
def test_a_folder_and_a_glob_are_the_job(folder: str, ending: str) -> None:
    same(hg.load(folder + ending), hg.load(DEMO))


@pytest.mark.slow
def test_a_store_gives_the_job_and_the_arguments_that_stay_in_its_files(bucket: str) -> None:
    graph, local = hg.load(f"{bucket}/*.json.gz"), hg.load(DEMO)
    same(graph, local)
    kernels = local.select(kind="kernel", rank=0).activities[:3]
    assert graph.event(kernels[0]) == local.event(kernels[0])
    pd.testing.assert_frame_equal(hg.arguments(graph, ["grid"], kernels), hg.arguments(local, ["grid"], kernels))


def test_a_saved_graph_finds_the_files_of_its_store_again(folder: str, tmp_path: Path) -> None:
    graph = hg.load(f"{folder}/{NAMES[0]}")
    hg.save(graph, tmp_path)
    with pytest.raises(hg.TraceError, match="not followed"):
        hg.open(tmp_path).event(0)
    opened = hg.open(tmp_path, traces=f"{folder}/{NAMES[0]}")
    assert opened.traces[0].path == RemotePath(f"{folder}/{NAMES[0]}")
    assert opened.event(0) == graph.event(0)


def test_a_file_that_changed_in_its_store_is_not_read_again(folder: str) -> None:
    graph = hg.load(f"{folder}/{NAMES[0]}")
    fsspec.filesystem("memory").pipe(f"/bucket/run/{NAMES[0]}", (DEMO / NAMES[1]).read_bytes())
    with pytest.raises(hg.TraceError, match="was changed"):
        graph.event(0)


def test_the_tag_of_a_file_stands_for_its_bytes(folder: str) -> None:
    path = RemotePath(f"{folder}/{NAMES[0]}")
    [state] = file_states([path], {})
    assert is_unchanged(path, state)
    assert state.digest
    fsspec.filesystem("memory").pipe(f"/bucket/run/{NAMES[0]}", b"{}")
    assert not is_unchanged(path, state)
    assert fingerprint(path)[0] == 2


def test_disk_and_store_together_are_one_job(folder: str) -> None:
    files = rank_files([DEMO / NAMES[1], f"{folder}/{NAMES[0]}"])
    assert [file.rank for file in files] == [0, 1]
    assert isinstance(files[0].path, RemotePath)
    assert isinstance(files[1].path, Path)


def test_a_url_of_the_disk_is_a_path() -> None:
    assert find_files(DEMO.absolute().as_uri()) == find_files(DEMO.absolute())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("memory://bucket/absent/x.json", "no such file, folder or bucket"),
        ("memory://bucket/run/none*", "no match"),
        ("memory://bucket", "file in this folder"),
        ("nothing://bucket/x", "no file system has URLs of the form nothing://"),
        ("reference://bucket/x", "give the URL of the traces themselves"),
        ("simplecache::memory://bucket/run", "give the URL of the traces themselves"),
    ],
)
def test_an_error_says_what_is_wrong_with_a_url(folder: str, url: str, says: str) -> None:
    del folder
    with pytest.raises(hg.TraceError, match=says):
        hg.load(url)


def test_an_error_names_the_bucket_that_is_not_there(bucket: str) -> None:
    del bucket
    with pytest.raises(hg.TraceError, match="bucket does not exist"):
        hg.load("s3://absent/run/*.json.gz")


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("gs://bucket/x.json", "pip install fsspec gcsfs"),
        ("s3://bucket/x.json", "pip install fsspec s3fs"),
        ("git:///tmp/repository/x.json", "pip install fsspec pygit2"),
        ("dropbox://x.json", "needs a package: Install what dropbox://x.json needs"),
    ],
)
def test_an_error_names_the_package_that_is_absent(url: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(url: str) -> None:
        msg = f"Install what {url} needs"
        raise ImportError(msg)

    monkeypatch.setattr("fsspec.core.url_to_fs", absent)
    with pytest.raises(hg.TraceError, match=package):
        hg.load(url)


@pytest.mark.parametrize("protocol", ["abfss", "git"])
def test_a_protocol_without_its_package_names_it(protocol: str) -> None:
    package = {"abfss": "adlfs", "git": "pygit2"}[protocol]
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(
        hg.TraceError, match=rf"^{protocol}://.*: {protocol}:// needs a package: pip install .*{package}$"
    ):
        hg.load(f"{protocol}://traces@account/run/rank-0.json")


class Containers(MemoryFileSystem):  # type: ignore[misc, valid-type] # without types
    """A store that names the account in its URLs only, not in the paths of its files, as that of Azure does."""

    protocol = "abfss"
    store: ClassVar[dict[str, object]] = {}
    cachable = False

    def __init__(self, account: str, **options: object) -> None:
        super().__init__(**options)
        assert account == "account.dfs"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        container, _, rest = path.removeprefix("abfss://").partition("@")
        return "/" + (f"{container}/{rest.partition('/')[2]}".rstrip("/") if rest else container.strip("/"))

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        return {"account": path.partition("@")[2].partition("/")[0]}


@pytest.mark.parametrize("ending", ["", "/", "/*.json.gz"])
def test_files_of_a_container_keep_its_account(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registered = importlib.import_module("fsspec.registry")._registry
    monkeypatch.setitem(registered, "abfss", Containers)
    store = Containers("account.dfs")
    for name in NAMES[:2]:
        store.pipe(f"/traces/run/{name}", (DEMO / name).read_bytes())
    url = "abfss://traces@account.dfs/run"
    assert [str(path) for path in find_files(url + ending)] == [f"{url}/{name}" for name in NAMES[:2]]
    assert hg.load(url + ending).ranks == (0, 1)
    assert RemotePath(f"{url}/{NAMES[0]}").parent == RemotePath(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("abfss://traces@account.dfs/a.json", "abfss://traces@account.dfs/a.json"),
        ("abfss://traces:secret@account.dfs/a.json", "abfss://traces@account.dfs/a.json"),
        ("github://owner:project@main/a.json", "github://owner:project@main/a.json"),
        ("git://folder:project@main/a.json", "git://folder:project@main/a.json"),
        ("github://me:secret@owner:project@main/a.json", "github://owner:project@main/a.json"),
        ("hf://datasets/owner/project@main/a.json", "hf://datasets/owner/project@main/a.json"),
        ("https://secret@host/a.json", "https://host/a.json"),
        ("ftp://me:se@cret@host/a@b.json", "ftp://host/a@b.json"),
    ],
)
def test_what_is_before_the_host_is_shown_only_where_it_is_a_place(url: str, shown: str) -> None:
    path = RemotePath(url)
    assert str(path) == shown
    assert "secret" not in _told(ValueError(f"{url}: refused"), path)


def test_an_error_asks_for_credentials_where_a_store_does(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        msg = "Unable to locate credentials"
        raise RuntimeError(msg)

    monkeypatch.setattr(fsspec.filesystem("memory"), "isfile", refuse, raising=False)
    with pytest.raises(hg.TraceError, match="are the credentials of the store given"):
        hg.load(folder)


def test_messages_and_results_have_no_password_and_no_signature() -> None:
    assert str(RemotePath("https://host/rank-0.json?X-Signature=secret")) == "https://host/rank-0.json"
    assert str(RemotePath("sftp://me:secret@host/rank-0.json")) == "sftp://host/rank-0.json"
    assert str(RemotePath("sftp://me:se@cret@host/rank-0.json")) == "sftp://host/rank-0.json"
    assert RemotePath("https://host/rank-0.json?X-Signature=secret").name == "rank-0.json"


@pytest.mark.parametrize("url", ["memory://me:secret@host/a.json", "https://host/a.json?X-Signature=secret"])
@pytest.mark.parametrize("kind", [ValueError, FileNotFoundError, PermissionError])
def test_errors_of_stores_are_told_without_what_is_secret_in_their_url(
    url: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(self: RemotePath) -> None:
        message = f"{self.url}: refused; for {self.url.split('//')[1].split('/')[0]}"
        raise kind(message)

    monkeypatch.setattr(RemotePath, "_found", refusing)
    with pytest.raises(OSError, match="refused") as told:
        RemotePath(url).stat()
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("path", ["C:\\traces\\a.json", "C:/a", "/tmp/a", "a:b", "run://"[:-1], Path("s3:/a")])
def test_paths_on_disks_are_no_urls(path: str | Path) -> None:
    assert not is_url(path)
    assert isinstance(path_of(path), Path)
