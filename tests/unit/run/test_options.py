"""Which models a command means: those of the fixtures, artifacts that are given, or both."""

from pathlib import Path

import pytest

from harness.cli import main
from harness.run import plan as planning
from harness.core.plan import Settings
from harness.core.devices import Device
from harness.run.options import Options, known_models, other_policy, settings_of, waivers_in
from harness.core.errors import ConfigError, FixtureError
from tests.unit.builders.archives import torchscript

SIDES = {"old": "2.1.2", "new": "2.6.0", "device": "cpu"}
FIXTURE = 'from fixtures.declare import model\n@model("declared")\ndef build():\n    pass\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a package of fixtures and two artifacts, one of them in its configuration."""
    for folder, name in (("served", "written"), ("new", "named")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.pt").write_bytes(torchscript())
    (tmp_path / "served" / "weights.pt").write_bytes(b"\x80\x02}.")
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "models.py").write_text(FIXTURE)
    (tmp_path / "pyproject.toml").write_text('[tool.compat]\nartifacts = ["served"]\n')
    return tmp_path


def names(options: Options) -> list[str]:
    _, settings = settings_of(options)
    return sorted(model.name for model in known_models(options, settings).models)


def test_the_command_line_wins_over_the_configuration(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "new")
    assert names(Options(project=project)) == ["written"]
    assert names(Options(project=project, artifacts=("named.pt",))) == ["named"]
    assert names(Options(project=project, overrides={"fixtures": "zoo"})) == ["declared"]
    both = Options(project=project, overrides={"fixtures": "zoo"}, artifacts=("named.pt",))
    assert names(both) == ["declared", "named"]


def test_a_name_of_a_fixture_and_a_file_is_refused(project: Path) -> None:
    (project / "new" / "declared.pt").write_bytes(torchscript())
    options = Options(project=project, overrides={"fixtures": "zoo"}, artifacts=(str(project / "new"),))
    with pytest.raises(FixtureError, match='model "declared" is already declared'):
        names(options)


def test_the_plan_tells_what_was_left_out(project: Path) -> None:
    plan = planning.make_plan(Options(project=project, overrides=SIDES))
    assert [model.name for model in plan.models] == ["written"]
    assert [note for note in plan.notes if "weights.pt is no TorchScript: Python pickle" in note]
    assert plan.groups == {"served": ("written",)}


def test_list_shows_artifacts_and_what_was_left_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--project", str(project), "compat", "--list", "--artifacts", str(project / "served")]) == 0
    model, note = capsys.readouterr().out.splitlines()
    assert model.split()[:3] == ["written", "file", "served"]
    assert note.startswith(f"note: {project}/served/weights.pt is no TorchScript")


def test_a_run_that_is_resumed_under_another_policy_tells_so(project: Path) -> None:
    policy = project / "policy.toml"
    policy.write_text("minimum_models = 1\nlimits = { error = 1e-4 }\n")
    options = Options(project=project, overrides=SIDES, policy=str(policy), arguments=("compat", "--policy", "..."))
    plan = planning.make_plan(options)
    bare = Options(project=project)
    assert other_policy(plan, options) == other_policy(plan, bare) == ()
    policy.write_text("minimum_models = 9\n")
    (note,) = other_policy(plan, bare)
    assert note.startswith(f"{policy} has changed since this run was planned")
    configured = planning.make_plan(Options(project=project, overrides=SIDES))
    assert other_policy(configured, bare) == ()
    with (project / "pyproject.toml").open("a") as file:
        file.write('[tool.compat.policy]\nunused_waivers = "fail"\n')
    assert other_policy(configured, bare)[0].startswith("[tool.compat.policy] has changed")
    set_ = planning.make_plan(
        Options(project=project, overrides=SIDES, assignments=("policy.minimum_models=0",), arguments=("--set", "..."))
    )
    assert other_policy(set_, bare) == ()


def test_a_waiver_for_a_device_that_no_row_knows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    entry = 'model = "m"\nkind = "values"\nreason = "r"\nowner = "o"\nexpires = 2030-01-01\ndevice = "npu"\n'
    path.write_text(f"[[waiver]]\n{entry}")
    with pytest.raises(ConfigError, match="waivers.toml: waiver 1: there is no device 'npu'"):
        waivers_in(path, Settings(old="", new=""))
    known = Settings(old="", new="", devices={"npu": Device(name="npu", words="npu", torch="npu")})
    assert [waiver.device for waiver in waivers_in(path, known)] == ["npu"]
    path.write_text("[[waiver]]\n" + entry.replace('device = "npu"', ""))
    assert [waiver.device for waiver in waivers_in(path, Settings(old="", new=""))] == [""]
