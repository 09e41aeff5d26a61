"""Which operators answer otherwise since which release: measured call by call, beside the links of ``semantics``.

``atlas.xz`` beside this file is written by ``nox -s bench -- atlas``; it is read when somebody asks, in milliseconds.
"""

import functools
import json
import lzma
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from harness.core.atlas import Atlas, Kind, OperatorChange

FILE = Path(__file__).with_suffix(".xz")
REVERSED = {Kind.REFUSED: Kind.ACCEPTED, Kind.ACCEPTED: Kind.REFUSED}


@functools.cache
def atlas() -> Atlas:
    """Return what was measured."""
    table: dict[str, Any] = json.loads(lzma.decompress(FILE.read_bytes()))
    changes = tuple(map(_change, table.pop("changes")))
    return Atlas(**{**table, "releases": tuple(table["releases"])}, changes=changes)


def _change(item: dict[str, Any]) -> OperatorChange:
    lists = {name: tuple(item[name]) for name in ("features", "dtypes")}
    return OperatorChange(**{**item, **lists, "kind": Kind(item["kind"])})


def changed_between(measured: Atlas, old: str, new: str) -> Iterator[OperatorChange]:
    """Yield the changes that surely lie between two releases, in either order; none for an unreadable version.

    What is refused on the one way is accepted on the other.
    """
    before, after = _version(old), _version(new)
    if before is None or after is None:
        return
    low, high = sorted((before, after))
    within = {
        (first, last) for first, last in pairwise(measured.releases) if low <= Version(first) and Version(last) <= high
    }
    for change in measured.changes:
        if (change.old, change.new) in within:
            yield change if low is before else _turned(change)


def _version(release: str) -> Version | None:
    try:
        return Version(Version(release).public)
    except InvalidVersion:
        return None


def _turned(change: OperatorChange) -> OperatorChange:
    return replace(
        change,
        kind=REVERSED.get(change.kind, change.kind),
        old=change.new,
        new=change.old,
        before=change.after,
        after=change.before,
    )
