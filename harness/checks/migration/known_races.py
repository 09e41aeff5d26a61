"""Races of packages that releases are known to have: rare, so that a run which sees none must not hide them.

Seen in 2.6.0, 2.11.0 and 2.15.0: docs/guide/migrate.md, "Packages, served". A release between two in which one was seen
counts as one that has it. Pure.
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from harness.checks.migration.deprecation import line_of
from harness.environments.pythons import Minor


class Race(NamedTuple):
    """One race.

    Attributes:
        first, last: the release lines of those that were looked at between which it was seen.
        words: what happens now and then, what a server does instead, and where upstream tells of it.
        mitigation: name of the setting that mitigates it where a run sees it.
    """

    first: Minor
    last: Minor
    words: str
    mitigation: str


RACES: Final = (
    Race(
        (2, 6),
        (2, 15),
        "{} loads packages, and now and then two loads at once crash or hang: put a mutex around loading"
        " (pytorch 194128)",
        "serialized loading",
    ),
    Race(
        (2, 6),
        (2, 11),
        "{} compiled packages, and now and then first calls made at once deadlock: make one call before threads come"
        " (pytorch 181941)",
        "serialized first calls",
    ),
)


def race_notes(name: str, torch: str, known: Collection[str]) -> Iterator[str]:
    """Yield each race of a release that makes and loads packages, but the ``known``: those whose mitigation the run has
    found.
    """
    for race in RACES:
        if race.first <= line_of(torch) <= race.last and race.mitigation not in known:
            yield f"seen here or not: {race.words.format(name)}"
