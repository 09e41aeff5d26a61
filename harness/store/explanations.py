"""What searches have found about the cells of a run, kept in its folder: ``explained/CELL/COMMAND.told.json``."""

from pathlib import Path

from harness.domain.report import Explained
from harness.errors import RunDirError
from harness.store import codec

FOLDER = "explained"
NAME_LIMIT = 150


def place_of(cell: str) -> str:
    """Return the folder of one cell, relative to the run."""
    name = cell.replace("/", "__").replace("\0", "_")
    encoded = name.encode("utf-8", "replace")
    begin = encoded[:NAME_LIMIT].decode("utf-8", "ignore")
    short = name if len(encoded) <= NAME_LIMIT else f"{begin}-{codec.digest(cell)[:8]}"
    return f"{FOLDER}/{short}"


def keep(run: Path, found: Explained) -> Path:
    """Write ``found`` into the folder of the run, in place of what the same command found before; return its path.

    Raises:
        RunDirError: the folder cannot be written.
    """
    path = run / place_of(found.cell) / f"{found.by}.told.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirError(f"{path} cannot be written: {error.strerror or error}", "check who owns the run") from error
    codec.write_atomically(path, codec.pretty(found))
    return path


def kept(run: Path) -> tuple[Explained, ...]:
    """Return all that is kept in the folder of a run, by cell and command; what cannot be read is left out."""
    found = []
    for path in sorted((run / FOLDER).glob("*/*.told.json")):
        try:
            found.append(codec.read_json(path, Explained))
        except RunDirError:
            continue  # damaged, or of another version: the search can be made again
    return tuple(found)
