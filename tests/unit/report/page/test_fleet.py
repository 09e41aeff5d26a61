"""A fleet's page: causes and waves for everybody, artifacts as data that no name can break out of."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from harness.core.outcome import Status
from harness.apps.fleet.answer.since import with_since
from harness.report.page.fleet import COLUMNS, render_fleet_html
from tests.unit.builders.fleets import fleet_answer
from tests.unit.builders.reports import HOSTILE_NAMES
from tests.unit.report.page.test_html import Page

MANY = tuple(f"model_{at:04}" for at in range(5000))


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def test_every_artifact_is_in_the_data_with_what_it_waits_for() -> None:
    answer = fleet_answer(MANY, causes=12)
    found = data_of(render_fleet_html(answer))
    rows = [dict(zip(COLUMNS, (found["texts"][at] for at in row), strict=False)) for row in found["rows"]]
    assert {row["artifact"] for row in rows} == set(MANY)
    assert len(found["texts"]) == len(set(found["texts"]))
    first = rows[0]
    assert (first["status"], first["wave"]) == ("FAIL", "stays") and first["upgrade"].startswith("blocked by ")


def test_the_first_screen_is_causes_and_waves_and_no_artifact_is_an_element() -> None:
    answer = fleet_answer(MANY, causes=12)
    text = render_fleet_html(replace(answer, notes=answer.notes[:3], faults=answer.faults[:3]))
    page = Page(text)
    assert page.open == []
    assert text.index('id="board-causes"') < text.index('id="board-waves"') < text.index('id="artifacts"')
    assert len(page.tags) < 1000
    assert len(text) < 2_000_000


def test_hostile_names_stay_text() -> None:
    earlier = fleet_answer(HOSTILE_NAMES)
    green = replace(earlier, rows=tuple(replace(row, status=Status.PASS, content="1") for row in earlier.rows))
    text = render_fleet_html(with_since(earlier, [green]))
    page = Page(text)
    assert page.open == [] and text.isascii()
    assert len(page.all("script")) == 2 and not page.all("img")
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = {str(link["href"])[1:] for link in page.all("a") if str(link["href"]).startswith("#")}
    assert inside <= set(ids)
    held = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert held is not None and not {"<", ">", "&"} & set(held[1])


def test_the_policy_names_the_script_by_its_digest_and_forbids_all_loading() -> None:
    text = render_fleet_html(fleet_answer(("a",)))
    for kind in ("style", "script"):
        inline = re.search(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert inline is not None
        digest = base64.b64encode(hashlib.sha256(inline[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in text.replace("&#39;", "'")


def test_what_changed_stands_on_the_page_and_in_the_rows() -> None:
    now = fleet_answer(("a", "b", "c"), causes=1)
    before = replace(now, rows=tuple(replace(row, status=Status.PASS, content="1") for row in now.rows))
    text = render_fleet_html(with_since(now, [before]))
    found = data_of(text)
    assert {found["texts"][row[8]] for row in found["rows"]} == {"new"}
    assert "Since the earlier answer" in Page(text).text
    assert 'id="since"' not in render_fleet_html(now)
