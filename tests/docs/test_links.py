from pathlib import Path

import pytest

from tests.docs.pages import FENCE, PAGES, PROJECT, anchors, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_resolves(page: Path) -> None:
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or not path.is_relative_to(PROJECT):
            broken.append(link)
        elif anchor and anchor not in anchors(path):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_row_of_a_table_is_one_line(page: Path) -> None:
    lines = [line.strip() for line in FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()]
    assert not [line for line in lines if line.startswith("|") and (not line.endswith("|") or "| |--" in line)]


def test_links_are_found_at_all() -> None:
    assert len(links(PROJECT / "README.md")) > 10


def test_the_readme_leads_to_every_page() -> None:
    reached, new = set(), {PROJECT / "README.md"}
    while new:
        page = new.pop()
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link}
        new |= {target for target in targets if target.suffix == ".md" and target.exists()} - reached
    assert not [name_of(page) for page in PAGES if page not in reached]


def test_every_adr_is_numbered_once_and_has_its_three_parts() -> None:
    records = sorted((PROJECT / "docs" / "adr").glob("[0-9]*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        text = record.read_text(encoding="utf-8")
        assert text.startswith(f"# {record.name[:4]}: ")
        assert [line for line in text.splitlines() if line.startswith("## ")] == [
            "## Context",
            "## Decision",
            "## Consequences",
        ]
