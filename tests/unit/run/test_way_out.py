"""Which models of a run could leave TorchScript too; ``tests/integration/run/test_compat.py`` has real releases."""

from dataclasses import replace
from typing import Any

from pathlib import Path

import pytest

from harness.core.environment import EnvSpec
from harness.core.migration import Migrated, MigrationOutcome, RunMigration
from harness.core.models import ArtifactKind, GivenArtifact
from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.core.errors import EnvironmentUnavailable
from harness.run.way_out import take_out, with_command
from harness.worker import wire
from tests.unit.builders.stages import Runner, effects, known, planned, probed, result

READY = RunMigration(release="torch 2.6.0", models=(MigrationOutcome(model="m", outcome=Migrated.READY),))


def migrating(*models: str, **changes: Any) -> Plan:
    return planned(*models, settings={"migrate": True, "old": "2.1.2", "new": "2.6.0"}, **changes)


def test_where_nobody_asks_nothing_is_converted_and_the_probes_of_the_decision_are_known() -> None:
    runner = Runner(lambda request: pytest.fail(f"nobody expected {request.verb}"))
    runner.finished.append(probed(result("m")))
    taken = take_out(known(planned("m")), effects(runner))
    assert (taken.migration, taken.judged_by) == (None, tuple(runner.finished))


def test_what_has_left_is_not_converted_and_named() -> None:
    plan = migrating("m")
    program = GivenArtifact(path="/m/m.pt2", kind=ArtifactKind.PROGRAM)
    plan = replace(plan, models=(replace(plan.models[0], given=program),))
    assert take_out(known(plan), effects()).migration == RunMigration(release="torch 2.6.0", left=("m",))


@pytest.mark.parametrize("outcome", [Outcome.HANG, Outcome.OUT_OF_MEMORY])
def test_an_artifact_that_ends_the_process_that_loads_it_is_not_loaded_once_more(outcome: Outcome) -> None:
    facts = known(migrating("m"), alone={"m": probed(result("m", outcome, phase=wire.LOAD))})
    migration = take_out(facts, effects()).migration
    assert migration is not None
    (found,) = migration.models
    assert (found.outcome, found.kind, found.program) == (Migrated.UNDECIDED, "ends_process", "")
    assert found.reason.endswith(f"not loaded once more: {outcome.value.replace('_', ' ')} in load in torch 2.6.0")


def test_a_fixture_whose_export_hung_has_no_artifact_and_that_is_the_reason() -> None:
    facts = known(migrating("m"))
    hung = replace(facts.exports["m"], artifact=None, outcome=Outcome.HANG, result=probed(result("m", Outcome.HANG)))
    migration = take_out(replace(facts, exports={"m": hung}), effects()).migration
    assert migration is not None
    assert [(found.outcome, found.kind) for found in migration.models] == [(Migrated.UNDECIDED, "not_exported")]


def test_an_environment_that_ends_meanwhile_leaves_the_run_its_judgement() -> None:
    class Gone(Runner):
        def release(self, side: str) -> None:
            raise EnvironmentUnavailable("torch 2.6.0 did not start within 180 s")

    runner = Gone(lambda request: pytest.fail(f"nobody expected {request.verb}"))
    migration = take_out(known(migrating("m")), effects(runner)).migration
    said = "could not be asked: torch 2.6.0 did not start within 180 s"
    assert migration == RunMigration(release="torch 2.6.0", why_not=said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ""),
        (("compat", "--migrate", "-k", "dlrm or bert", "--jobs", "3"), " -k 'dlrm or bert'"),
        (
            ("compat", "--artifacts", "models", "b.pt", "--device", "cpu"),
            f" --artifacts {Path('models').absolute()} --artifacts {Path('b.pt').absolute()} --device cpu",
        ),
        (("compat", "--set", "new=2.6.0", "--set", "calls=2"), " --set calls=2"),
    ],
)
def test_the_command_that_says_more_is_of_the_same_models_and_releases(arguments: tuple[str, ...], words: str) -> None:
    specs = {
        side: EnvSpec(name=f"torch {release}", release=release)
        for side, release in (("old", "2.1.2"), ("new", "2.6.0"))
    }
    facts = known(migrating("m", arguments=arguments, **specs))
    found = with_command(READY, facts, "gate")
    assert found.command == f"gate migrate --old 2.1.2 --new 2.6.0{words}"


def test_golden_records_leave_no_old_release_for_that_command() -> None:
    facts = known(migrating("m", golden="golden", old=None))
    assert with_command(READY, facts, "gate") == READY
