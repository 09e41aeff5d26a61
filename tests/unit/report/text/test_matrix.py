"""A version matrix in its three forms, against accepted outputs."""

import json

import pytest

from harness.core.releases import Matrix
from harness.verdict.matrix import judge_matrix
from harness.report.json.results import dump_matrix, load_matrix
from harness.report.markdown.matrix import render_matrix_markdown
from harness.report.text.matrix import render_heat_map
from tests.unit.builders.matrices import RELEASES, green, hostile, matrix, mixed
from tests.unit.builders.snapshots import check_snapshot

MATRICES = {"matrix_mixed": mixed(), "matrix_hostile": hostile(), "matrix_green": matrix(green("ranker", "tagger"))}


def text(found: Matrix, *, width: int = 100, colour: bool = False) -> str:
    return render_heat_map(found, judge_matrix(found), width=width, colour=colour)


@pytest.mark.parametrize("name", MATRICES)
def test_forms_are_the_accepted_ones(name: str) -> None:
    found = MATRICES[name]
    verdict = judge_matrix(found)
    check_snapshot(f"{name}.txt", text(found))
    check_snapshot(f"{name}.md", render_matrix_markdown(found, verdict, directory="reports/matrix"))


def test_a_narrow_form_is_the_accepted_one() -> None:
    check_snapshot("matrix_mixed.80.txt", text(MATRICES["matrix_mixed"], width=80))


@pytest.mark.parametrize("name", MATRICES)
def test_json_is_read_back_equal_beside_what_it_amounts_to(name: str) -> None:
    found = MATRICES[name]
    verdict = judge_matrix(found)
    data = dump_matrix(found, verdict)
    assert dump_matrix(load_matrix(data.encode(), file="matrix.json"), verdict) == data
    told = json.loads(data)
    assert told["summary"] == list(verdict.sentences) and told["exit_code"] == int(verdict.exit_code)
    assert [(pair["exporter"], pair["loader"], pair["status"]) for pair in told["pairs"]] == [
        (pair.exporter, pair.loader, pair.status.value) for pair in verdict.pairs.values()
    ]


@pytest.mark.parametrize("name", MATRICES)
def test_text_fits_80_columns_except_for_commands_and_steers_no_terminal(name: str) -> None:
    lines = text(MATRICES[name], width=40).splitlines()
    assert [line for line in lines if len(line) > 80 and "-m harness" not in line] == []
    assert all(line.isprintable() for line in lines)


def test_shades_only_add_escape_sequences() -> None:
    plain, shaded = text(mixed()), text(mixed(), colour=True)
    assert shaded != plain
    for code in ("1;31", "31", "33", "36", "32", "2"):
        assert f"\x1b[{code}m" in shaded
        shaded = shaded.replace(f"\x1b[{code}m", "")
    assert [line.rstrip() for line in shaded.replace("\x1b[0m", "").splitlines()] == plain.splitlines()


def test_more_releases_than_fit_stand_in_blocks_below() -> None:
    names = tuple(f"2.{minor}.0" for minor in range(16))
    cells = tuple(item for item in green("ranker") if item.exporter == item.loader == RELEASES[0])
    from dataclasses import replace

    many = tuple(replace(cells[0], exporter=row, loader=column) for row in names for column in names)
    said = text(matrix(many, releases=names), width=80)
    assert said.count("loaded in") > 1
    assert all(said.count(f"\n{name} ") > 1 for name in names)


def test_a_model_that_is_green_everywhere_has_no_map_of_its_own() -> None:
    said = text(mixed())
    assert "\nranker\n" not in said
    assert said.index("\nold_op\n") < said.index("\ntagger\n")


def test_the_command_of_a_red_cell_tells_compat_of_its_environments() -> None:
    (line, *_) = [line for line in text(hostile()).splitlines() if "-m harness compat" in line]
    assert "--old 2.1.2 --new 2.15.0" in line
    assert "--env" not in line  # the release that needs it is on neither side


def test_json_is_read_back_with_every_cell() -> None:
    told = json.loads(dump_matrix(mixed(), judge_matrix(mixed())))
    assert (told["schema_version"], told["exit_code"]) == (1, 1)
    assert len(told["cells"]) == 3 * 3 * 5
    assert told["predictions"]["all"]["will load"]["did not load"] == 1
