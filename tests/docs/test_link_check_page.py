"""The table of what releases have dropped is what the index of symbols says."""

from harness.checks.linking import known_symbols
from harness.checks.linking.libtorch import is_api
from tests.docs.pages import PROJECT


def table() -> str:
    """Return the rows of the page's table."""
    rows, before = [], None
    for release in known_symbols.known():
        libtorch = known_symbols.release(release)
        if before is not None:
            lost = sum(map(is_api, before.exported - libtorch.exported))
            strings = "newer" if libtorch.new_strings else "older"
            needs = f"{libtorch.versions['GLIBC']} | {libtorch.versions['GLIBCXX']}"
            rows.append(f"| {release} | {lost:,} | {sum(map(is_api, before.exported)):,} | {strings} | {needs} |")
        before = libtorch
    return "\n".join(rows)


def test_the_table_is_what_the_index_says() -> None:
    assert table() in (PROJECT / "docs" / "guide" / "link-check.md").read_text(encoding="utf-8")
