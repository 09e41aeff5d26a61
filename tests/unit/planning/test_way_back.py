"""The command that shows a rollback break: what it keeps of the run's own."""

import shlex

from harness.domain.environment import EnvSpec
from harness.planning.way_back import way_back_command

OLD = EnvSpec(name="torch 2.6.0", release="2.6.0")
NEW = EnvSpec(name="torch 2.1.2", release="2.1.2")


def command(*arguments: str, model: str = "bert", artifact: str = "", old: EnvSpec = OLD, new: EnvSpec = NEW) -> str:
    return way_back_command("python -m harness", arguments, old=old, new=new, model=model, artifact=artifact)


def test_the_sides_are_changed_and_only_the_model_is_asked() -> None:
    said = command("compat", "--old", "2.1.2", "--new=2.6.0", "-k", "bert or dlrm", "--latency", "off", "--rollback")
    assert said == "python -m harness compat --old 2.6.0 --new 2.1.2 -k bert --scenario alone"


def test_what_names_the_models_and_how_they_run_is_kept() -> None:
    said = command("--project", "/p q", "compat", "--fixtures=zoo", "--set", "calls=2", "--set", "jobs=1", "--out", "x")
    assert said == (
        "python -m harness --project '/p q' compat --old 2.6.0 --new 2.1.2"
        " --fixtures zoo --set calls=2 --set jobs=1 -k bert --scenario alone"
    )


def test_a_given_file_is_replaced_by_what_the_later_release_has_saved() -> None:
    said = command("compat", "--artifacts", "models", "--library", "ops.so", artifact="/r/bert.pt")
    assert shlex.split(said)[3:] == [
        *("compat", "--old", "2.6.0", "--new", "2.1.2", "--library", "ops.so"),
        *("--artifacts", "/r/bert.pt", "-k", "bert", "--scenario", "alone"),
    ]
    assert "--artifacts models" in command("compat", "--artifacts", "models")


def test_a_ready_made_interpreter_is_named_by_its_path() -> None:
    ready = EnvSpec(name="prod", interpreter="/opt/torch/bin/python")
    assert "--env old=/opt/torch/bin/python --new 2.1.2" in command("compat", "--env", "prod=/x", old=ready)


def test_an_operator_library_of_one_side_becomes_that_of_the_other() -> None:
    said = command("compat", "--library", "old=a.so", "--library=new=b.so", "--library", "2.6.0=c.so")
    assert "--library new=a.so --library old=b.so --library 2.6.0=c.so" in said
