"""Where one built environment lives, and whether it can be trusted.

The folder is named after what it holds (``torch-2.1.2-cp311-1a2b3c4d``). ``environment.json`` in it is written last
and in one step; a folder without it was left half-built. Beside the folder lie its ``.lock`` and its ``.log``.
"""

import hashlib
import json
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.version import Version

from harness.errors import EnvironmentUnavailable
from harness.runtime import file_lock
from harness.runtime.installer import environment_python, redacted
from harness.runtime.patience import Patience

MARKER: Final = "environment.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentSlot:
    """The place of one environment below ``root``.

    Attributes:
        release: torch release in full, ``"2.6.0"``.
        python: ``"3.11"``.
        extras, index_args, exact: as in ``EnvSpec``. Credentials in URLs do not count, so a new token rebuilds nothing.
    """

    root: Path
    release: str
    python: str
    extras: tuple[str, ...] = ()
    index_args: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()

    @property
    def identity(self) -> dict[str, object]:
        """What makes two environments the same one."""
        exact = {"exact": sorted(self.exact)} if self.exact else {}  # absent from those that were built before it
        return exact | {
            "schema": 1,
            "release": self.release,
            "python": self.python,
            "extras": sorted(self.extras),
            "index_args": [redacted(argument) for argument in self.index_args],
        }

    @property
    def folder(self) -> Path:
        """The environment itself."""
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]
        return self.root / f"torch-{self.release}-cp{self.python.replace('.', '')}-{digest}"

    @property
    def interpreter(self) -> Path:
        """Its Python; a link that must not be resolved."""
        return environment_python(self.folder)

    @property
    def log(self) -> Path:
        """The whole output of the installer."""
        return self.folder.with_name(self.folder.name + ".log")

    def is_built(self) -> bool:
        """Whether the environment is complete, holds what this slot asks for, and its Python still exists."""
        try:
            marker = json.loads((self.folder / MARKER).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        wanted = self.identity
        same = isinstance(marker, dict) and {key: marker.get(key) for key in wanted} == wanted
        return same and self.interpreter.exists()

    def mark_built(self) -> None:
        """Write the marker, after a check that the torch asked for is there.

        Raises:
            EnvironmentUnavailable: the installer succeeded and yet left another torch, or none.
        """
        torch = self._installed_torch()
        asked = Version(self.release)
        if torch is None or asked not in (Version(torch), Version(Version(torch).public)):
            raise EnvironmentUnavailable(
                f"torch {self.release} was asked for, the installer left {torch or 'none'}",
                f"check the extra requirements and the index arguments; full log: {self.log}",
            )
        draft = self.folder / (MARKER + ".draft")
        draft.write_text(json.dumps(self.identity | {"torch": torch}, indent=2, sort_keys=True) + "\n")
        draft.replace(self.folder / MARKER)

    def clear(self) -> None:
        """Remove the environment; the marker goes first, so that no moment shows a damaged one as built.

        Raises:
            OSError: something could not be removed.
        """
        (self.folder / MARKER).unlink(missing_ok=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def locked(self, patience: Patience) -> AbstractContextManager[int]:
        """Hold this slot's lock across all processes; see ``file_lock.held``."""
        return file_lock.held(self.folder.with_name(self.folder.name + ".lock"), patience)

    def _installed_torch(self) -> str | None:
        sites = [str(site) for site in self.folder.glob("lib/python3.*/site-packages")]
        return next((found.version for found in metadata.distributions(name="torch", path=sites)), None)
