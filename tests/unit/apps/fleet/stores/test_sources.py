"""Stores: a folder as it lies, an address through fsspec's own file systems; what fails is tried again and labelled."""

import io
import os
from pathlib import Path
from typing import Any

import fsspec
import pytest

from harness.core.errors import GateError, SelectionError
from harness.apps.fleet.stores.sources import (
    TRIES,
    FolderStore,
    Link,
    Listed,
    RemoteStore,
    SourceFault,
    listed_files,
    open_store,
)

CONTENT = bytes(range(256)) * 64


class Flaky:
    """A file system of fsspec that breaks off each read, a given number of times."""

    def __init__(self, inner: Any, breaks: int, error: Exception) -> None:
        self._inner, self.breaks, self._error = inner, breaks, error
        self.offsets: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, path: str, mode: str) -> Any:
        opened = self._inner.open(path, mode)
        inner_read, seen = opened.read, self

        def read(length: int) -> bytes:
            if seen.breaks and opened.tell() >= 4096 * (1 + len(seen.offsets)):
                seen.breaks -= 1
                seen.offsets.append(opened.tell())
                raise seen._error
            return bytes(inner_read(min(length, 1024)))

        opened.read = read
        return opened


@pytest.fixture
def memory() -> Any:
    system = fsspec.filesystem("memory")
    system.store.clear()
    with system.open("/bucket/ads/a.pt", "wb") as stream:
        stream.write(CONTENT)
    with system.open("/bucket/b.pt", "wb") as stream:
        stream.write(b"b")
    return system


def remote(system: Any, cache: Path, **more: Any) -> RemoteStore:
    return RemoteStore("memory://bucket", system, cache, wait=lambda _: None, **more)


def test_an_address_lists_and_gives_what_lies_there(memory: Any, tmp_path: Path) -> None:
    store = open_store("memory://bucket", tmp_path)
    listed = {item.path: item for item in store.files()}
    assert {name: item.size for name, item in listed.items()} == {"ads/a.pt": len(CONTENT), "b.pt": 1}
    assert store.local(listed["ads/a.pt"]).read_bytes() == CONTENT
    assert store.local(listed["ads/a.pt"]).suffix == ".pt"


def test_a_read_that_breaks_off_goes_on_where_it_was(memory: Any, tmp_path: Path) -> None:
    system = Flaky(memory, TRIES - 1, OSError("reset by peer"))
    path = remote(system, tmp_path).local(Listed("ads/a.pt", len(CONTENT)))
    assert path.read_bytes() == CONTENT
    assert system.breaks == 0 and system.offsets == sorted(set(system.offsets))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("error", "label"),
    [
        (OSError("reset by peer"), "spurious-unreachable"),
        (RuntimeError("of a driver"), "spurious-unreachable"),
        (PermissionError("ExpiredToken"), "spurious-forbidden"),
        (type("NoCredentialsError", (Exception,), {})("no credentials"), "spurious-forbidden"),
        (type("FileExpired", (OSError,), {})("of s3fs"), "spurious-changed"),
    ],
)
def test_what_does_not_come_is_labelled_and_leaves_nothing(
    memory: Any, tmp_path: Path, error: Exception, label: str
) -> None:
    with pytest.raises(SourceFault) as fault:
        remote(Flaky(memory, 99, error), tmp_path).local(Listed("ads/a.pt", len(CONTENT)))
    assert fault.value.label == label
    assert list(tmp_path.iterdir()) == []


def test_what_is_gone_or_has_changed_is_labelled(memory: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceFault) as fault:
        remote(memory, tmp_path).local(Listed("gone.pt", 4))
    assert fault.value.label == "spurious-vanished"
    with pytest.raises(SourceFault) as fault:
        remote(memory, tmp_path).local(Listed("b.pt", 4))
    assert fault.value.label == "spurious-changed"


def test_an_object_that_was_written_anew_since_it_was_listed_is_not_kept_under_its_former_version(
    memory: Any, tmp_path: Path
) -> None:
    class Versioned(Flaky):
        def open(self, path: str, mode: str) -> Any:
            opened = super().open(path, mode)
            opened.details = {"ETag": '"2"'}
            return opened

    with pytest.raises(SourceFault) as fault:
        remote(Versioned(memory, 0, OSError()), tmp_path).local(Listed("b.pt", 1, "1"))
    assert fault.value.label == "spurious-changed"
    assert list(tmp_path.iterdir()) == []
    assert remote(Versioned(memory, 0, OSError()), tmp_path).local(Listed("b.pt", 1, "2")).read_bytes() == b"b"


def test_an_object_that_is_written_anew_is_fetched_anew(memory: Any, tmp_path: Path) -> None:
    store = remote(memory, tmp_path)
    first = store.local(Listed("b.pt", 1, "etag 1"))
    with memory.open("/bucket/b.pt", "wb") as stream:
        stream.write(b"c")
    assert store.local(Listed("b.pt", 1, "etag 1")) == first
    assert store.local(Listed("b.pt", 1, "etag 2")).read_bytes() == b"c"


def test_the_cache_keeps_to_its_bound_and_to_what_was_used_last(memory: Any, tmp_path: Path) -> None:
    store = remote(memory, tmp_path, limit_bytes=len(CONTENT) + 1)
    small = store.local(Listed("b.pt", 1))
    first = store.local(Listed("ads/a.pt", len(CONTENT), "1"))
    os.utime(first, (1, 1))
    second = store.local(Listed("ads/a.pt", len(CONTENT), "2"))
    assert second.exists() and small.exists() and not first.exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("s3://key:secret@bucket/models", "holds a password"),
        ("https://host/models?X-Amz-Signature=secret", "holds a query"),
        ("nosuch://bucket", "nosuch"),
        ("gs://bucket/models", "gcsfs"),
    ],
)
def test_an_address_that_cannot_be_read_is_one_line_without_secrets(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(GateError) as error:
        open_store(name, tmp_path)
    assert said in str(error.value) and "secret" not in str(error.value)
    assert error.value.exit_code == (3 if said == "gcsfs" else 2)


def test_an_empty_address_is_refused(memory: Any, tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="holds no file"):
        listed_files(open_store("memory://nothing", tmp_path))


def test_a_folder_leaves_out_dots_runs_and_its_own_fleet(tmp_path: Path) -> None:
    for path in ("a.pt", ".cache/b.pt", "run/plan.json", "run/probes/c.pt", "run/d.pt", "fleet/e.pt", "x/f.pt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")
    store = FolderStore(tmp_path, [tmp_path / "fleet"])
    assert [item.path for item in store.files()] == ["a.pt", "x/f.pt"]


def test_no_link_is_followed_out_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "secret.pt").write_bytes(b"x")
    (tmp_path / "store" / "link.pt").symlink_to(tmp_path / "secret.pt")
    store = FolderStore(tmp_path / "store")
    with pytest.raises(SourceFault) as fault:
        store.local(store.files()[0])
    assert fault.value.label == "spurious-link"


def test_a_link_to_a_folder_is_followed_within_the_store_and_listed_where_it_is_not(tmp_path: Path) -> None:
    store, outside = tmp_path / "store", tmp_path / "outside"
    for path in (store / "pool" / "a.pt", outside / "b.pt", store / ".kept" / "c.pt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    links = {
        "prod": "pool",
        "hidden": ".kept",
        "out": str(outside),
        "pool/up": "..",
        "pool/round": ".",
        "prod2": "prod",
    }
    for name, target in links.items():
        (store / name).symlink_to(target)
    (store / "loop").symlink_to("loop")
    listed = FolderStore(store).files()
    assert {item.path for item in listed if item.link is Link.NO} == {
        *("pool/a.pt", "prod/a.pt", "prod2/a.pt", "hidden/c.pt", "loop"),
    }
    assert {item.path for item in listed if item.link is Link.OUT} == {"out"}
    again = {item.path for item in listed if item.link is Link.AGAIN}
    assert again == {f"{name}/{link}" for name in ("pool", "prod", "prod2") for link in ("up", "round")}


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling", "loop"])
def test_what_is_no_plain_file_is_a_fault_and_never_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.pt"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("gone.pt" if kind == "dangling" else "a.pt")
    store = FolderStore(tmp_path)
    listed = store.files() or (Listed("a.pt", 0),)
    with pytest.raises(SourceFault) as fault:
        store.local(listed[0])
    assert fault.value.text.startswith("a.pt is ")


class Keys:
    """An object store: any text is a key, and two keys that a folder would take for one are two objects."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def _strip_protocol(self, name: str) -> str:
        return name.partition("://")[2].rstrip("/")

    def invalidate_cache(self) -> None:
        pass

    def find(self, root: str, *, detail: bool) -> dict[str, Any]:
        assert detail
        return {key: {"size": len(data), "ETag": data.hex()} for key, data in self.objects.items() if root in key}

    def open(self, path: str, _mode: str) -> Any:
        return io.BytesIO(self.objects[path.partition("://")[2]])


def test_keys_with_empty_parts_are_objects_of_their_own(tmp_path: Path) -> None:
    keys = {
        "b/m/a.pt": b"1",
        "b/m//a.pt": b"2",
        "b/m/ads//a.pt": b"3",
        "b/m/ads/a.pt": b"4",
        "b/m2/a.pt": b"5",
        "b/m/ads/": b"",
    }
    store = RemoteStore("s3://b/m", Keys(keys), tmp_path)
    listed = store.files()
    assert {item.path for item in listed} == {"a.pt", "/a.pt", "ads//a.pt", "ads/a.pt"}
    assert {item.path: store.local(item).read_bytes() for item in listed} == {
        key.removeprefix("b/m/"): data for key, data in keys.items() if key not in ("b/m2/a.pt", "b/m/ads/")
    }


def test_no_more_of_an_object_is_fetched_than_was_listed_or_than_the_cache_takes(tmp_path: Path) -> None:
    keys = Keys({"b/a.pt": b"x" * 100})
    store = RemoteStore("s3://b", keys, tmp_path, limit_bytes=50)
    for listed in (Listed("a.pt", 100, "1"), Listed("a.pt", 0, "1"), Listed("a.pt", 10, "1")):
        with pytest.raises(SourceFault, match="is larger than") as fault:
            store.local(listed)
        assert fault.value.label == "spurious-disk" and list(tmp_path.iterdir()) == []


def test_a_folder_that_vanishes_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="no such folder"):
        listed_files(FolderStore(tmp_path / "gone"))
