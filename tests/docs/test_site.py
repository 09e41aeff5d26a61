"""The site: every page has its place on it, and it is built without a warning."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import __version__
from tests.docs.pages import PAGES, PROJECT, links

INDEX = PROJECT / "docs" / "index.md"


def targets(page: Path) -> set[Path]:
    return {(page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link}


def test_the_first_page_leads_to_every_page_in_one_step_or_over_the_list_of_decisions() -> None:
    reached = {INDEX} | targets(INDEX) | targets(PROJECT / "docs" / "adr" / "README.md")
    assert not set(PAGES) - reached


def test_a_page_stands_in_one_part_of_the_first_page_only() -> None:
    named = [link for link in links(INDEX) if "://" not in link]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("page", sorted((PROJECT / "docs" / "guide").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_the_guide_begins_with_one_title(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", "docs", ".", str(tmp_path)]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        made = tmp_path / page.relative_to(PROJECT).with_suffix(".html")
        text = made.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]* src="https?:|<link[^>]* href="https?:', text), made
    assert "docs/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")
    first = (tmp_path / "docs" / "index.html").read_text(encoding="utf-8")
    assert "Getting started" in first
    assert f"<title>TorchScript upgrade gate {__version__}</title>" in first
    assert "caption-text" in first
