"""Where a fleet's artifacts lie: a folder, or whatever fsspec reaches. Listed, and fetched into a bounded cache.

A folder is read where it lies. Everything else comes in pieces, goes on where it broke off, and is tried again; what
came is used only if it is what was planned. Credentials are the library's business: none is taken from an address.
"""

import contextlib
import hashlib
import os
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.domain.text import first_few
from harness.errors import ConfigError, SelectionError
from harness.models.files import leads_out
from harness.store.run_folder import PLAN, PROBES
from harness.system.files import refusal

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
EXPIRED = "FileExpired"
"""What s3fs raises where an object is written anew while it is read."""
VERSIONS = ("ETag", "etag", "generation", "LastModified", "mtime", "created")
DRIVER = "pip install 'torchscript-upgrade-gate[fleet]' and the driver: s3fs for s3://, gcsfs for gs://, aiohttp for https://"


class SourceFault(Exception):
    """Raised where an artifact cannot be had; ``label`` is one of ``harness/fleet/faults.py``."""

    def __init__(self, label: str, text: str) -> None:
        super().__init__(text)
        self.label = label
        self.text = text


class Listed(NamedTuple):
    """A file of a store: its path there, its size, and a word that changes with its content, as far as one knows."""

    path: str
    size: int
    version: str = ""


class Store(Protocol):
    """A place that holds artifacts."""

    name: str

    def files(self) -> tuple[Listed, ...]:
        """Return every file, by path, as the store has it now.

        Raises:
            SourceFault: there is no such store, or it cannot be listed.
        """

    def local(self, listed: Listed) -> Path:
        """Return a file of this machine with the content of a file of the store.

        Raises:
            SourceFault: it is gone, or cannot be had.
        """


def listed_files(store: Store) -> tuple[Listed, ...]:
    """Return every file of a store that was named, by path.

    Raises:
        SelectionError: there is no such store, or it cannot be listed.
    """
    try:
        return store.files()
    except SourceFault as fault:
        raise SelectionError(
            f"{store.name} cannot be listed: {fault.text}",
            "name a folder that this user may read, or an address such as s3://bucket, and see its credentials",
        ) from None


def open_store(name: str, cache: Path, *, leave_out: Sequence[Path] = (), limit_bytes: int = CACHE_BYTES) -> Store:
    """Return the store that a folder or an address means; nothing is listed yet.

    Args:
        cache: where files of other machines are kept.
        leave_out: folders below it that are no part of it.

    Raises:
        ConfigError: it cannot be reached without another package, or the address holds a password or a signature.
    """
    scheme = name.partition("://")[0] if "://" in name else ""
    if scheme in ("", "file"):
        return FolderStore(Path(name.removeprefix("file://")).absolute(), leave_out)
    said = urllib.parse.urlsplit(name)
    if said.password is not None or (scheme in ("http", "https") and said.query):
        what = "a password" if said.password is not None else "a query, as signed addresses do"
        raise ConfigError(
            f"{scheme}://...: the address holds {what}, which reports would show",
            "give credentials as the library of that store takes them: environment, profile, role",
        )
    return RemoteStore(name.rstrip("/"), _file_system(name, scheme), cache, limit_bytes)


def _file_system(name: str, scheme: str) -> Any:
    try:
        import fsspec  # noqa: PLC0415  only who names an address needs it
    except ImportError as error:
        raise ConfigError(f"{name}: reading {scheme}:// needs fsspec", DRIVER) from error
    try:
        return fsspec.core.url_to_fs(name)[0]
    except ImportError as error:
        raise ConfigError(f"{name}: {error}", DRIVER) from error
    except ValueError as error:
        raise ConfigError(f"{name}: {error}", "name a folder, or an address such as s3://bucket/models") from error


class FolderStore:
    """A folder. No link is followed out of it; folders with a dot in front, and those of runs, are left out."""

    def __init__(self, folder: Path, leave_out: Sequence[Path] = ()) -> None:
        self.name = str(folder)
        self._folder = folder
        self._leave_out = {os.path.realpath(path) for path in leave_out}

    def files(self) -> tuple[Listed, ...]:
        """Return every file, by path."""
        if not self._folder.is_dir():
            raise SourceFault(UNREACHABLE, "no such folder")
        return tuple(sorted(self._walked()))

    def _walked(self) -> Iterator[Listed]:
        refused: list[str] = []
        for root, folders, names in os.walk(self._folder, onerror=lambda error: refused.append(str(error.filename))):
            folders[:] = [
                name for name in folders if not name.startswith(".") and not self._is_left_out(Path(root, name))
            ]
            for name in names:
                path = Path(root, name)
                with contextlib.suppress(OSError):
                    status = path.stat()
                    yield Listed(path.relative_to(self._folder).as_posix(), status.st_size, str(status.st_mtime_ns))
        if refused:
            raise SourceFault("spurious-forbidden", f"{first_few(refused, 3)}: cannot be listed")

    def _is_left_out(self, folder: Path) -> bool:
        return os.path.realpath(folder) in self._leave_out or ((folder / PLAN).exists() and (folder / PROBES).exists())

    def local(self, listed: Listed) -> Path:
        """Return where it lies."""
        path = self._folder / listed.path
        if leads_out(str(path), os.path.realpath(self._folder)):
            raise SourceFault("spurious-link", f"{listed.path} is a link that leads out of the store")
        if not path.is_file():
            raise SourceFault("spurious-vanished", f"{listed.path} is no longer in the store")
        return path


class RemoteStore:
    """What a file system of fsspec reaches below an address."""

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

    def files(self) -> tuple[Listed, ...]:
        """Return every file, by path."""
        root = self._fs._strip_protocol(self.name)  # noqa: SLF001  its way from an address to its own paths
        self._fs.invalidate_cache()  # drivers remember what they have listed
        found = self._asked(lambda: self._fs.find(root, detail=True), self.name)
        if not found:
            raise SourceFault("spurious-vanished", f"{self.name} holds no file")
        return tuple(
            sorted(
                Listed(path.removeprefix(root).lstrip("/"), int(facts.get("size") or 0), _version(facts))
                for path, facts in found.items()
            )
        )

    def local(self, listed: Listed) -> Path:
        """Return a copy of it, fetched unless it is there already."""
        named = hashlib.sha256(f"{self.name}/{listed.path}\0{listed.size}\0{listed.version}".encode()).hexdigest()
        path = self._cache / f"{named[:32]}{Path(listed.path).suffix}"
        if path.is_file():
            path.touch()  # used last: what was not goes first
            return path
        self._cache.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.unlink(missing_ok=True)
        try:
            self._asked(lambda: self._fetch(listed, part), f"{self.name}/{listed.path}")
            if listed.size and part.stat().st_size != listed.size:
                raise SourceFault("spurious-changed", f"{listed.path} has another size than it was listed with")
            part.replace(path)
        except OSError as error:
            raise SourceFault("spurious-disk", f"{self._cache} cannot be written: {refusal(error)}") from None
        finally:
            part.unlink(missing_ok=True)
        self._trim(path)
        return path

    def _fetch(self, listed: Listed, part: Path) -> None:
        """Append what is missing of it to ``part``, as long as it is what was listed."""
        with part.open("ab") as target, self._fs.open(f"{self.name}/{listed.path}", "rb") as source:
            now = _version(getattr(source, "details", None) or {})
            if listed.version and now and now != listed.version:
                raise SourceFault("spurious-changed", f"{listed.path} was written anew since it was listed")
            source.seek(target.tell())
            while chunk := source.read(CHUNK_BYTES):
                target.write(chunk)

    def _asked(self, ask: Callable[[], Any], what: str) -> Any:
        """Return what the store answers, which is asked again where it fails.

        Raises:
            SourceFault: it is not there, may not be read, changes, or does not answer.
        """
        wait_s = FIRST_WAIT_S
        for attempt in range(1, TRIES + 1):
            try:
                return ask()
            except SourceFault:
                raise
            except FileNotFoundError:
                raise SourceFault("spurious-vanished", f"{what} is not there") from None
            except Exception as error:  # noqa: BLE001  every driver has exceptions of its own
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
        files = sorted(
            (path for path in self._cache.iterdir() if path.is_file()), key=lambda path: path.stat().st_mtime
        )
        size = sum(path.stat().st_size for path in files)
        for path in files:
            if size <= self._limit_bytes:
                return
            if path != keep:
                size -= path.stat().st_size
                path.unlink(missing_ok=True)


def _version(facts: Mapping[str, Any]) -> str:
    """Return a word that changes with the content of a file, of what a driver says of it; empty where it says none."""
    return next((str(facts[key]) for key in VERSIONS if facts.get(key)), "").strip('"')


def _is_refusal(error: Exception) -> bool:
    return (
        isinstance(error, PermissionError)
        or type(error).__name__ in NO_CREDENTIALS
        or getattr(error, "status", None) in REFUSED
    )
