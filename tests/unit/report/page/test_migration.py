"""The page of a migration: outcomes, causes, cures and owners for everybody, artifacts as data."""

import re

from harness.report.page.migration import COLUMNS, render_migration_html
from tests.unit.builders.migrations import MIXED, OWNED, hostile, migration, of_teams, ready
from tests.unit.report.page.test_fleet import data_of
from tests.unit.report.page.test_html import Page


def test_every_artifact_is_in_the_data_with_where_it_stops_and_how_long_it_loads() -> None:
    found = data_of(render_migration_html(OWNED))
    rows = [dict(zip(COLUMNS, (found["texts"][at] for at in row), strict=False)) for row in found["rows"]]
    assert [row["artifact"] for row in rows][-1] == "ranker"  # what is ready comes last
    tagger = next(row for row in rows if row["artifact"] == "tagger")
    assert (tagger["owner"], tagger["outcome"], tagger["stops at"]) == ("search", "not convertible", "prim::If")
    assert "not in 2.15.0 (aten::qr: torch 2.15.0+cpu does not have it)" in tagger["horizon"]
    assert "deprecated in 2.15.0: aten::chain_matmul (use torch.linalg.multi_dot)" in tagger["horizon"]
    assert tagger["steps"] == "convert: export error"
    assert "convert 1.24 s, run in 2.15.0 12.0 ms" in found["texts"]


def test_the_first_screen_has_outcomes_causes_cures_owners_and_horizon_and_no_artifact_is_an_element() -> None:
    text = render_migration_html(of_teams(5000))
    page = Page(text)
    assert page.open == []
    boards = [text.index(f'id="board-{name}"') for name in ("causes", "cures", "owners", "horizon")]
    assert boards == sorted(boards) and boards[-1] < text.index('id="artifacts"')
    assert "1667 of 5000 artifacts can leave TorchScript" in page.text
    assert len(page.tags) < 1000
    assert len(text) < 1_500_000


def test_cures_name_their_causes_and_how_sure_it_is_that_nothing_else_stops() -> None:
    page = Page(render_migration_html(OWNED))
    assert "2 artifacts stop here" in page.text
    assert "1 artifact stops here; nothing else stops it" in page.text
    assert any(link.get("data-find") == "cause:not-convertible-prim::If" for link in page.all("a"))


def test_without_a_manifest_there_are_no_owners_to_choose() -> None:
    text = render_migration_html(MIXED)
    assert data_of(text)["owners"] == []
    assert 'id="board-owners"' not in text


def test_all_ready_has_nothing_in_the_way() -> None:
    page = Page(render_migration_html(migration(ready())))
    assert "1 of 1 artifact can leave TorchScript" in page.text and "Nothing stands in the way." in page.text


def test_hostile_names_stay_text() -> None:
    text = render_migration_html(hostile())
    page = Page(text)
    assert page.open == [] and text.isascii()
    assert len(page.all("script")) == 2 and not page.all("img")
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = {str(link["href"])[1:] for link in page.all("a") if str(link["href"]).startswith("#")}
    assert inside <= set(ids)
    held = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert held is not None and not {"<", ">", "&"} & set(held[1])
