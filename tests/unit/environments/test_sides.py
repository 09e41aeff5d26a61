"""The two sides of a run: releases and interpreters, and what a mistake in naming them says."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from harness.environments.sides import direction_of, env_spec, env_specs
from harness.core.errors import ConfigError
from tests.unit.builders.config import FILE, PAIR, load


def specs_refusal(table: Mapping[str, Any], *env: str, **overrides: object) -> str:
    with pytest.raises(ConfigError) as caught:
        env_specs(table, load(table, **overrides), env)
    return str(caught.value)


def test_both_sides_are_releases_to_build() -> None:
    table = {**PAIR, "environments": {"index_args": ["--pre"], "extras": ["numpy<2"]}}
    old, new = env_specs(table, load(table), ())
    assert (old.name, old.release, old.index_args, old.extras) == ("torch 2.1.2", "2.1.2", ("--pre",), ("numpy<2",))
    assert (new.name, new.release, new.interpreter, new.python) == ("torch 2.6.0", "2.6.0", None, None)


def test_table_of_a_release_overrides_the_common_one() -> None:
    environments = {"python": "3.10", "extras": ["a"], "2.6": {"python": "3.11"}, "2.6.0+cpu": {"extras": []}}
    table = {"old": "2.1.2", "new": "2.6+cpu", "environments": environments}
    old, new = env_specs(table, load(table), ())
    assert (old.python, old.extras) == ("3.10", ("a",))
    assert (new.release, new.python, new.extras) == ("2.6.0+cpu", "3.11", ())


def test_release_configured_twice_is_refused() -> None:
    table = {**PAIR, "environments": {"2.6": {}, "2.6.0": {}}}
    assert "2.6.0 is configured twice" in specs_refusal(table)


@pytest.mark.parametrize("side", ["old", "new"])
def test_ready_made_interpreter_replaces_its_side(side: Literal["old", "new"]) -> None:
    table = {**PAIR, "environments": {"extras": ["a"]}}
    specs = dict(zip(("old", "new"), env_specs(table, load(table), (f"{side}=/opt/python",)), strict=True))
    spec = specs[side]
    assert (spec.name, spec.release, spec.interpreter, spec.extras) == (side, None, "/opt/python", ())
    assert all(specs[other].interpreter is None for other in specs if other != side)


def test_two_interpreters_need_no_release() -> None:
    old, new = env_specs({}, load({}), ("old=/a/python", "new=/b/python"))
    assert (old.interpreter, new.interpreter) == ("/a/python", "/b/python")


def test_named_environment_is_used_where_a_side_refers_to_it() -> None:
    old, new = env_specs(PAIR, load(PAIR, new="nightly"), ("nightly=/n/python",))
    assert (old.release, new.name, new.interpreter) == ("2.1.2", "nightly", "/n/python")


def test_interpreter_path_may_hold_an_equals_sign() -> None:
    assert env_specs(PAIR, load(PAIR), ("old=/a=b/python",))[0].interpreter == "/a=b/python"


@pytest.mark.parametrize("argument", ["old", "=/p", "old=", "", "old= "])
def test_malformed_environment_argument_is_refused(argument: str) -> None:
    assert f"--env {argument}: expected NAME=PYTHON" in specs_refusal(PAIR, argument)


def test_environment_given_twice_is_refused() -> None:
    assert "old is given twice" in specs_refusal(PAIR, "old=/a", "old=/b")


def test_environment_that_no_side_uses_is_refused() -> None:
    assert "no side uses ood; refer to it with --old ood or --new ood" in specs_refusal(PAIR, "ood=/a")


@pytest.mark.parametrize("side", ["old", "new"])
def test_missing_side_says_how_to_name_it(side: str) -> None:
    text = specs_refusal({key: value for key, value in PAIR.items() if key != side})
    assert text.startswith(f"{FILE}: tool.compat.{side}: missing; write a torch release there, or give --{side}")


@pytest.mark.parametrize("release", ["two", "2", "2.6.0.1", "v2.6.0", "2.6.0+", "2.6.0 ", ">=2.6", "2.6.0\n"])
def test_side_that_is_no_release_is_refused(release: str) -> None:
    assert "expected a torch release" in specs_refusal({**PAIR, "new": release})


def test_wrong_release_names_where_it_was_written() -> None:
    assert specs_refusal({**PAIR, "old": "x"}).startswith(f"{FILE}: tool.compat.old: ")
    assert specs_refusal(PAIR, old="x").startswith("command line: --old: ")


@pytest.mark.parametrize(
    ("release", "full"),
    [("2.6", "2.6.0"), ("2.6+cpu", "2.6.0+cpu"), ("2.7.0.dev20250101", "2.7.0.dev20250101"), ("2.6rc1", "2.6.0rc1")],
)
def test_release_is_written_in_full(release: str, full: str) -> None:
    table = {**PAIR, "new": release}
    assert env_specs(table, load(table), ())[1].release == full


@pytest.mark.parametrize(
    ("table", "env"),
    [
        ({"old": "2.6.0", "new": "2.6.0"}, ()),
        ({"old": "2.6", "new": "2.6.0"}, ()),
        (PAIR, ("old=/a", "new=/a")),
    ],
)
def test_same_torch_on_both_sides_is_refused(table: dict[str, str], env: tuple[str, ...]) -> None:
    assert specs_refusal(table, *env).startswith("same torch on both sides: ")
    old, new = env_specs(table, load(table, allow_same_torch=True), env)
    assert (old.release, old.interpreter) == (new.release, new.interpreter)


def test_one_side_alone_does_not_need_the_other() -> None:
    table = {"new": "2.6.0"}
    assert env_spec(table, load(table), "new", ()).release == "2.6.0"


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        ("2.1.2", "2.6.0", "backward"),
        ("2.6.0", "2.1.2", "forward"),
        ("2.9.0", "2.10.0", "backward"),
        ("2.6.0+cpu", "2.6.0", "backward"),
        ("2.6.0", "2.6.0.dev20250101", "forward"),
        (None, "2.6.0", "backward"),
        ("nightly", "2.6.0", "backward"),
    ],
)
def test_direction_follows_the_versions(old: str | None, new: str | None, direction: str) -> None:
    assert direction_of(old, new) == direction
