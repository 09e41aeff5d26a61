"""What searches found is kept beside the run's report, and read back whatever else lies there."""

from dataclasses import replace
from pathlib import Path

from harness.core.report import Explained
from harness.store.explanations import keep, kept, place_of

TOLD = Explained(cell="m/backward/alone/cpu/default", model="m", by="bisect", answer="operator", lines=(("a", "b"),))


def test_what_is_kept_is_read_back_and_of_one_command_only_the_last(tmp_path: Path) -> None:
    keep(tmp_path, TOLD)
    keep(tmp_path, replace(TOLD, answer="another"))
    keep(tmp_path, replace(TOLD, by="first-bad"))
    assert [(item.by, item.answer) for item in kept(tmp_path)] == [("bisect", "another"), ("first-bad", "operator")]


def test_a_run_without_any_and_a_damaged_file_are_no_trouble(tmp_path: Path) -> None:
    assert kept(tmp_path) == ()
    keep(tmp_path, TOLD).write_text("{")
    assert kept(tmp_path) == ()


def test_each_cell_has_a_folder_that_a_file_system_takes() -> None:
    long = "m" * 300
    names = (
        long,
        long + "n",
        "m",
        100 * "\N{CYRILLIC SMALL LETTER YA}",
        90 * "\N{MATHEMATICAL BOLD SMALL A}",
        "..",
        "../x",
    )
    places = {place_of(f"{name}/backward/alone/cpu/default") for name in names}
    assert len(places) == len(names)
    assert all(len(Path(place).name.encode()) < 255 for place in places)
    assert all(Path(place).parent.name == "explained" and Path(place).name not in ("..", ".") for place in places)
