"""Which rewrite of what is not convertible counts as its cure, and what of its way is kept; without torch."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.search.rewrite import conversion
from harness.core.diagnosis import RewriteReport
from harness.core.migration import Migrated, MigratedModel
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import RewriteOrder
from harness.artifacts.adopted import PROVENANCE
from harness.checks.migration.cures import REWRITES
from harness.checks.migration.facts import Loader, RewrittenArchives, Served, Tried
from harness.verdict.migration import judge
from tests.unit.builders.stages import Runner, effects, facts_of, probed, result
from tests.unit.verdict.test_migration import READY, refused
from tests.unit.verdict.test_served_packages import CRASHED, PACKAGED, measured, served

FREEZE, CLONE, REQUESTED, RETRACE = REWRITES
NODE = {"kind": "prim::If", "source": "m.py:1", "code": "", "reason": "two shapes"}
BLOCKED = refused("ValueError: two shapes", **NODE)
SLOW = replace(PACKAGED, timed=measured(1.2, 1.3, 1.4), slower_by=0.05)
NO_PACKAGE = replace(READY, package=probed(result("ranker", Outcome.EXPORT_ERROR)))


class Asked:
    """What ``try_all`` was asked for: the archives of each rewrite, and whether packages of them go on in C++."""

    def __init__(self, ways: Mapping[str, Tried]) -> None:
        self.ways = ways
        self.rewritten: dict[str, list[Artifact]] = {}
        self.in_cpp: list[bool] = []

    def __call__(self, facts: Any, loaders: Any, effects: Any, **asked: Any) -> list[Tried]:
        rewritten: RewrittenArchives = asked["rewritten"]
        self.rewritten[rewritten.rewrite] = list(rewritten.archives.values())
        self.in_cpp.append(asked["in_cpp"])
        assert all(facts.artifact(name).path == f"/a/{name}.pt" for name in rewritten.archives)  # what people serve
        return [replace(self.ways[rewritten.rewrite], model=name) for name in rewritten.archives]


Cured = Callable[..., tuple[MigratedModel, Asked]]


@pytest.fixture
def cured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cured:
    """Return what comes of a model when each rewrite comes to that on its way; those without a way are not made."""

    def tried(ways: Mapping[str, Tried], old_outcome: Outcome = Outcome.COMPLETED) -> tuple[MigratedModel, Asked]:
        def rewritten(old: Artifact, order: RewriteOrder, *_: Any) -> tuple[RewriteReport, Artifact | None, str]:
            if order.whole not in ways:
                return RewriteReport(), None, f"{order.whole} does not fit"
            folder = tmp_path / order.whole
            folder.mkdir()
            (folder / PROVENANCE).write_text("{}")
            (folder / "m.pt").write_text(order.whole)
            return RewriteReport(), replace(old, path=str(folder / "m.pt"), digest=order.whole), ""

        asked = Asked(ways)
        monkeypatch.setattr(conversion, "ask", rewritten)
        monkeypatch.setattr(conversion, "try_all", asked)
        runner = Runner(lambda request: probed(result("m", old_outcome), side=request.side))
        around = replace(effects(runner), run_dir=cast(Any, SimpleNamespace(path=tmp_path, name="run")))
        (found,) = conversion.try_cures(
            [replace(BLOCKED, model="m")],
            [judge(replace(BLOCKED, model="m"))],
            facts_of("m"),
            [Loader(name="2.15.0", side="new")],
            around,
            package=True,
            in_cpp=True,
        )
        return found, asked

    return tried


def test_the_first_rewrite_that_holds_is_the_cure_and_no_other_is_tried(cured: Cured) -> None:
    found, asked = cured({FREEZE: BLOCKED, REQUESTED: PACKAGED, RETRACE: PACKAGED})
    assert (found.outcome, found.cured_by, found.cured_outcome) == (Migrated.NOT_CONVERTIBLE, REQUESTED, Migrated.READY)
    assert [(cure.name, cure.outcome) for cure in found.cures] == [
        (FREEZE, Migrated.NOT_CONVERTIBLE),
        (CLONE, None),
        (REQUESTED, Migrated.READY),
    ]
    assert found.cures[1].reason == "clone-arguments does not fit"
    assert list(asked.rewritten) == [FREEZE, REQUESTED]
    assert asked.in_cpp == [True, True]
    assert not any(cure.archive or cure.steps for cure in found.cures[:2])


def test_what_a_cure_comes_to_when_served_is_its_outcome_and_takes_nothing_from_it(cured: Cured) -> None:
    crashed = replace(PACKAGED, served=(served(), replace(CRASHED, cure=("serialized loading",))))
    found, asked = cured({FREEZE: crashed, RETRACE: PACKAGED})
    (cure,) = found.cures
    assert (found.cured_by, found.cured_outcome, cure.outcome) == (FREEZE, *[Migrated.FAILS_SERVED] * 2)
    assert "crash in load signal SIGABRT in 2 of 5 rounds" in cure.reason
    assert cure.advice == "verified: serialized loading (a mutex around loading)"
    assert Path(cure.archive).parts[0] == "cures"
    assert [step.name for step in cure.steps][-2:] == ["serve: same file N times"] * 2
    assert list(asked.rewritten) == [FREEZE]


def test_no_rewrite_that_fixes_more_is_tried_where_the_old_release_was_too_busy_to_answer(cured: Cured) -> None:
    found, asked = cured({FREEZE: PACKAGED, RETRACE: PACKAGED}, Outcome.STARVED)
    (cure,) = found.cures
    assert (cure.name, cure.outcome, found.cured_by) == (FREEZE, Migrated.UNDECIDED, "")
    assert "could not be judged: starved" in cure.reason
    assert list(asked.rewritten) == []


def test_a_slower_cure_has_its_price(cured: Cured) -> None:
    found, _ = cured({FREEZE: SLOW})
    (cure,) = found.cures
    assert (found.cured_outcome, cure.costs) == (Migrated.SLOWER, judge(SLOW).costs)
    assert cure.costs and cure.costs[0].quantity == "steady"


def test_of_a_machine_too_busy_to_serve_it_a_cure_is_one_all_the_same(cured: Cured) -> None:
    busy: Served = served(Outcome.STARVED)
    found, _ = cured({FREEZE: replace(PACKAGED, served=(busy,))})
    assert (found.cured_by, found.cured_outcome) == (FREEZE, Migrated.UNDECIDED)


def test_a_rewrite_of_which_no_package_can_be_made_is_no_cure(cured: Cured) -> None:
    found, _ = cured({FREEZE: NO_PACKAGE, CLONE: PACKAGED})
    assert found.cured_by == CLONE
    assert (found.cures[0].outcome, found.cures[0].costs) == (Migrated.NOT_PACKAGEABLE, ())


def test_a_busy_machine_makes_no_other_rewrite_the_cure(cured: Cured) -> None:
    starved = replace(READY, package=probed(result("ranker", Outcome.STARVED)))
    found, asked = cured({FREEZE: starved, RETRACE: PACKAGED})
    assert (found.cured_by, list(asked.rewritten)) == ("", [FREEZE])
    assert "could not be judged" in found.cures[0].reason


def test_where_no_rewrite_holds_all_say_why(cured: Cured) -> None:
    found, asked = cured({})
    assert (found.cured_by, found.cured_outcome, asked.rewritten) == ("", None, {})
    assert [cure.reason for cure in found.cures] == [f"{name} does not fit" for name in REWRITES]
