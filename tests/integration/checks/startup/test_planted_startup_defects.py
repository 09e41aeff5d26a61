"""The planted defects of initialization: caught with either worker, and missed with one whose failures nobody sees."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.outcome import Decision
from harness.core.verdict import PlantedDefectResult
from harness.artifacts import fixture_folders
from harness.probing.alone import probe_alone
from harness.probing.facts import Decided, Effects, WithWorker
from harness.run.planted_defects import probe_planted_defects
from harness.run.planted_startup_defects import beside_init_planted_defects, probe_init_planted_defects
from harness.checks.startup.initialize import initialize_groups
from harness.checks.startup.native import build_workers
from harness.store import probe_files
from tests.integration.servers import answered, decided, judged_started, planned, provisioned

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

PLANTED = {"planted_healthy", "planted_pool_deadlock", "planted_shared_race"}
LATER_IN_LIFE = (
    "planted_rolling_drift",
    "planted_request_drift",
    "planted_connection_drift",
    "planted_thread_count_drift",
    "planted_many_sizes_drift",
)
DEADLOCK = {"planted_pool_deadlock", "planted_healthy beside planted_pool_deadlock"}
RACE = {"planted_shared_race", "planted_healthy beside planted_shared_race"}

# What a worker that hides failures does in place of the real one: argv is the real one, then what that would get.
SAYS_GOODBYE = """
print('{"ev": "bye", "ns": 1}', file=events)
"""
CLAIMS_SUCCESS = """
for run in json.loads((folder / "request.json").read_text())["runs"]:
    print(json.dumps({"ev": "ready", "ns": 1, "model": run["artifact"]["model"]}), file=events)
print('{"ev": "bye", "ns": 2}', file=events)
"""
GIVES_UP_ON_DEADLOCKS = """
real = subprocess.Popen([*sys.argv[1:3], str(os.getpid())])
stuck = '"phase":"call","model":"planted_pool_deadlock"'
while real.poll() is None and stuck not in (folder / "events.jsonl").read_text().replace(": ", ":"):
    time.sleep(0.05)
if real.poll() is None and "planted_pool_deadlock" in (folder / "request.json").read_text():
    time.sleep(0.5)
    real.kill()
    print('{"ev": "ready", "ns": 1, "model": "planted_pool_deadlock"}', file=events)
    print('{"ev": "bye", "ns": 2}', file=events)
real.wait()
"""
PROLOGUE = """
import json, os, pathlib, subprocess, sys, time
folder = pathlib.Path(sys.argv[2])
events = open(folder / "events.jsonl", "a", buffering=1)
"""

Known = tuple[WithWorker, tuple[PlantedDefectResult, ...], Effects]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """One healthy model that works alone, and the planted defects, before anything is initialized."""
    out = tmp_path_factory.mktemp("planted_defects")
    plan = planned(out, "tests/integration/checks/startup/concurrency", scenarios=("alone", "concurrent"))
    models = tuple(model for model in plan.models if model.name == "straight")
    planted_defects = tuple(
        item
        for item in fixture_folders.read_fixtures(fixture_folders.PLANTED_DEFECTS)
        if item.name in {*PLANTED, "planted_fork_deadlock", *LATER_IN_LIFE}
    )
    plan = replace(plan, models=models, planted_defects=planted_defects, groups={"pool": ("straight",)})
    with provisioned(out, plan) as (facts, effects):
        exported = answered(facts, effects)
        found = probe_planted_defects(exported, effects)
        yield build_workers(probe_alone(exported, effects), effects), found, effects


@pytest.fixture
def begun(known: Known) -> Iterator[Known]:
    """What is known, in a run that takes no probe of another test for its own."""
    facts, planted_defects, effects = known
    plan = replace(
        facts.plan, planted_defects=tuple(item for item in facts.plan.planted_defects if item.name in PLANTED)
    )
    facts = replace(facts, plan=plan)
    native = dict(effects.runner.native)
    for completed in effects.run_dir.probes.glob(f"*/{probe_files.PACKED}"):
        shutil.unpack_archive(completed, completed.parent)  # what models answered alone is still needed
        completed.unlink()
    for result in effects.run_dir.probes.glob(f"*/{probe_files.RESULT}"):
        result.unlink()
    yield facts, planted_defects, effects
    for side, binary in native.items():
        effects.runner.use_native(side, binary, effects.runner.companions[side])


def shown(begun: Known) -> Decided:
    """Initialize and decide, with nothing in between that the planted defects do not need."""
    facts, planted_defects, effects = begun
    started, more = beside_init_planted_defects(initialize_groups, facts, effects)
    return decided(judged_started(started, effects), (*planted_defects, *more), effects)


def caught(facts: Decided) -> Mapping[str, bool]:
    return {item.name: item.caught for item in facts.judgement.planted_defects}


def hide_failures(behaviour: str, folder: Path, effects: Effects) -> None:
    """Put a program in place of the new release's C++ worker."""
    program = folder / "sabotaged.py"
    program.write_text(PROLOGUE + behaviour)
    wrapper = folder / "worker"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "{effects.runner.native["new"]}" "$@"\n')
    wrapper.chmod(0o755)
    effects.runner.use_native("new", wrapper)


def test_cpp_worker_shows_the_deadlock_the_race_and_healthy_twins(begun: Known) -> None:
    facts = begun[0]
    assert facts.worker == "libtorch", facts.worker_notes
    done = shown(begun)
    assert caught(done) == dict.fromkeys(("planted_healthy", *DEADLOCK, *RACE), True), done.judgement
    assert {item.name: item.expected for item in done.planted_defects if item.expected} == {
        "planted_pool_deadlock": "hang",
        "planted_shared_race": "race",
    }
    assert done.judgement.decision is Decision.UPGRADE_OK


def test_prefork_server_shows_its_deadlock(begun: Known) -> None:
    assert caught_among(begun, ["planted_fork_deadlock"], "libtorch") == {True}


@pytest.mark.parametrize("worker", ["libtorch", pytest.param("python", marks=pytest.mark.slow)])
def test_servers_that_live_on_show_their_defects_and_no_twin(begun: Known, worker: str) -> None:
    assert caught_among(begun, LATER_IN_LIFE, worker) == {True}


def caught_among(begun: Known, defects: Sequence[str], worker: str) -> set[bool]:
    """Return what became of defects that only their own scenario shows, and of the twin of each."""
    facts, _, effects = begun
    planted = tuple(facts.exports[name].declaration for name in ("planted_healthy", *defects))
    known_facts = replace(facts, plan=replace(facts.plan, planted_defects=planted), worker=worker)
    found = {item.name: item.caught for item in probe_init_planted_defects(known_facts, effects)}
    assert set(found) == {*defects, *(f"planted_healthy beside {name}" for name in defects)}
    return set(found.values())


def test_python_worker_shows_the_race_and_has_no_pool_to_exhaust(begun: Known) -> None:
    facts, planted_defects, effects = begun
    done = shown((replace(facts, worker="python"), planted_defects, effects))
    assert caught(done) == dict.fromkeys(("planted_healthy", *RACE), True), done.judgement
    assert done.judgement.decision is Decision.UPGRADE_OK


@pytest.mark.parametrize(
    ("behaviour", "missed"),
    [
        (SAYS_GOODBYE, DEADLOCK | RACE),
        (CLAIMS_SUCCESS, DEADLOCK | {"planted_healthy beside planted_shared_race"}),  # no answers: otherwise than alone
        (GIVES_UP_ON_DEADLOCKS, {"planted_pool_deadlock"}),
    ],
    ids=["says goodbye", "claims success", "gives up on deadlocks"],
)
def test_worker_whose_failures_are_not_seen_makes_the_run_inconclusive(
    begun: Known, tmp_path: Path, behaviour: str, missed: set[str]
) -> None:
    hide_failures(behaviour, tmp_path, begun[2])
    done = shown(begun)
    assert {name for name, seen in caught(done).items() if not seen} == missed, done.judgement
    assert done.judgement.decision is Decision.INCONCLUSIVE
    assert done.judgement.reason.startswith("the gate missed its own planted defects: ")
