"""The changelog: its form is that of Keep a Changelog, and it knows which version this is."""

import re
from collections.abc import Iterator
from datetime import date
from itertools import pairwise

import pytest
from packaging.version import Version

from harness import __version__
from tests.docs.pages import PROJECT

PARTS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
RELEASED = """\
# Changelog
## [Unreleased]
## [0.10.0] - 2026-12-24
### Fixed
- A mistake.
## [0.9.0] - 2026-12-01
### Added
- A command.
"""


def problems_of(text: str, version: str) -> Iterator[str]:
    """Yield what is wrong with a changelog of a checkout that calls itself ``version``."""
    head, *sections = re.split(r"(?m)^## ", text)
    titles = [section.partition("\n")[0] for section in sections]
    if titles[:1] != ["[Unreleased]"]:
        yield "the first section is not [Unreleased]"
        return
    releases = [re.fullmatch(r"\[(\S+)\] - (\d{4}-\d\d-\d\d)", title) for title in titles[1:]]
    yield from (f"no [VERSION] - DATE: {title}" for title, form in zip(titles[1:], releases, strict=True) if not form)
    named = [(Version(form[1]), date.fromisoformat(form[2])) for form in releases if form]
    yield from (
        f"{old[0]} is not older than {new[0]}" for new, old in pairwise(named) if new[0] <= old[0] or new[1] < old[1]
    )
    yield from (f"no part of a changelog: {part}" for part in re.findall(r"(?m)^### (.*)$", text) if part not in PARTS)
    if re.search(r"(?m)^- ", sections[0]):
        newest = named[0][0] if named else Version("0")
        if Version(version) <= newest:
            yield f"there is something unreleased, and {version} is released"
    elif not named or Version(version) != named[0][0]:
        yield f"nothing is unreleased, and {version} is not the newest release"


def test_the_changelog_has_a_section_per_release_and_knows_the_version() -> None:
    assert list(problems_of((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)) == []


@pytest.mark.parametrize(
    ("changed", "version", "problem"),
    [
        (("", ""), "0.10.0", None),
        (("[Unreleased]\n", "[Unreleased]\n### Added\n- More.\n"), "0.11.0", None),
        (("[Unreleased]\n", "[Unreleased]\n### Added\n- More.\n"), "0.10.0", "there is something unreleased"),
        (("", ""), "0.11.0", "nothing is unreleased"),
        (("## [Unreleased]\n", ""), "0.10.0", "the first section"),
        ((" - 2026-12-24", ""), "0.10.0", "no [VERSION] - DATE: [0.10.0]"),
        (("0.9.0", "0.10.1"), "0.10.0", "0.10.1 is not older than 0.10.0"),
        (("2026-12-01", "2026-12-25"), "0.10.0", "0.9.0 is not older than 0.10.0"),
        (("### Added", "### News"), "0.10.0", "no part of a changelog: News"),
    ],
)
def test_what_is_wrong_is_named(changed: tuple[str, str], version: str, problem: str | None) -> None:
    found = list(problems_of(RELEASED.replace(*changed, 1), version))
    assert not found if problem is None else found[0].startswith(problem)
