"""Packages of AOTInductor: compiled, answering in Python and C++, served together, timed; planted defects are named."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.environments.builder import default_environment_root
from harness.environments.native import build_library
from tests.integration.gate import PROJECT, harness

pytestmark = [pytest.mark.integration, pytest.mark.slow]
PLANTED = "tests/integration/checks/migration/migrated"
HERE = Path(__file__).parent
WAYS = {
    "serve: concurrent init",
    "serve: same file N times",
    "serve: shared module",
    "serve: shared module, 4 runners",
    "serve: load while serving",
}
# What the loader of 2.15.0 does by itself, now and then (docs/guide/migrate.md, "Packages, served").
RACE = "without serialized loading"


@pytest.fixture(scope="module")
def results() -> Iterator[Path]:
    """Where compiled packages lie, for all tests of this module: not below /tmp, where 2.6.0 and 2.11.0 unpack them."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="packages-") as folder:
        yield Path(folder)


def migrated(
    results: Path, *arguments: str, new: str = "2.15.0", models: str = "choice_of_values or size_never_varied"
) -> tuple[Mapping[str, Any], str]:
    sides = ("--old", "2.6.0", "--new", new, "--fixtures", PLANTED, "--package", "--out", str(results))
    done = harness("migrate", *sides, "-k", models, *arguments, timeout_s=1200)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads((results / "migration.json").read_text())
    return {model["model"]: model for model in found["models"]}, done.stdout


def test_packages_answer_in_both_languages_and_are_served_in_every_way(results: Path) -> None:
    models, said = migrated(results)
    assert set(models) == {"choice_of_values", "size_never_varied"}
    for model in models.values():
        steps = {step["name"]: step for step in model["steps"]}
        assert steps["run package"]["outcome"] == steps["run package in C++"]["outcome"] == "completed"
        assert steps["run package in C++"]["seconds"] < steps["package"]["seconds"]
        assert WAYS <= set(steps)
        assert model["outcome"] == "ready" or model["kind"] == RACE, model
        costs = {cost["quantity"]: cost for cost in model["costs"]}
        assert costs["steady"]["torchscript"] > 0 < costs["steady"]["package"]
    assert "in C++" in said
    seen = any(model["kind"] == RACE for model in models.values())
    assert ("seen here or not: 2.15.0 loads packages" in " ".join(said.split())) is not seen, said
    assert "2.15.0 compiled packages" not in said
    # What tells the CPU's instructions is compiled once for the release, and not for every package.
    assert list(default_environment_root().glob("native/compiler-checks-*/*/*.so"))


@pytest.mark.parametrize("kind", ["planted", "healthy"])
def test_deadlock_of_two_loaders_is_named_with_what_fixes_it(results: Path, tmp_path: Path, kind: str) -> None:
    built = build_library(HERE / "planted" / "two_loaders.cpp", tmp_path)
    assert built.binary is not None, built.why_not
    preload = (f"serving.env.LD_PRELOAD={built.binary}", f"serving.env.TWO_LOADERS={kind}")
    models, said = migrated(results, "--set", preload[0], "--set", preload[1])
    hung = {name for name, model in models.items() if "hang" in model["reason"]}
    if kind == "healthy":
        assert not hung, said
        return
    assert hung, said
    assert {model["kind"] for model in models.values()} == {RACE}
    assert "verified: serialized loading (a mutex around loading)" in said
    assert all(model["costs"] for model in models.values()), said


@pytest.mark.parametrize(("release", "is_caught"), [("2.11.0", True), ("2.15.0", False)])
def test_deadlock_of_first_calls_is_named_with_what_fixes_it_and_newer_releases_come_through(
    results: Path, tmp_path: Path, release: str, is_caught: bool
) -> None:
    """It is of torch itself, in 2.6.0 and 2.11.0; what is preloaded makes sure that callers meet there."""
    built = build_library(HERE / "planted" / "late_writer.cpp", tmp_path)
    assert built.binary is not None, built.why_not
    preload = f"serving.env.LD_PRELOAD={built.binary}"
    models, said = migrated(results, "--set", preload, new=release, models="choice_of_values")
    served = {step["name"]: step["outcome"] for step in models["choice_of_values"]["steps"]}
    assert (served["serve: shared module"] == "hang") is is_caught, said
    assert served["serve: shared module, 4 runners"] == "completed"
    if is_caught:
        assert models["choice_of_values"]["outcome"] == "fails when served"
        assert "serialized first calls" in models["choice_of_values"]["kind"], said


def test_operator_that_is_not_compiled_is_named_and_its_twin_is_packaged(results: Path) -> None:
    models, said = migrated(results, new="2.6.0", models="operator_not_compiled or operators_compiled")
    blocked, free = models["operator_not_compiled"], models["operators_compiled"]
    assert (blocked["outcome"], blocked["kind"]) == ("not packageable", "operator aten._fft_r2c.default")
    assert blocked["reason"] == "UnsupportedOperatorException: aten._fft_r2c.default"
    assert "write aten._fft_r2c.default in other operators" in " ".join(said.split())
    assert {step["name"]: step["outcome"] for step in free["steps"]}["run package in C++"] == "completed"
    assert free["outcome"] == "ready" or free["kind"] == RACE, said


def test_without_a_compiler_it_is_said_what_to_install(tmp_path: Path) -> None:
    models, said = migrated(tmp_path, "--set", "serving.env.CXX=/nonexistent")
    assert {(model["outcome"], model["kind"]) for model in models.values()} == {("not packageable", "no compiler")}
    assert "install a C++ compiler, such as Debian's g++, or name one in CXX" in said
