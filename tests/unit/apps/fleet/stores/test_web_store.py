"""A store behind a web server, on loopback: what was replaced is fetched anew, and nothing is fetched without a bound."""

import asyncio
import email.utils
import hashlib
import http.server
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.apps.fleet.stores import sources
from harness.apps.fleet.stores.sources import Listed, RemoteStore, SourceFault, open_store

aiohttp = pytest.importorskip("aiohttp", reason="fsspec reaches http:// with aiohttp")
LONG_AGO = time.time() - 10 * 86400.0


@dataclass
class Site:
    """What a web server has, and how it says it.

    Attributes:
        files: path -> content; ``dates``: path -> when it was written, in seconds; now where it is not there.
        says: which headers it sends of ``etag``, ``date``, ``length``.
        ranges: whether it sends a part of a file; ``breaks``: how often it ends a file in the middle.
        status: of everything but pages.
    """

    files: dict[str, bytes]
    dates: dict[str, float] = field(default_factory=dict)
    says: tuple[str, ...] = ("etag", "date", "length")
    ranges: bool = True
    breaks: int = 0
    status: int = 200
    url: str = ""

    def replace(self, path: str, data: bytes, date: float = LONG_AGO) -> None:
        self.files[path], self.dates[path] = data, date


class Handler(http.server.BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        path, site = self.path.lstrip("/"), self.site
        if path == "" or path.endswith("/"):
            names = {name[len(path) :] for name in site.files if name.startswith(path)}
            tops = sorted({name.partition("/")[0] + ("/" if "/" in name else "") for name in names})
            more = ["../", "?C=N;O=D", "https://elsewhere.example/x.pt", "/"]
            links = "".join(f'<a href="{name}">x</a>' for name in [*tops, *more])
            self._send(200, links.encode(), {"Content-Type": "text/html"}, with_body)
        elif path not in site.files:
            self._send(404, b"", {}, with_body)
        elif site.status != 200:
            self._send(site.status, b"", {}, with_body)
        else:
            self._file(path, with_body)

    def _file(self, path: str, with_body: bool) -> None:
        site, data = self.site, self.site.files[path]
        headers = {}
        if "etag" in site.says:
            headers["ETag"] = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        if "date" in site.says:
            headers["Last-Modified"] = email.utils.formatdate(site.dates.get(path, time.time()), usegmt=True)
        asked = self.headers.get("Range", "")
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked and site.ranges else 0
        self._send(206 if begin else 200, data[begin:], headers, with_body, is_file=True)

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], with_body: bool, *, is_file: bool = False
    ) -> None:
        self.send_response(status)
        chunked = is_file and "length" not in self.site.says
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))))
        self.end_headers()
        if not with_body:
            return
        if is_file and self.site.breaks:
            self.site.breaks -= 1
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site({"ads/a.pt": b"first", "b.pt": b"b"}, {"ads/a.pt": LONG_AGO, "b.pt": LONG_AGO})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Handler,), {"site": made}))
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def store_of(site: Site, cache: Path, **more: int) -> RemoteStore:
    made = open_store(site.url, cache)
    assert isinstance(made, RemoteStore)
    return RemoteStore(site.url, made._fs, cache, wait=lambda _: None, **more)


def content(site: Site, cache: Path, path: str = "ads/a.pt") -> bytes:
    """What a command that begins now reads of a file."""
    store = store_of(site, cache)
    return next(store.local(item) for item in store.files() if item.path == path).read_bytes()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was fetched, in order."""
    paths: list[str] = []
    fetch = RemoteStore._fetch

    def counted(self: RemoteStore, listed: Listed, part: Path) -> None:
        paths.append(listed.path)
        fetch(self, listed, part)

    monkeypatch.setattr(RemoteStore, "_fetch", counted)
    return paths


def test_a_server_s_pages_list_what_lies_below_them_and_nothing_else(site: Site, tmp_path: Path) -> None:
    assert [item.path for item in store_of(site, tmp_path).files()] == ["ads/a.pt", "b.pt"]


@pytest.mark.parametrize(
    "says", [("etag", "date", "length"), ("etag",), ("date", "length"), ("date",), ("length",), ()], ids="-".join
)
def test_what_was_replaced_is_never_the_old_one(
    site: Site, tmp_path: Path, fetched: list[str], says: tuple[str, ...]
) -> None:
    site.says = says
    assert content(site, tmp_path) == b"first"
    site.replace("ads/a.pt", b"other", LONG_AGO + 5.0)  # as long as it was
    assert content(site, tmp_path) == b"other"
    assert content(site, tmp_path) == b"other"
    validated = "etag" in says or {"date", "length"} <= {*says}
    assert len(fetched) == (2 if validated else 3)


def test_a_date_says_nothing_of_what_may_be_written_anew_within_its_second(site: Site, tmp_path: Path) -> None:
    site.says = ("date", "length")
    now = time.time()
    for data in (b"first", b"other", b"third"):
        site.replace("ads/a.pt", data, now)
        assert content(site, tmp_path) == data


def test_a_store_that_is_read_twice_in_one_command_is_fetched_once(
    site: Site, tmp_path: Path, fetched: list[str]
) -> None:
    site.says = ()
    store = store_of(site, tmp_path)
    listed = store.files()[0]
    assert store.local(listed) == store.local(listed)
    assert len(fetched) == 1


def test_a_read_that_never_comes_back_is_made_again(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "UNANSWERED_S", 0.2)
    read = aiohttp.StreamReader.read
    asked: list[int] = []

    async def first_never(self: Any, n: int = -1) -> Any:
        asked.append(n)
        if n == sources.CHUNK_BYTES and asked.count(n) == 1:
            await asyncio.sleep(3600)
        return await read(self, n)

    monkeypatch.setattr(aiohttp.StreamReader, "read", first_never)
    assert content(site, tmp_path, "b.pt") == b"b"
    assert asked.count(sources.CHUNK_BYTES) > 2


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("says", [("etag", "length"), ("etag",), ()], ids="-".join)
def test_what_breaks_off_goes_on_where_the_server_can_and_begins_anew_where_not(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: tuple[str, ...], ranges: bool
) -> None:
    monkeypatch.setattr(sources, "UNANSWERED_S", 5.0)
    site.says, site.ranges, site.breaks = says, ranges, 2
    data = bytes(range(256)) * 500
    site.replace("ads/a.pt", data)
    assert content(site, tmp_path) == data
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("says", [("length",), ("etag",), ()], ids="-".join)
def test_nothing_is_fetched_without_a_bound(site: Site, tmp_path: Path, says: tuple[str, ...]) -> None:
    site.says = says
    site.replace("ads/a.pt", b"x" * 5000)
    store = store_of(site, tmp_path, limit_bytes=1000)
    with pytest.raises(SourceFault, match="ads/a.pt is larger than 1,000 bytes") as fault:
        store.local(store.files()[0])
    assert fault.value.label == "spurious-disk" and list(tmp_path.iterdir()) == []


def test_a_page_has_a_bound_too(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LISTING_BYTES", 20)
    with pytest.raises(SourceFault, match="is larger than 20 bytes"):
        store_of(site, tmp_path).files()


@pytest.mark.parametrize(
    ("status", "label"), [(403, "spurious-forbidden"), (401, "spurious-forbidden"), (500, "spurious-unreachable")]
)
def test_what_a_server_refuses_is_labelled_as_what_it_is(site: Site, tmp_path: Path, status: int, label: str) -> None:
    site.status = status
    with pytest.raises(SourceFault) as fault:
        content(site, tmp_path)
    assert fault.value.label == label


def test_what_is_gone_since_it_was_listed_and_a_server_that_is_gone_are_told_apart(site: Site, tmp_path: Path) -> None:
    store = store_of(site, tmp_path)
    listed = store.files()
    del site.files["ads/a.pt"]
    with pytest.raises(SourceFault) as fault:
        store.local(listed[0])
    assert fault.value.label == "spurious-vanished"
    nobody = RemoteStore("http://127.0.0.1:9", store._fs, tmp_path, wait=lambda _: None)
    with pytest.raises(SourceFault) as fault:
        nobody.files()
    assert fault.value.label == "spurious-unreachable"
