"""The page of operators is what the atlas says."""

from benchmarks.atlas.page import FILE, page


def test_the_page_is_written_out_of_the_atlas() -> None:
    assert FILE.read_text(encoding="utf-8") == page(), "python -m benchmarks.atlas.page writes it"
