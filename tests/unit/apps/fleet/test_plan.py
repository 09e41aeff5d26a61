"""A plan is read as it was written; what is none, or is somebody else's, is one line."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.environment import Environment, EnvSpec
from harness.core.plan import PolicySettings, Settings
from harness.core.errors import ConfigError, FixtureError, RunDirError
from harness.apps.fleet.plan import Sides, _manifest, _name_of_side, earlier_answer, load_plan, settings_digest
from harness.apps.fleet.stores.sources import FolderStore
from harness.artifacts.owners import load_fleet_manifest
from harness.report.json.results import dump
from tests.unit.builders.archives import registry
from tests.unit.builders.fleets import fleet_plan

PLAN = fleet_plan(("a", "b", "c"))


def test_a_plan_reads_back_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(dump(PLAN))
    for name in (tmp_path, tmp_path / "plan.json"):
        planned = load_plan(str(name), to_run=True)
        assert (planned.plan, planned.folder) == (PLAN, tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no plan"),
        ("[", "damaged or from another version"),
        (json.dumps({"schema_version": 99}), "no plan of a fleet of this version"),
        (json.dumps({"version": 2, "models": []}), "no plan of a fleet"),
        (json.dumps({"schema_version": 1}), "damaged"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "plan.json").write_text(content)
    with pytest.raises(RunDirError, match=said):
        load_plan(str(tmp_path))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("options",), {}, "missing required field `overrides`"),
        (("options",), {"overrides": {}}, "missing required field `assignments`.*; plan again"),
        (("artifacts", 1, "name"), "a", "two artifacts have one name"),
        (("artifacts", 1, "path"), "a.pt", "two artifacts lie in one place"),
        (("artifacts", 1, "key"), "0", "do not agree"),
        (("artifacts", 1, "serving"), {"profile": "gone"}, "a serving profile that it does not have"),
        (("units", 0, "artifact"), "nobody", "the unit of nobody"),
        (("units", 0, "artifacts"), ["a", "b"], "the unit of a"),
        (("units", 1, "key"), "0", "two units have one key"),
        (("units", 0, "cost_s"), -1.0, "a time or a number"),
        (("machines",), 0, "a time or a number"),
        (("releases",), {"old": "x"}, "its releases"),
    ],
)
def test_a_plan_that_contradicts_itself_is_one_line(
    tmp_path: Path, place: tuple[str | int, ...], value: object, said: str
) -> None:
    plan = json.loads(dump(PLAN))
    inner = plan
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(RunDirError, match=f"{tmp_path / 'plan.json'} is damaged.*{said}"):
        load_plan(str(tmp_path))


@pytest.mark.parametrize("name", ["plan.json", "fleet.json"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(RunDirError):
        (load_plan if name == "plan.json" else earlier_answer)(str(tmp_path))


def test_a_manifest_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fleet.toml")
    with pytest.raises(ConfigError, match="is no plain file"):
        load_fleet_manifest(tmp_path / "fleet.toml", file="fleet.toml")


def test_a_link_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(dump(PLAN))
    (tmp_path / "plan.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(RunDirError, match="is a link"):
        load_plan(str(tmp_path), to_run=True)


def test_only_what_may_change_a_result_is_in_the_digest_of_the_settings() -> None:
    base = Settings(old="2.1.2", new="2.6.0")
    same = replace(
        base,
        jobs=9,
        old="x",
        new="y",
        explain=60.0,
        migrate=True,
        groups={"a": "b"},
        policy=PolicySettings(gates=("p99",)),
    )
    other = [
        replace(base, calls=9),
        replace(base, scenarios=("alone",)),
        replace(base, latency=replace(base.latency, budget="off")),
        replace(base, policy=PolicySettings(accepted_mitigations=("profiling off",))),
    ]
    digests = [settings_digest(item) for item in (base, same, *other)]
    assert digests[0] == digests[1] and len(set(digests)) == 1 + len(other)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (EnvSpec(name="torch 2.1.2", release="2.1.2"), "2.1.2"),
        (EnvSpec(name="old", interpreter="/a/python"), "2.9.0+cpu"),
        (EnvSpec(name="2.1.2", interpreter="/a/python"), "2.1.2"),
    ],
)
def test_a_side_is_called_what_it_is_and_not_what_is_configured_beside_an_interpreter(spec: EnvSpec, name: str) -> None:
    environments = {side: Environment(name=spec.name, spec=spec, interpreter="/a/python") for side in ("old", "new")}
    sides = Sides(
        settings=Settings(old="2.1.2", new="2.6.0"),
        device="cpu",
        environments=environments,
        registries=dict.fromkeys(environments, registry("2.9.0+cpu")),
        releases={},
    )
    assert _name_of_side("old", sides) == name


def test_a_store_is_told_by_its_fleet_toml_or_else_by_the_models_toml_in_its_root(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('[[models]]\npath = "a.pt"\nowner = "ads"\n')
    manifest = _manifest(None, FolderStore(tmp_path))
    assert (manifest.file, manifest.of("a.pt")["owner"]) == ("models.toml", "ads")
    (tmp_path / "fleet.toml").write_text('[[artifacts]]\nmatch = "*"\nowner = "platform"\n')
    manifest = _manifest(None, FolderStore(tmp_path))
    assert (manifest.file, manifest.of("a.pt")["owner"]) == ("fleet.toml", "platform")
    (tmp_path / "fleet.toml").rename(tmp_path / "renamed")
    (tmp_path / "models.toml").write_text('[[models]]\npath = "a.pt"\nowners = "ads"\n')
    with pytest.raises(FixtureError, match=r"models\.toml:3: model .*owners"):
        _manifest(None, FolderStore(tmp_path))
