"""Races of packages that releases are known to have: rare, so that a run which sees none must not hide them.

Seen in 2.6.0, 2.11.0 and 2.15.0: docs/guide/migrate.md, "Packages, served". Pure.
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from harness.environments.pythons import Minor
from harness.successor.deprecation import line_of


class Race(NamedTuple):
    """One race.

    Attributes:
        first, last: the release lines of those that were looked at between which it was seen.
        what: what happens now and then; ``instead``: what a server does; ``issue``: where upstream tells of it.
        mitigation: the setting that cures it where a run sees it.
    """

    first: Minor
    last: Minor
    what: str
    instead: str
    issue: str
    mitigation: str


RACES: Final = (
    Race(
        (2, 6),
        (2, 15),
        "two loads at once crash or hang now and then",
        "put a mutex around loading",
        "pytorch 194128",
        "serialized loading",
    ),
    Race(
        (2, 6),
        (2, 11),
        "first calls of one package, made at once, deadlock now and then",
        "make one call before threads come",
        "pytorch 181941",
        "serialized first calls",
    ),
)


def race_notes(name: str, torch: str, kinds: Collection[str]) -> Iterator[str]:
    """Yield each race of the packages of a release that no cause of the run tells of.

    Args:
        name: of the release, as the user named it; ``torch``: its version.
        kinds: of what stands in the way of the run's models.
    """
    for race in RACES:
        told = any(race.mitigation in kind for kind in kinds)
        if race.first <= line_of(torch) <= race.last and not told:
            yield f"packages of {name}, seen in this run or not: {race.what}; {race.instead} ({race.issue})"
