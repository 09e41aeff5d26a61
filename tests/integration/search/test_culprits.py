"""A few of the planted culprits that ``nox -s bench -- bisect`` looks for: each named with its partners, and no other."""

import math
from pathlib import Path

import pytest

from harness.search.reduce import program
from harness.core.diagnosis import BisectAnswer
from tests.integration.search.culprits.asking import accused, stood
from tests.integration.search.culprits.cases import CASES

pytestmark = pytest.mark.integration

ASKED = ("gone_dead", "numbers_fork", "opt_error", "opt_two_numbers", "pair_segv")
CHOSEN = [case for case in CASES if case.name in ASKED]


@pytest.fixture(autouse=True)
def _a_busy_machine_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TIME_S", 600.0)


@pytest.mark.slow
def test_planted_nodes_are_named_and_no_other(old_python: str, new_python: str, tmp_path: Path) -> None:
    with stood(CHOSEN, (old_python, new_python), tmp_path / "defective") as stand:
        found = {case.name: stand.ask(case) for case in CHOSEN}
    assert {name: accused(item) for name, item in found.items()} == {case.name: case.guilty for case in CHOSEN}
    assert {name: item.answer for name, item in found.items()} == {
        "gone_dead": BisectAnswer.LOADING,
        "numbers_fork": BisectAnswer.OPERATOR,
        "opt_error": BisectAnswer.EXECUTOR,
        "opt_two_numbers": BisectAnswer.EXECUTOR,
        "pair_segv": BisectAnswer.EXECUTOR,
    }
    reductions = {name: item.reduction for name, item in found.items() if item.reduction is not None}
    assert sorted(reductions) == ["opt_error", "opt_two_numbers", "pair_segv"]
    assert all(item.rest_passes and not item.ended for item in reductions.values())
    assert all(culprit.minimal for item in reductions.values() for culprit in item.culprits)
    assert reductions["opt_error"].tests <= math.ceil(math.log2(reductions["opt_error"].nodes)) + 4


@pytest.mark.slow
def test_twins_whose_operators_work_leave_nothing_to_find(old_python: str, new_python: str, tmp_path: Path) -> None:
    """The same programs; only what rounds otherwise in the new release differs, and what is slow is so in both."""
    with stood(CHOSEN, (old_python, new_python), tmp_path / "healthy", defective=False) as stand:
        found = {case.name: stand.ask(case).answer for case in CHOSEN}
    assert found == dict.fromkeys(ASKED, BisectAnswer.NOTHING)
