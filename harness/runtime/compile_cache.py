"""Compiles once and finds it again: one folder per recipe, filled under a lock between processes.

The binary gets its name last and in one step; beside it lies the compiler's log.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from harness.runtime import file_lock
from harness.runtime.compiler import first_error
from harness.runtime.installer import run_installer
from harness.runtime.patience import Patience


class NotBuilt(Exception):
    """Raised when something cannot be built; the text says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Everything that decides what comes out.

    Attributes:
        name: for people, in the folder's name.
        output: file name of what is built.
        command, libraries: what is run, with ``-o FILE`` between the two.
        identity: what else makes another build: versions and digests.
    """

    name: str
    output: str
    command: tuple[str, ...]
    libraries: tuple[str, ...]
    identity: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Name of the folder that holds the build."""
        text = json.dumps([self.output, self.command, self.libraries, self.identity])
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def find_or_compile(recipe: Recipe, folder: Path, patience: Patience) -> tuple[Path, bool]:
    """Return what ``recipe`` builds, below ``folder``, and whether it was there already.

    Raises:
        NotBuilt: the compiler failed.
        Cancelled, DeadlineExceeded: the compiler's process group has been killed.
        OSError: the folder cannot be written, or the compiler cannot be started.
    """
    place = folder / recipe.folder
    binary = place / recipe.output
    if binary.exists():
        return binary, True
    place.mkdir(parents=True, exist_ok=True)
    with file_lock.held(place / ".lock", patience) as lock:
        if binary.exists():  # another process has built it in the meantime
            return binary, True
        _compile(recipe, binary, patience, lock)
    return binary, False


def _compile(recipe: Recipe, binary: Path, patience: Patience, lock: int) -> None:
    log = binary.with_name("compiler.log")
    log.write_bytes(b"")
    draft = binary.with_name(f".{binary.name}.part")
    command = (*recipe.command, "-o", str(draft), *recipe.libraries)
    try:
        status = run_installer(command, log, patience, lock=lock)
        if status != 0:
            said = first_error(log.read_text(encoding="utf-8", errors="replace"))
            raise NotBuilt(f"{recipe.command[0]} failed on {recipe.name}: {said[:300]}; full log: {log}")
        draft.replace(binary)
    finally:
        draft.unlink(missing_ok=True)
