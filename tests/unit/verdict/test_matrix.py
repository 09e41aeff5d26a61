"""What a matrix amounts to: exit code, pairs and sentences."""

import pytest

from harness.core.environment import Fingerprint
from harness.core.releases import BACKWARD, FORWARD, GIVEN, SAME
from harness.core.outcome import Status
from harness.core.errors import ExitCode
from harness.verdict.matrix import direction_between, direction_of, judge_matrix, twins
from tests.unit.builders.matrices import RELEASES, absent, cell, green, matrix, mixed, refused, with_

GREEN = green("ranker", "tagger")


def test_all_green_is_compatible_and_says_how_far_back() -> None:
    verdict = judge_matrix(matrix(GREEN))
    assert verdict.exit_code is ExitCode.COMPATIBLE
    assert "the oldest release whose artifacts load and answer the same in 2.15.0: 2.1.2" in verdict.sentences
    assert "from 2.15.0 one can roll back to 2.1.2, 2.6.0" in verdict.sentences


def test_a_break_in_a_newer_release_is_incompatible() -> None:
    found = matrix(with_(GREEN, refused("tagger", "2.1.2", "2.15.0")))
    verdict = judge_matrix(found)
    assert verdict.exit_code is ExitCode.INCOMPATIBLE
    assert verdict.pairs["2.1.2", "2.15.0"].status is Status.FAIL
    assert (verdict.pairs["2.1.2", "2.15.0"].passed, verdict.pairs["2.1.2", "2.15.0"].tested) == (1, 2)
    assert "the oldest release whose artifacts load and answer the same in 2.15.0: 2.6.0" in verdict.sentences


def test_a_break_in_an_older_release_only_warns() -> None:
    verdict = judge_matrix(matrix(with_(GREEN, refused("tagger", "2.15.0", "2.1.2"))))
    assert verdict.exit_code is ExitCode.COMPATIBLE
    assert "from 2.15.0 one can roll back to 2.6.0" in verdict.sentences


def test_nothing_to_roll_back_to_is_said() -> None:
    breaks = [refused("tagger", "2.15.0", loader) for loader in RELEASES[:2]]
    (said,) = [text for text in judge_matrix(matrix(with_(GREEN, *breaks))).sentences if text.startswith("from 2.15.0")]
    assert said.startswith("from 2.15.0 one can roll back to none of 2.1.2, 2.6.0")


@pytest.mark.parametrize(
    "other", [cell("tagger", "2.6.0", "2.1.2", Status.INCONCLUSIVE), absent("tagger", "2.6.0", "2.1.2")]
)
def test_what_is_undecided_is_never_green(other: object) -> None:
    assert judge_matrix(matrix(with_(GREEN, other))).exit_code is ExitCode.INCONCLUSIVE  # type: ignore[arg-type]


def test_what_fails_at_home_too_is_no_regression() -> None:
    same = [cell("tagger", "2.1.2", loader, Status.SAME_FAIL) for loader in RELEASES]
    verdict = judge_matrix(matrix(with_(GREEN, *same)))
    assert verdict.exit_code is ExitCode.COMPATIBLE
    assert "2.1.2, 1 that did not work there left out" in verdict.sentences[0]


def test_a_matrix_that_tested_nothing_is_not_green() -> None:
    nothing = tuple(absent("tagger", row, column) for row in RELEASES for column in RELEASES)
    assert judge_matrix(matrix(nothing)).exit_code is ExitCode.INCONCLUSIVE


def test_what_works_nowhere_is_nothing_tested_and_given_artifacts_say_so() -> None:
    row = [
        cell("net", GIVEN, name, Status.SAME_FAIL, direction=SAME if name == "2.1.2" else BACKWARD) for name in RELEASES
    ]
    verdict = judge_matrix(matrix(tuple(row), golden_in="2.1.2"))
    assert verdict.exit_code is ExitCode.INCONCLUSIVE
    assert verdict.pairs[GIVEN, "2.6.0"].status is Status.SAME_FAIL
    assert verdict.sentences == (
        "nothing tested: what fails in another release fails where it comes from too",
        "the given artifacts do not all load and answer as in 2.1.2 in any other release",
    )


def test_what_passes_at_home_alone_is_nothing_tested() -> None:
    cells = [
        cell("m", row, column, Status.PASS if row == column else Status.SAME_FAIL)
        for row in RELEASES
        for column in RELEASES
    ]
    verdict = judge_matrix(matrix(tuple(cells)))
    assert verdict.exit_code is ExitCode.INCONCLUSIVE
    assert verdict.sentences[1] == "no release has artifacts that all load and answer the same in 2.15.0"
    assert (
        "whether one can roll back from 2.15.0 is not known: nothing that works there could be exported"
        in verdict.sentences
    )


def test_the_given_artifacts_that_never_worked_are_named() -> None:
    places = {name: SAME if name == "2.1.2" else BACKWARD for name in RELEASES}
    row = [cell("net", GIVEN, name, direction=places[name]) for name in RELEASES]
    row += [cell("cut", GIVEN, name, Status.SAME_FAIL, direction=places[name]) for name in RELEASES]
    verdict = judge_matrix(matrix(tuple(row), golden_in="2.1.2"))
    assert verdict.exit_code is ExitCode.COMPATIBLE
    assert verdict.sentences == (
        "the given artifacts load and answer as in 2.1.2 in: 2.6.0, 2.15.0, 1 that did not work there left out: cut",
    )


def test_what_could_not_be_exported_is_no_part_of_the_rollback() -> None:
    cells = with_(green("a", "b", "c"), *(absent(name, "2.6.0", column) for name in "ab" for column in RELEASES))
    said = judge_matrix(matrix(cells)).sentences
    assert "from 2.6.0 one can roll back to 2.1.2, as far as exported: 1 of 3" in said
    assert "from 2.15.0 one can roll back to 2.1.2, 2.6.0" in said


def test_what_is_left_out_is_reported_per_release_where_it_differs() -> None:
    cells = with_(green("a", "b"), cell("a", "2.15.0", "2.1.2", Status.SAME_FAIL))
    assert (
        "from 2.15.0 one can roll back to 2.1.2 (1 that did not work there left out: a), 2.6.0"
        in judge_matrix(matrix(cells)).sentences
    )


def test_one_torch_twice_is_no_upgrade_and_said() -> None:
    one, other, twin = (
        Fingerprint(torch="2.1.2+cpu", git_revision="a"),
        Fingerprint(torch="2.6.0+cpu", git_revision="b"),
        Fingerprint(torch="2.1.2+cpu", git_revision="a", python="3.10"),
    )
    assert (direction_of(one, twin), direction_of(one, other), direction_of(other, twin)) == (SAME, BACKWARD, FORWARD)
    (said,) = twins({"prod": one, "next": other, "copy": twin})
    assert said == "copy holds the same torch as prod, 2.1.2+cpu: no upgrade, so not tested as one"
    assert twins({"prod": one, "next": other}) == ()
    cells = tuple(cell("m", row, column, direction=SAME) for row in RELEASES for column in RELEASES)
    verdict = judge_matrix(matrix(cells))
    assert verdict.exit_code is ExitCode.INCONCLUSIVE
    assert verdict.sentences == ("nothing tested: there is nothing to load in another release than its own",)


def test_given_artifacts_are_judged_by_the_release_of_the_golden_outputs() -> None:
    row = [cell("net", GIVEN, name, direction=SAME if name == "2.1.2" else BACKWARD) for name in RELEASES]
    found = matrix((*row[:2], refused("net", GIVEN, "2.15.0", direction=BACKWARD)), golden_in="2.1.2")
    verdict = judge_matrix(found)
    assert verdict.exit_code is ExitCode.INCOMPATIBLE
    assert verdict.sentences == ("the given artifacts load and answer as in 2.1.2 in: 2.6.0",)


@pytest.mark.parametrize(
    ("exporter", "loader", "direction"),
    [
        ("2.6.0", "2.15.0", BACKWARD),
        ("2.15.0", "2.6.0", FORWARD),
        ("2.6.0+cpu", "2.6.0+cu124", BACKWARD),
        ("unknown", "2.6.0", BACKWARD),
    ],
)
def test_direction_follows_the_public_version(exporter: str, loader: str, direction: str) -> None:
    assert direction_between(exporter, loader) == direction


def test_pairs_count_every_kind_of_cell() -> None:
    pair = judge_matrix(mixed()).pairs["2.1.2", "2.6.0"]
    assert (pair.tested, pair.passed, pair.failed, pair.undecided, pair.broken_before, pair.absent) == (
        5,
        2,
        2,
        0,
        1,
        0,
    )
    assert judge_matrix(mixed()).pairs["2.15.0", "2.1.2"].absent == 1
