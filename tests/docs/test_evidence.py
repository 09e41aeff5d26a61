"""The page of evidence says what was measured, and whoever cites it cites a section of it."""

import json
import re

from tests.docs.pages import PROJECT, anchors
from benchmarks.evidence.measure import FACTS
from benchmarks.evidence.page import PAGE, RESULTS, filled

CITED = re.compile(r"evidence\.md#([a-z-]+)")


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    """``nox -s evidence`` writes them."""
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text) == text


def test_every_fact_has_its_section_its_command_its_results_and_its_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in FACTS:
        assert name in anchors(PAGE)
        assert f"`nox -s evidence -- {name}`" in " ".join(text.split())
        assert f"<!-- measured: {name} -->" in text
        assert json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    assert {path.stem for path in RESULTS.glob("*.json")} == set(FACTS)


def test_what_code_cites_is_a_section_of_the_page() -> None:
    files = [path for folder in ("harness", "tests", "fixtures") for path in (PROJECT / folder).rglob("*.py")]
    cited = {name for path in files for name in CITED.findall(path.read_text(encoding="utf-8"))}
    assert cited
    assert cited <= set(anchors(PAGE))
