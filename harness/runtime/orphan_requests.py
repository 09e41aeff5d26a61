"""Request files that no artifact is asked with: mostly a name that is written in another way."""

import difflib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from harness.domain.fixture import ModelDeclaration
from harness.runtime.given_sources import REQUESTS, is_request_file, shown

MOST_TOLD: Final = 20
NEAR: Final = 0.5
"""From which likeness of two names on (0 to 1) one is named as what the other may have meant."""


def orphan_notes(models: Sequence[ModelDeclaration], names: Sequence[str]) -> tuple[str, ...]:
    """Return a note for each file that is called as requests are and belongs to no artifact.

    Args:
        models: that are given; the folders of their files are looked at.
        names: what the user named; of these, all that is below a folder is looked at.
    """
    given = [model.given for model in models if model.given is not None]
    used = {os.path.realpath(item.inputs) for item in given if item.inputs}
    idle = [item.path for item in given if not (item.inputs or item.requests or item.bundle)]
    orphans = [
        path for path in _request_files([item.path for item in given], names) if os.path.realpath(path) not in used
    ]
    notes = [f"{shown(path)}: requests of no artifact{_meant(path, idle)}" for path in orphans[:MOST_TOLD]]
    more = len(orphans) - MOST_TOLD
    return (*notes, *([f"and {more} more files with requests of no artifact"] if more > 0 else []))


def _meant(path: str, idle: Sequence[str]) -> str:
    """Return which artifact without requests may have been meant, in words; empty where none is called alike."""
    beside = [item for item in idle if Path(item).parent == Path(path).parent] or list(idle)
    stems = {Path(item).stem: item for item in beside}
    near = difflib.get_close_matches(Path(path).stem.removesuffix(REQUESTS), stems, n=1, cutoff=NEAR)
    if not near:
        return ""
    file = Path(stems[near[0]])
    where = "" if file.parent == Path(path).parent else f", beside {shown(str(file))}"
    return f"; those of {shown(file.name)} are called {shown(f'{file.stem}{REQUESTS}{Path(path).suffix}')}{where}"


def _request_files(paths: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Yield the request files beside artifacts and below folders, each once, if no file beside has their name."""
    seen: set[str] = set()
    for folder, files in _listed(paths, names):
        if folder in seen:
            continue
        seen.add(folder)
        requests = [name for name in files if is_request_file(name)]
        stems = {Path(name).stem for name in files if not is_request_file(name)} if requests else set()
        for name in sorted(requests):
            if Path(name).stem.removesuffix(REQUESTS) not in stems:
                yield str(Path(folder) / name)


def _listed(paths: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield folders, absolute, with the names of their files."""
    for name in names:
        for root, _, files in os.walk(os.path.abspath(name)):  # noqa: PTH100  nothing where it is no folder
            yield root, files
    for folder in dict.fromkeys(os.path.dirname(path) for path in paths):  # noqa: PTH120
        for root, _, files in itertools.islice(os.walk(folder), 1):
            yield root, files
