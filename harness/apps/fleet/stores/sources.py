"""Where a fleet's artifacts lie: a folder, or whatever fsspec reaches. Listed, and fetched into a bounded cache.

A folder is read where it lies. Everything else comes in pieces, goes on where it broke off, and is tried again; what
came is used only if it is what was planned, and never more of it than was listed, or than the cache takes. What was
fetched once is taken for what lies there as long as the store's own word for its content says so; where it has none,
it is fetched anew. Credentials are the library's business: none is taken from an address.
"""

import contextlib
import email.utils
import hashlib
import html.parser
import os
import re
import secrets
import stat
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.artifacts.files import leads_out
from harness.core.errors import ConfigError, EnvironmentUnavailable, SelectionError
from harness.machine.files import refusal
from harness.store.codec import draft_of
from harness.store.run_folder import PLAN, PROBES

TRIES = 4
# Doubled after each try: a store that limits requests is asked less often.
FIRST_WAIT_S = 0.5
CHUNK_BYTES = 8 << 20
CACHE_BYTES = 20 << 30
UNREACHABLE = "spurious-unreachable"
# What drivers raise where nobody, or nobody any more, says who asks; by name, for none of them is imported here.
NO_CREDENTIALS = frozenset(
    {
        *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError"),
        *("SSOTokenLoadError", "UnauthorizedSSOTokenError", "DefaultCredentialsError", "RefreshError"),
    }
)
REFUSED = (401, 403)
"""Of HTTP, where a driver passes it on as it came."""
GONE, PARTIAL = (404, 410), 206
EXPIRED = "FileExpired"
"""What s3fs raises where an object is written anew while it is read."""
VERSIONS = ("ETag", "etag", "generation", "LastModified", "mtime", "created")
MODIFIED = "Last-Modified"
"""Of HTTP, to the second: it says nothing of a file that may have been written anew within it (RFC 9110, 8.8.2.2)."""
SETTLED_S = 60.0
HTTP = ("http", "https")
PLAIN = {"Accept-Encoding": "identity"}
"""A server that packs what it sends says no size, and its bytes are none of the file's."""
LISTING_BYTES = 64 << 20
MOST_DEEP, MOST_FILES = 32, 1_000_000
STALLED_S, LEAST_BYTES_PER_S = 60.0, 1 << 10
"""A server that is slower than this, after that time, does not answer."""
UNANSWERED_S = 1.5 * STALLED_S
"""For one read of HTTP: aiohttp 3.14.5 has waited without end where a server broke off, whatever its own timeouts."""
CACHED = re.compile(r"[0-9a-f]{32}(\.[A-Za-z0-9]{1,16})?")
"""How a file of the cache is called: nothing else there is ours."""
SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,16}")
DRIVER = "pip install 'torchscript-gate[fleet]' and the driver: s3fs for s3://, gcsfs for gs://, aiohttp for https://"


class SourceFault(Exception):
    """Raised where an artifact cannot be had; ``label`` is one of ``harness/apps/fleet/faults.py``."""

    def __init__(self, label: str, text: str) -> None:
        super().__init__(text)
        self.label = label
        self.text = text


class Link(StrEnum):
    """What a listed path is, if it is a folder that is not looked into.

    ``OUT``: a link that leads out of the store. ``AGAIN``: to a folder above it, or it lies below another link.
    ``SHUT``: no link, but a folder that this user may not list.
    """

    NO = ""
    OUT = "out"
    AGAIN = "again"
    SHUT = "shut"


class Listed(NamedTuple):
    """A file of a store: its path there, its size, and a word that changes with its content; empty where none does."""

    path: str
    size: int
    version: str = ""
    link: Link = Link.NO


class Store(Protocol):
    """A place that holds artifacts; ``is_here``: in a folder of this machine, of whoever may write there."""

    name: str
    is_here: bool

    def files(self) -> tuple[Listed, ...]:
        """Return every file, by path, as the store has it now. Raises ``SourceFault``: it cannot be listed."""

    def local(self, listed: Listed) -> Path:
        """Return a file of this machine with that content. Raises ``SourceFault``: it cannot be had."""


def listed_files(store: Store) -> tuple[Listed, ...]:
    """Return every file of a store that was named. Raises ``SelectionError``: it cannot be listed."""
    try:
        return store.files()
    except SourceFault as fault:
        raise SelectionError(
            f"{store.name} cannot be listed: {fault.text}",
            "name a folder that this user may read, or an address such as s3://bucket, and see its credentials",
        ) from None


def open_store(name: str, cache: Path, *, leave_out: Sequence[Path] = (), limit_bytes: int = CACHE_BYTES) -> Store:
    """Return the store that a folder or an address means; nothing is listed yet.

    Raises:
        ConfigError: it is no address, or one that holds a password or a signature.
        EnvironmentUnavailable: it cannot be reached without another package.
    """
    scheme = name.partition("://")[0] if "://" in name else ""
    if scheme in ("", "file"):
        return FolderStore(Path(name.removeprefix("file://")).absolute(), leave_out)
    address = urllib.parse.urlsplit(name)
    if address.password is not None or (scheme in HTTP and address.query):
        what = "a password" if address.password is not None else "a query, as signed addresses do"
        raise ConfigError(
            f"{scheme}://...: the address holds {what}, which reports would show",
            "give credentials as the library of that store takes them: environment, profile, role",
        )
    return RemoteStore(name.rstrip("/"), _file_system(name, scheme), cache, limit_bytes)


def _file_system(name: str, scheme: str) -> Any:
    try:
        import fsspec  # noqa: PLC0415  only who names an address needs it
    except ImportError as error:
        raise EnvironmentUnavailable(f"{name}: reading {scheme}:// needs fsspec", DRIVER) from error
    try:
        return fsspec.core.url_to_fs(name, **(_waiting() if scheme in HTTP else {}))[0]
    except ImportError as error:
        raise EnvironmentUnavailable(f"{name}: {error}", DRIVER) from error
    except ValueError as error:
        raise ConfigError(f"{name}: {error}", "name a folder, or an address such as s3://bucket/models") from error


def _waiting() -> dict[str, Any]:
    """Return the timeout of the HTTP driver: for the next bytes, however long all of them take."""
    import aiohttp  # noqa: PLC0415  that driver needs it

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=STALLED_S, sock_read=STALLED_S)
    return {"client_kwargs": {"timeout": timeout}}


class FolderStore:
    """A folder. No link is followed out of it; folders with a dot in front, and those of runs, are left out.

    A link to a folder of the store is followed, so that every place has its artifacts; what is not followed is listed.
    """

    is_here = True

    def __init__(self, folder: Path, leave_out: Sequence[Path] = ()) -> None:
        self.name = str(folder)
        self._folder = folder
        self._leave_out = {os.path.realpath(path) for path in leave_out}

    def files(self) -> tuple[Listed, ...]:
        if not self._folder.is_dir():
            raise SourceFault(UNREACHABLE, "no such folder")
        return tuple(sorted(self._walked()))

    def _walked(self) -> Iterator[Listed]:
        root = os.path.realpath(self._folder)
        waiting = [(self._folder, False)]
        while waiting:
            folder, is_below_link = waiting.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                if folder == self._folder:
                    raise SourceFault("spurious-forbidden", error.strerror or str(error)) from None
                yield Listed(self._path_of(folder), 0, link=Link.SHUT)
                continue
            for entry in entries:
                path, is_link = Path(entry.path), entry.is_symlink()
                if not _is_folder(entry):
                    yield self._file(path)
                elif entry.name.startswith(".") or self._is_left_out(path):
                    continue
                elif is_link and leads_out(entry.path, root):
                    yield Listed(self._path_of(path), 0, link=Link.OUT)
                elif is_link and (is_below_link or Path(os.path.realpath(folder)).is_relative_to(path.resolve())):
                    yield Listed(self._path_of(path), 0, link=Link.AGAIN)
                else:
                    waiting.append((path, is_below_link or is_link))

    def _file(self, path: Path) -> Listed:
        try:
            status = path.stat()
        except OSError:  # a link to nothing: whoever wants it is told
            return Listed(self._path_of(path), 0)
        return Listed(self._path_of(path), status.st_size, str(status.st_mtime_ns))

    def _path_of(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _is_left_out(self, folder: Path) -> bool:
        return os.path.realpath(folder) in self._leave_out or ((folder / PLAN).exists() and (folder / PROBES).exists())

    def local(self, listed: Listed) -> Path:
        path = self._folder / listed.path
        if leads_out(str(path), os.path.realpath(self._folder)):
            raise SourceFault("spurious-link", f"{listed.path} is a link that leads out of the store")
        try:
            if stat.S_ISREG(path.stat().st_mode):
                return path
        except OSError:
            what = "is a link to nothing" if path.is_symlink() else "is no longer in the store"
            raise SourceFault("spurious-vanished", f"{listed.path} {what}") from None
        raise SourceFault("spurious-vanished", f"{listed.path} is no plain file")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


class RemoteStore:
    """What a file system of fsspec reaches below an address."""

    is_here = False

    def __init__(
        self,
        name: str,
        file_system: Any,
        cache: Path,
        limit_bytes: int = CACHE_BYTES,
        *,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self._fs = file_system
        self._cache = cache
        self._limit_bytes = limit_bytes
        self._wait = wait
        self._is_http = name.partition("://")[0] in HTTP
        self._fetched: dict[str, Path] = {}

    def files(self) -> tuple[Listed, ...]:
        self._fetched.clear()  # what nothing is known of is fetched once for each listing
        files = self._pages() if self._is_http else self._objects()
        if not files:
            raise SourceFault("spurious-vanished", f"{self.name} holds no file")
        return tuple(sorted(files))

    def _objects(self) -> list[Listed]:
        root = self._fs._strip_protocol(self.name)  # noqa: SLF001  its way from an address to its own paths
        self._fs.invalidate_cache()  # drivers remember what they have listed
        objects = self._asked(lambda: self._fs.find(root, detail=True), self.name)
        return [  # a key may begin with "/" or hold "//": it is another key than the one without
            Listed(path.removeprefix(f"{root}/"), int(facts.get("size") or 0), _version(facts))
            for path, facts in objects.items()
            if path.startswith(f"{root}/") and not (path.endswith("/") and not facts.get("size"))  # marks a folder
        ]

    def _pages(self) -> list[Listed]:
        files: set[str] = set()
        waiting, seen = [f"{self.name}/"], {f"{self.name}/"}
        while waiting:
            page = waiting.pop()
            for link in self._asked(partial(self._linked, page), page):
                if not link.endswith("/"):
                    files.add(link)
                elif link not in seen and link.count("/") - self.name.count("/") <= MOST_DEEP:
                    seen.add(link)
                    waiting.append(link)
            if len(files) + len(seen) > MOST_FILES:
                raise SourceFault(UNREACHABLE, f"{self.name} lists more than {MOST_FILES:,} files")
        return [Listed(link.removeprefix(f"{self.name}/"), 0) for link in files]

    def _linked(self, page: str) -> set[str]:
        links = _Links()
        content = b"".join(self._pieces(page, limit_bytes=LISTING_BYTES))
        links.feed(content.decode("utf-8", "replace"))
        whole = {urllib.parse.urljoin(page, link.strip()) for link in links.found}
        return {link for link in whole if link.startswith(page) and link != page and not set("?#") & set(link)}

    def local(self, listed: Listed) -> Path:
        """Return a copy of it, fetched unless what is there already is known to be it."""
        listed = self._known(listed)
        path = self._place(listed, listed.version) if listed.version else self._fetched.get(listed.path)
        if path is not None and path.is_file():
            path.touch()  # used last: what was not goes first
            return path
        if listed.size > self._limit_bytes:
            raise SourceFault("spurious-disk", self._too_large(listed.path, self._limit_bytes))
        part = draft_of(self._cache / secrets.token_hex(8))
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            self._asked(lambda: self._fetch(listed, part), f"{self.name}/{listed.path}")
            self._require_listed(listed, part)
            path = self._place(listed, listed.version or _digest_of(part))
            part.replace(path)
        except OSError as error:
            raise SourceFault("spurious-disk", f"{self._cache} cannot be written: {refusal(error)}") from None
        finally:
            part.unlink(missing_ok=True)
        self._fetched[listed.path] = path
        self._trim(path)
        return path

    def _known(self, listed: Listed) -> Listed:
        if listed.version or not self._is_http:
            return listed
        facts = self._asked(lambda: self._fs.info(f"{self.name}/{listed.path}"), f"{self.name}/{listed.path}")
        return listed._replace(size=int(facts.get("size") or 0), version=_version(facts))

    def _place(self, listed: Listed, content: str) -> Path:
        named = hashlib.sha256(f"{self.name}/{listed.path}\0{listed.size}\0{content}".encode()).hexdigest()
        suffix = Path(listed.path).suffix
        return self._cache / f"{named[:32]}{suffix if SUFFIX.fullmatch(suffix) else ''}"

    def _too_large(self, path: str, limit_bytes: int) -> str:
        return f"{path} is larger than {limit_bytes:,} bytes, more than is fetched of it"

    def _require_listed(self, listed: Listed, part: Path) -> None:
        if listed.size and part.stat().st_size != listed.size:
            raise SourceFault("spurious-changed", f"{listed.path} has another size than it was listed with")
        if self._is_http and listed.version and self._known(listed._replace(version="")).version != listed.version:
            raise SourceFault("spurious-changed", f"{listed.path} was written anew while it was read")

    def _fetch(self, listed: Listed, part: Path) -> None:
        """Append what is missing of it to ``part``, as long as it is what was listed."""
        limit_bytes = listed.size or self._limit_bytes
        with part.open("ab") as target:
            for piece in self._pieces(f"{self.name}/{listed.path}", target, listed, limit_bytes=limit_bytes):
                target.write(piece)

    def _pieces(
        self, address: str, target: Any = None, listed: Listed | None = None, *, limit_bytes: int
    ) -> Iterator[bytes]:
        """Yield the rest of a file behind what ``target`` has, or all of it. Raises ``SourceFault``: not as listed."""
        begin = target.tell() if target is not None else 0
        if listed is not None and 0 < listed.size <= begin:
            return
        with self._fs.open(address, "rb", **(_streaming(begin) if self._is_http else {})) as source:
            now = _version(getattr(source, "details", None) or {})
            if listed is not None and listed.version and now and now != listed.version:
                raise SourceFault("spurious-changed", f"{listed.path} was written anew since it was listed")
            if not self._is_http:
                source.seek(begin)
            elif begin and getattr(getattr(source, "r", None), "status", None) != PARTIAL:
                target.truncate(0)  # it begins anew
                begin = 0
            received, since_s = begin, time.monotonic()
            bound = {"timeout": UNANSWERED_S} if self._is_http else {}
            while chunk := source.read(CHUNK_BYTES, **bound):
                received += len(chunk)
                if received > limit_bytes:
                    raise SourceFault("spurious-disk", self._too_large(address, limit_bytes))
                taken_s = time.monotonic() - since_s
                if taken_s > STALLED_S and received - begin < taken_s * LEAST_BYTES_PER_S:
                    raise TimeoutError(f"{received - begin} bytes in {taken_s:.0f} s")
                yield chunk

    def _asked(self, ask: Callable[[], Any], what: str) -> Any:
        """Return what the store answers, asked again where it fails. Raises ``SourceFault``: it has no answer."""
        wait_s = FIRST_WAIT_S
        for attempt in range(1, TRIES + 1):
            try:
                return ask()
            except SourceFault:
                raise
            except Exception as raised:  # noqa: BLE001  every driver has exceptions of its own
                error = _beneath(raised)
                if isinstance(error, FileNotFoundError) or getattr(error, "status", None) in GONE:
                    raise SourceFault("spurious-vanished", f"{what} is not there") from None
                words = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                if _is_refusal(error):
                    text = f"{what}: these credentials may not read it, are missing, or have expired: {words}"
                    raise SourceFault("spurious-forbidden", text) from None
                if type(error).__name__ == EXPIRED:
                    raise SourceFault("spurious-changed", f"{what} was written anew while it was read") from None
                if attempt == TRIES:
                    raise SourceFault(UNREACHABLE, f"{what}, tried {TRIES} times: {words}") from None
                self._wait(wait_s)
                wait_s *= 2
        raise AssertionError

    def _trim(self, keep: Path) -> None:
        """Remove what was not used for longest, until the cache is within its bound; never what was just fetched."""
        files = []
        for path in cached_in(self._cache):
            with contextlib.suppress(FileNotFoundError):  # another process keeps to the bound as well
                status = path.stat()
                files.append((status.st_mtime, path, status.st_size))
        size = sum(bytes_ for _, _, bytes_ in files)
        for _, path, bytes_ in sorted(files):
            if size <= self._limit_bytes:
                return
            if path != keep:
                size -= bytes_
                path.unlink(missing_ok=True)


def _streaming(begin: int) -> dict[str, Any]:
    """Return how fsspec's driver of HTTP opens a file as it comes, from ``begin`` on where the server can do that."""
    headers = {**PLAIN, **({"Range": f"bytes={begin}-"} if begin else {})}
    return {"block_size": 0, "size": 1, "headers": headers}  # any size: so it need not ask for it, and reads to the end


class _Links(html.parser.HTMLParser):
    """Collects where a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def cached_in(folder: Path) -> list[Path]:
    """Return the files of a cache that were fetched into it; no links, and nothing that is called otherwise."""
    try:
        return [path for path in folder.iterdir() if CACHED.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode)]
    except OSError:
        return []


def _digest_of(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _beneath(error: Exception) -> Exception:
    """Return what a driver took for a file that is not there: the HTTP one says so of everything that fails."""
    cause = error.__cause__
    return cause if isinstance(error, FileNotFoundError) and isinstance(cause, Exception) else error


def _version(facts: Mapping[str, Any]) -> str:
    """Return a word that changes with the content of a file, of what a driver says of it; empty where it says none."""
    version = next((str(facts[key]) for key in VERSIONS if facts.get(key)), "").strip('"')
    if version or not facts.get(MODIFIED) or not facts.get("size"):
        return version
    try:
        age_s = time.time() - email.utils.parsedate_to_datetime(facts[MODIFIED]).timestamp()
    except (ValueError, OverflowError):
        return ""
    return str(facts[MODIFIED]) if age_s > SETTLED_S else ""


def _is_refusal(error: Exception) -> bool:
    return (
        isinstance(error, PermissionError)
        or type(error).__name__ in NO_CREDENTIALS
        or getattr(error, "status", None) in REFUSED
    )
