"""Rounds of a duel that were fought, in the folder of the run: an interrupted duel goes on where it stopped."""

from dataclasses import dataclass
from pathlib import Path

from harness.domain.machine import MachineScene
from harness.domain.measurement import PairSample
from harness.errors import RunDirError
from harness.runtime import codec


@dataclass(frozen=True, kw_only=True, slots=True)
class FoughtRound:
    """What one round gave.

    Attributes:
        key: digest of what was asked; a round that was asked for something else is not taken for this one.
        problems: model -> why it has no sample.
    """

    key: str
    samples: tuple[PairSample, ...]
    problems: dict[str, str]
    scene: MachineScene | None = None


def save(folder: Path, number: int, fought: FoughtRound) -> None:
    """Store a round.

    Raises:
        RunDirError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    codec.write_atomically(_path(folder, number), codec.canonical(fought))


def load(folder: Path, number: int, key: str) -> FoughtRound | None:
    """Return a stored round if it was asked for the same, else None."""
    if not _path(folder, number).is_file():
        return None
    try:
        found = codec.read_json(_path(folder, number), FoughtRound)
    except RunDirError:
        return None
    return found if found.key == key else None


def _path(folder: Path, number: int) -> Path:
    return folder / f"round-{number}.json"
