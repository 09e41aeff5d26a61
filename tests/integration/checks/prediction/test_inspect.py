"""The static check against reality: what it predicts for every model is what torch does, in both directions."""

import dataclasses
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.core.models import ModelDeclaration
from harness.core.prediction import Prediction
from harness.environments.builder import default_environment_root
from harness.artifacts.fixture_folders import read_fixtures
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.known_releases import FILE, LISTS, PROGRAM_LISTS, known, unfolded
from harness.store import codec
from harness.checks.prediction.registries import dump_of, registry_of
from benchmarks.faults import archives
from tests.integration.checks.prediction.answers import PROGRAM, torch_answers
from tests.integration.gate import harness

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[4]
DEADLINE_S = 120


@dataclass(frozen=True)
class World:
    """Artifacts of both releases, and what each release said when it loaded them: side -> path -> message."""

    said: dict[str, dict[str, str]]
    pythons: dict[str, str]


@pytest.fixture(scope="module", params=[pytest.param(16, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def world(
    request: pytest.FixtureRequest, old_python: str, new_python: str, tmp_path_factory: pytest.TempPathFactory
) -> World:
    folder = tmp_path_factory.mktemp("archives")
    breaks, zoo = read_fixtures(PROJECT / "fixtures" / "breaks"), read_fixtures(PROJECT / "fixtures" / "zoo")
    models = [*breaks, *zoo[:: request.param]]
    old = torch_answers(old_python, folder / "old", models, [])
    new = torch_answers(new_python, folder / "new", models, sorted(old))
    old |= torch_answers(old_python, folder / "again", [], sorted(new.keys() - old.keys()))
    return World({"old": old, "new": new}, {"old": old_python, "new": new_python})


def test_table_of_releases_says_what_the_releases_say(old_python: str, new_python: str) -> None:
    compared = 0
    for python in (old_python, new_python):
        environment = Environment(name="asked", interpreter=python, spec=EnvSpec(name="asked", interpreter=python))
        dump = json.loads(codec.canonical(dump_of(environment, default_environment_root(PROJECT))))
        release = dump["torch"].partition("+")[0]
        if release not in known():
            continue
        shipped = unfolded(json.loads(FILE.read_text()), release)
        lists = {name: (sorted(map(str, dump[name])), sorted(map(str, shipped[name]))) for name in LISTS}
        assert {name: both for name, both in lists.items() if both[0] != both[1]} == {}
        assert {**shipped["programs"], **{name: sorted(shipped["programs"][name]) for name in PROGRAM_LISTS}} == {
            **dump["programs"],
            **{name: sorted(dump["programs"][name]) for name in PROGRAM_LISTS},
        }
        compared += 1
    assert compared == 2


def test_predictions_are_what_torch_does(world: World) -> None:
    registries = {
        side: registry_of(
            Environment(name=side, interpreter=python, spec=EnvSpec(name=side, interpreter=python)),
            default_environment_root(PROJECT),
        )
        for side, python in world.pythons.items()
    }
    assert world.said["old"].keys() == world.said["new"].keys()
    wrong, refused = [], set()
    for path in sorted(world.said["old"]):
        file = inspect_file(path, registries)
        for side, verdict in file.verdicts.items():
            message = world.said[side][path]
            expected = Prediction.FAILS if message else Prediction.LOADS
            if verdict.prediction is not expected:
                wrong.append((path, side, verdict.prediction, message[:200], verdict.findings[:2]))
            if message:
                refused.add((Path(path).parent.parent.name, Path(path).stem, side))
        assert file.verdicts.keys() == registries.keys(), file
    assert not wrong
    assert len(world.said["old"]) > 30
    assert refused == {  # the documented breaks: a prediction that says "will load" to everything would fail here
        ("old", "half_on_accelerator", "new"),
        ("new", "encode_ragged", "old"),
        ("new", "gated_norm", "old"),
    }


@pytest.mark.slow
def test_edited_archives_are_never_said_to_load_where_they_do_not(world: World, tmp_path: Path) -> None:
    genuine = [path.read_bytes() for path in sorted(PROJECT.glob("golden/records/*/*/artifact"))]
    environments = {
        side: Environment(name=side, interpreter=python, spec=EnvSpec(name=side, interpreter=python))
        for side, python in world.pythons.items()
    }
    assert not archives.wrong_predictions(genuine, environments, tmp_path / "mutants", 40, seed=18)


def test_the_command_names_operator_line_and_reach(world: World) -> None:
    path = next(path for path in world.said["old"] if path.endswith("half_on_accelerator.pt"))
    done = harness("inspect", path, "--env", f"old={world.pythons['old']}", "--env", f"new={world.pythons['new']}")
    assert done.returncode == 1, done.stderr
    assert "operator_missing: prim::is_ort: torch 2.6.0" in done.stdout
    assert "code/__torch__/fixtures/breaks/load.py:" in done.stdout


def test_what_torch_writes_is_named_for_what_it_is(new_python: str, tmp_path: Path) -> None:
    program = PROGRAM.with_name("formats.py")
    subprocess.run([new_python, "-s", "-W", "ignore", str(program), str(tmp_path)], timeout=DEADLINE_S, check=True)
    found = {path.stem: inspect_file(str(path), {}).facts for path in sorted(tmp_path.glob("*.pt"))}
    assert len(found) == 8
    assert {name: facts.format for name, facts in found.items() if facts is not None} == {name: name for name in found}
