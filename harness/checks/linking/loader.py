"""Finds what the dynamic loader would bring with a binary: its libraries, and the folders it looks in."""

import functools
import platform
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.shared_objects import SharedObject, is_elf, read_file
from harness.core.errors import ConfigError
from harness.machine.files import text_of

# ld.so(8): after RPATH, LD_LIBRARY_PATH and RUNPATH those of ld.so.conf and the trusted ones.
SYSTEM = ("lib/{triple}", "usr/lib/{triple}", "lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib")
# The parts of a path, those of links included; a circle of links ends here.
MOST_STEPS = 200


@dataclass(frozen=True, kw_only=True)
class Loader:
    """Looks for libraries below ``root``: ``/`` for this machine, or an image's unpacked file system."""

    root: Path

    def bring(self, binary: SharedObject, *, without: Sequence[str]) -> tuple[list[SharedObject], list[str]]:
        """Return the libraries that come with a binary, and the names of those that are not there.

        ``without``: names of LibTorch's own libraries, which are not followed: the two sides stand for them.
        """
        found: dict[str, SharedObject] = {}
        absent: list[str] = []
        waiting = [(name, binary) for name in binary.needed]
        while waiting:
            name, user = waiting.pop(0)
            if name in found or name in absent or name in without:
                continue
            place = self._place(name, user)
            if place is None:
                absent.append(name)
                continue
            found[name] = read_file(place)
            waiting += [(needed, found[name]) for needed in found[name].needed]
        return [*found.values()], absent

    def provided(self) -> dict[str, tuple[str, ...]]:
        """Return the symbol versions that the C and C++ runtimes here define, by library."""
        places = {name: self._place(name, None) for name in ("libc.so.6", "libstdc++.so.6")}
        return {name: read_file(place).provided for name, place in places.items() if place is not None}

    def has(self, name: str) -> bool:
        """Whether a library lies in one of the system's folders."""
        return self._place(name, None) is not None

    def run_path(self, binary: SharedObject) -> list[Path]:
        """Return the folders that the binary itself names, as they lie here."""
        origin = str(Path(binary.file).resolve().parent)
        texts = (text.replace("${ORIGIN}", "$ORIGIN") for text in binary.run_path)
        return [
            Path(text.replace("$ORIGIN", origin)) if text.startswith("$ORIGIN") else self.root / text.lstrip("/")
            for text in texts
        ]

    def _place(self, name: str, user: SharedObject | None) -> Path | None:
        if "/" in name:
            return found if is_elf(found := self._followed(self.root / name.lstrip("/"))) else None
        own = [*self.run_path(user), Path(user.file).parent] if user is not None else []
        places = (self._followed(folder / name) for folder in (*own, *self._system))
        return next((place for place in places if is_elf(place)), None)

    @functools.cached_property
    def _system(self) -> tuple[Path, ...]:
        triple = f"{platform.machine()}-linux-gnu"
        own = self._configured(self.root / "etc" / "ld.so.conf")
        return (*own, *(self.root / folder.format(triple=triple) for folder in SYSTEM))

    def _configured(self, file: Path) -> Iterator[Path]:
        """Yield the folders that ``ld.so.conf`` names, and the files that it includes."""
        for line in text_of(self._followed(file)).splitlines():
            words = line.partition("#")[0].split()
            if words[:1] == ["include"]:
                for pattern in words[1:]:
                    for included in sorted(
                        self.root.glob(str(file.parent.relative_to(self.root) / pattern).lstrip("/"))
                    ):
                        yield from self._configured(included)
            else:
                yield from (self.root / word.lstrip("/") for word in words)

    def _followed(self, path: Path) -> Path:
        """Follow links as a process does whose root this is: an absolute one stays below it."""
        if self.root == Path("/") or not path.is_relative_to(self.root):
            return path
        place, waiting = self.root, deque(path.relative_to(self.root).parts)
        for _ in range(MOST_STEPS):
            if not waiting:
                break
            part = waiting.popleft()
            if part == "..":
                place = place.parent if place != self.root else place
            elif (place / part).is_symlink():
                target = (place / part).readlink()
                place = self.root if target.is_absolute() else place
                waiting.extendleft(reversed(target.parts[target.is_absolute() :]))
            else:
                place /= part
        return place


def binaries_in(named: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield (ELF file, whether it was named itself), of folders all that lie in them, in order and each once.

    Raises:
        ConfigError: what was named is not there, or a folder has none.
    """
    seen: set[Path] = set()
    for path in named:
        if not path.exists():
            raise ConfigError(f"{path} is not there", "name the server's executable, its .so files, or their folder")
        files = sorted(file for file in path.rglob("*") if file.is_file() and is_elf(file)) if path.is_dir() else [path]
        if not files:
            raise ConfigError(f"{path} has no executable and no shared library", "name the folder that has them")
        for file in files:
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield file, not path.is_dir()
