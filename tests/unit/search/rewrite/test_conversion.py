"""Which rewrite of what is not convertible counts as its attempt, and what of its way is kept; without torch."""

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
from harness.checks.migration.conversion_rewrites import REWRITES
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


Rewritten = Callable[..., tuple[MigratedModel, Asked]]


@pytest.fixture
def rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewritten:
    """Return what comes of a model when each rewrite comes to that on its way; those without a way are not made."""

    def tried(ways: Mapping[str, Tried], old_outcome: Outcome = Outcome.COMPLETED) -> tuple[MigratedModel, Asked]:
        def rewritten(old: Artifact, order: RewriteOrder, *_: Any) -> tuple[RewriteReport, Artifact | None, str]:
            if order.whole not in ways:
                return RewriteReport(), None, f"{order.whole} does not fit"
            folder = tmp_path / order.whole
            folder.mkdir()
            (folder / "m.pt").write_text(order.whole)
            return RewriteReport(), replace(old, path=str(folder / "m.pt"), digest=order.whole), ""

        asked = Asked(ways)
        monkeypatch.setattr(conversion, "ask", rewritten)
        monkeypatch.setattr(conversion, "try_all", asked)
        runner = Runner(lambda request: probed(result("m", old_outcome), side=request.side))
        around = replace(effects(runner), run_dir=cast(Any, SimpleNamespace(path=tmp_path, name="run")))
        (found,) = conversion.try_rewrites(
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


def test_the_first_rewrite_that_holds_is_the_fix_and_no_other_is_tried(rewritten: Rewritten) -> None:
    found, asked = rewritten({FREEZE: BLOCKED, REQUESTED: PACKAGED, RETRACE: PACKAGED})
    assert (found.outcome, found.rewritten_by, found.rewritten_outcome) == (
        Migrated.NOT_CONVERTIBLE,
        REQUESTED,
        Migrated.READY,
    )
    assert [(attempt.name, attempt.outcome) for attempt in found.rewrites] == [
        (FREEZE, Migrated.NOT_CONVERTIBLE),
        (CLONE, None),
        (REQUESTED, Migrated.READY),
    ]
    assert found.rewrites[1].reason == "clone-arguments does not fit"
    assert list(asked.rewritten) == [FREEZE, REQUESTED]
    assert asked.in_cpp == [True, True]
    assert not any(attempt.archive or attempt.steps for attempt in found.rewrites[:2])


def test_what_a_fix_comes_to_when_served_is_its_outcome_and_takes_nothing_from_it(rewritten: Rewritten) -> None:
    crashed = replace(PACKAGED, served=(served(), replace(CRASHED, mitigation=("serialized loading",))))
    found, asked = rewritten({FREEZE: crashed, RETRACE: PACKAGED})
    (attempt,) = found.rewrites
    assert (found.rewritten_by, found.rewritten_outcome, attempt.outcome) == (FREEZE, *[Migrated.FAILS_SERVED] * 2)
    assert "crash in load signal SIGABRT in 2 of 5 rounds" in attempt.reason
    assert attempt.advice == "verified: serialized loading (a mutex around loading)"
    assert Path(attempt.archive).parts[0] == "rewrites"
    assert [step.name for step in attempt.steps][-2:] == ["serve: same file N times"] * 2
    assert list(asked.rewritten) == [FREEZE]


def test_no_rewrite_that_fixes_more_is_tried_where_the_old_release_was_too_busy_to_answer(rewritten: Rewritten) -> None:
    found, asked = rewritten({FREEZE: PACKAGED, RETRACE: PACKAGED}, Outcome.STARVED)
    (attempt,) = found.rewrites
    assert (attempt.name, attempt.outcome, found.rewritten_by) == (FREEZE, Migrated.UNDECIDED, "")
    assert "could not be judged: starved" in attempt.reason
    assert list(asked.rewritten) == []


def test_a_slower_fix_has_its_price(rewritten: Rewritten) -> None:
    found, _ = rewritten({FREEZE: SLOW})
    (attempt,) = found.rewrites
    assert (found.rewritten_outcome, attempt.costs) == (Migrated.SLOWER, judge(SLOW).costs)
    assert attempt.costs and attempt.costs[0].quantity == "steady"


def test_of_a_machine_too_busy_to_serve_it_a_fix_is_one_all_the_same(rewritten: Rewritten) -> None:
    busy: Served = served(Outcome.STARVED)
    found, _ = rewritten({FREEZE: replace(PACKAGED, served=(busy,))})
    assert (found.rewritten_by, found.rewritten_outcome) == (FREEZE, Migrated.UNDECIDED)


def test_a_rewrite_of_which_no_package_can_be_made_is_no_fix(rewritten: Rewritten) -> None:
    found, _ = rewritten({FREEZE: NO_PACKAGE, CLONE: PACKAGED})
    assert found.rewritten_by == CLONE
    assert (found.rewrites[0].outcome, found.rewrites[0].costs) == (Migrated.NOT_PACKAGEABLE, ())


def test_a_busy_machine_makes_no_other_rewrite_the_fix(rewritten: Rewritten) -> None:
    starved = replace(READY, package=probed(result("ranker", Outcome.STARVED)))
    found, asked = rewritten({FREEZE: starved, RETRACE: PACKAGED})
    assert (found.rewritten_by, list(asked.rewritten)) == ("", [FREEZE])
    assert "could not be judged" in found.rewrites[0].reason


def test_where_no_rewrite_holds_all_say_why(rewritten: Rewritten) -> None:
    found, asked = rewritten({})
    assert (found.rewritten_by, found.rewritten_outcome, asked.rewritten) == ("", None, {})
    assert [attempt.reason for attempt in found.rewrites] == [f"{name} does not fit" for name in REWRITES]
