"""The command that shows a rollback break: what it keeps of the run's own."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from harness.cli.parser import parser
from harness.core.environment import EnvSpec
from harness.core.plan import Settings
from harness.environments.sides import env_specs
from harness.run.rollback import rollback_command

OLD = EnvSpec(name="torch 2.6.0", release="2.6.0")
NEW = EnvSpec(name="torch 2.1.2", release="2.1.2")


def command(*arguments: str, model: str = "bert", old: EnvSpec = OLD, new: EnvSpec = NEW, **more: Any) -> str:
    return rollback_command("python -m harness", arguments, old=old, new=new, model=model, **more)


def test_the_sides_are_changed_and_only_the_model_is_asked() -> None:
    said = command("compat", "--old", "2.1.2", "--new=2.6.0", "-k", "bert or dlrm", "--latency", "off", "--rollback")
    assert said == "python -m harness compat --old 2.6.0 --new 2.1.2 -k bert --scenario alone"


def test_what_names_the_models_and_how_they_run_is_kept() -> None:
    said = command("compat", "--fixtures=zoo", "--set", "calls=2", "--set", "jobs=1", "--out", "x")
    assert said == (
        "python -m harness compat --old 2.6.0 --new 2.1.2"
        " --fixtures zoo --set calls=2 --set jobs=1 -k bert --scenario alone"
    )


def test_a_given_file_is_replaced_by_the_manifest_of_what_the_later_release_has_saved() -> None:
    given = ("compat", "--artifacts", "models", "--fixtures", "zoo", "--library", "ops.so")
    assert shlex.split(command(*given, artifacts="/r/models.toml"))[3:] == [
        *("compat", "--old", "2.6.0", "--new", "2.1.2", "--library", "ops.so"),
        *("--artifacts", "/r/models.toml", "-k", "bert", "--scenario", "alone"),
    ]
    assert "--artifacts models --fixtures zoo" in command(*given)


def test_an_operator_library_of_one_side_becomes_that_of_the_other() -> None:
    said = command("compat", "--library", "old=a.so", "--library=new=b.so", "--library", "2.6.0=c.so")
    assert "--library new=a.so --library old=b.so --library 2.6.0=c.so" in said


def test_what_names_a_side_is_not_passed_on() -> None:
    said = command("compat", "--set", "old=2.1.2", "--set", 'new = "2.6.0"', "--set", "calls=2", "--set=old=3.0")
    assert said == "python -m harness compat --old 2.6.0 --new 2.1.2 --set calls=2 -k bert --scenario alone"


PROD = EnvSpec(name="prod", interpreter="/opt/prod/bin/python")
AS_OLD = EnvSpec(name="old", interpreter="/opt/prod/bin/python")
PLAIN = ("compat", "--new", "2.6.0", "--library", "2.6.0=b.so")


@pytest.mark.parametrize(
    ("arguments", "new", "written", "sides"),
    [
        ((*PLAIN, "--old", "prod", "--library", "prod=a.so"), PROD, ("2.6.0", "prod"), "--new prod --env prod="),
        ((*PLAIN, "--library", "old=a.so"), AS_OLD, ("2.6.0", ""), "--env new="),
        ((*PLAIN, "--old", "2.1.2", "--library", "2.1.2=a.so"), AS_OLD, ("2.6.0", "2.1.2"), "--new 2.1.2 --env new="),
        ((*PLAIN, "--old", "2.1", "--library", "2.1=a.so"), NEW, ("2.6.0", "2.1"), "--new 2.1 "),
    ],
    ids=["a named interpreter", "an interpreter as a side", "an interpreter in place of a release", "a short release"],
)
def test_libraries_of_either_side_are_found_again(
    arguments: tuple[str, ...], new: EnvSpec, written: tuple[str, str], sides: str
) -> None:
    said = command(*arguments, new=new, written=written)
    assert f"compat --old 2.6.0 {sides}" in said
    parsed = parser().parse_args(shlex.split(said)[3:])
    found = env_specs({}, Settings(old=parsed.old or "", new=parsed.new or ""), parsed.env, libraries=parsed.libraries)
    assert [[Path(path).name for path in spec.libraries] for spec in found] == [["b.so"], ["a.so"]]
    assert (found[1].interpreter, found[1].release) == (
        new.interpreter,
        None if new.interpreter else "2.1.0",
    )


def test_every_artifact_of_an_option_that_takes_several_is_kept() -> None:
    said = command("compat", "--artifacts", "a.pt", "b c.pt", "-k", "a", "--artifacts=d.pt", "--jobs", "2")
    assert "--artifacts a.pt --artifacts 'b c.pt' --artifacts d.pt -k bert" in said
