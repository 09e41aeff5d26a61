"""Operator libraries of a side: from the configuration, from the command line, for one name or for all."""

from pathlib import Path
from typing import Any

import pytest

from harness.environments.operator_libraries import is_file, located
from harness.environments.sides import env_specs
from harness.core.errors import ConfigError
from tests.unit.builders.config import PAIR, load

PROJECT = Path("/project")


def libraries(*arguments: str, **environments: Any) -> tuple[tuple[str, ...], ...]:
    table = {**PAIR, "environments": environments}
    specs = env_specs(table, load(table), (), libraries=arguments, project=PROJECT)
    return tuple(spec.libraries for spec in specs)


def test_without_any_there_are_none() -> None:
    assert libraries() == ((), ())


def test_configured_files_are_relative_to_the_project_and_modules_are_names() -> None:
    both = ("torchvision", "/project/ops/libmyops.so", "/project/npu.py", "/opt/lib.so")
    assert libraries(libraries=["torchvision", "ops/libmyops.so", "npu.py", "/opt/lib.so"]) == (both, both)


def test_a_release_has_its_own_in_place_of_the_common_ones() -> None:
    found = libraries(libraries=["torchvision"], **{"2.6.0": {"libraries": ["ops/new.so"]}})
    assert found == (("torchvision",), ("/project/ops/new.so",))


def test_the_command_line_adds_each_once_for_all_or_for_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    found = libraries("torchvision", "all", "old=a.so", "2.6.0=/b=c.so", libraries=["torchvision"])
    assert found == (("torchvision", "all", "/tmp/a.so"), ("torchvision", "all", "/b=c.so"))


def test_a_ready_made_interpreter_has_them_too_and_goes_by_its_name() -> None:
    table = {**PAIR, "new": "nightly", "environments": {"libraries": ["torchvision"], "extras": ["torchvision"]}}
    env = ("nightly=/n/python",)
    old, new = env_specs(table, load(table), env, libraries=("nightly=/opt/a.so",), project=PROJECT)
    assert (new.interpreter, new.extras) == ("/n/python", ())
    assert (old.libraries, new.libraries) == (("torchvision",), ("torchvision", "/opt/a.so"))


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("newer=a.so", "no side is called 'newer'"),
        ("new=", "expected LIB or NAME=LIB"),
        ("", "expected LIB or NAME=LIB"),
    ],
)
def test_an_argument_that_means_nothing_is_refused(argument: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        libraries(argument)
    assert f"command line: --library {argument}: {words}" in refused.value.message


def test_an_equals_sign_behind_a_slash_belongs_to_the_path() -> None:
    assert libraries("/opt/a=b/lib.so") == (("/opt/a=b/lib.so",),) * 2


@pytest.mark.parametrize(("text", "file"), [("a.so", True), ("a/b", True), ("a.b", False), ("so", False)])
def test_files_are_distinguished_from_modules(text: str, file: bool) -> None:  # noqa: FBT001  a table's column
    assert is_file(text) is file
    assert located(text, PROJECT) == (f"/project/{text}" if file else text)
