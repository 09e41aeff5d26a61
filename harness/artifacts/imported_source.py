"""A digest of the Python source that building a model may import besides its own file, for stored exports.

It is neither run nor parsed: all source of the package, or of the folder, counts. What else it may read (data, weights,
packages of the environment) is not covered.
"""

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from harness.core.models import ModelDeclaration

MOST_FILES = 2000
MOST_FOLDERS = 5000


class ImportedSource:
    """Digests, each folder read once, as a run must not mix states; ``too_many``: folders with too much source."""

    def __init__(self) -> None:
        self.too_many: list[Path] = []
        self._known: dict[Path, str | None] = {}
        self._lock = threading.Lock()

    def __call__(self, declaration: ModelDeclaration) -> str | None:
        """Return a digest of what may be imported; empty if nothing, None if it cannot be known (unread, too much)."""
        place = _place(declaration)
        if place is None:
            return ""
        with self._lock:
            if place not in self._known:
                self._known[place] = _digest(place)
                if self._known[place] is None:
                    self.too_many.append(place)
            return self._known[place]


def _place(declaration: ModelDeclaration) -> Path | None:
    if declaration.given is not None:
        inputs = declaration.given.inputs
        return Path(inputs).parent if inputs.endswith(".py") else None
    source = Path(declaration.package_root, declaration.source)
    parts = declaration.module.split(".")
    root = source.parents[len(parts) - (source.name != "__init__.py")]
    if (root / parts[0] / "__init__.py").is_file():
        return root / parts[0]
    return root if declaration.package_root else source  # a module beside a whole environment


def _digest(place: Path) -> str | None:
    files = [place] if place.is_file() else _source_below(place)
    if files is None:
        return None
    digest = hashlib.sha256()
    for path in files:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest.update(f"{os.path.relpath(path, place)}\0{len(content)}\0".encode(errors="surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _source_below(folder: Path) -> list[Path] | None:
    paths = []
    for count, (where, names) in enumerate(_folders(folder)):
        paths += [where / name for name in names if name.endswith(".py") and (where / name).is_file()]
        if len(paths) > MOST_FILES or count >= MOST_FOLDERS:
            return None
    return sorted(paths)


def _folders(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield every folder that a dotted name can lead to, once; links are followed, as an import does."""
    seen = set()
    for where, folders, files in os.walk(folder, followlinks=True):
        place = os.path.realpath(where)
        if place in seen:
            folders.clear()
            continue
        seen.add(place)
        folders[:] = sorted(name for name in folders if name.isidentifier() and name != "__pycache__")
        if "pyvenv.cfg" in files and where != str(folder):
            folders.clear()
            continue
        yield Path(where), files
