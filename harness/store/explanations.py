"""What searches have found about the cells of a run, kept in its folder: ``explained/CELL/COMMAND.told.json``."""

from pathlib import Path

from harness.core.report import Explained
from harness.store import codec
from harness.store.results import ResultStore, WhyNot

FOLDER = "explained"
NAME_LIMIT = 150


def place_of(cell: str) -> str:
    name = cell.replace("/", "__").replace("\0", "_")
    encoded = name.encode("utf-8", "replace")
    begin = encoded[:NAME_LIMIT].decode("utf-8", "ignore")
    short = name if len(encoded) <= NAME_LIMIT else f"{begin}-{codec.digest(cell)[:8]}"
    return f"{FOLDER}/{short}"


def explanations_in(run: Path) -> ResultStore[Explained]:
    return ResultStore(run / FOLDER, Explained, suffix=".told.json", encode=codec.pretty)


def key(cell: str, command: str) -> str:
    return f"{Path(place_of(cell)).name}/{command}"


def keep(run: Path, explained: Explained) -> Path:
    """Write ``explained`` in place of the same command's last word; return its path. Raises ``RunDirError``.

    What only that one had measured is kept.
    """
    store, name = explanations_in(run), key(explained.cell, explained.by)
    before = store.reusable(name)
    return store.save(name, explained if isinstance(before, WhyNot) else explained.after(before))


def kept(run: Path) -> tuple[Explained, ...]:
    """Return all explanations in the folder of a run, by cell and command; unreadable ones are left out."""
    return tuple(explanations_in(run).readable("*/*"))
