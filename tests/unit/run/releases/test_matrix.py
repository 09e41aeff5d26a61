"""What may be asked of the version matrix, up to where the first environment would be built."""

from pathlib import Path

import pytest

from harness.cli import main
from harness.core.errors import ConfigError
from harness.run.options import Options, settings_of
from harness.run.releases.matrix import _home, _named, _pair_command

PROJECT = Path(__file__).resolve().parents[4]


def named(*texts: str, environments: tuple[str, ...] = (), libraries: tuple[str, ...] = ()) -> object:
    options = Options(project=PROJECT, environments=environments, libraries=libraries)
    table, settings = settings_of(options)
    return _named(texts, options, table, settings)


def test_releases_are_named_in_full_and_keep_their_order() -> None:
    options = Options(project=PROJECT)
    table, settings = settings_of(options)
    found = _named(("2.6", "2.1.2"), options, table, settings)
    assert [(name, item.spec.release) for name, item in found.items()] == [("2.6.0", "2.6.0"), ("2.1.2", "2.1.2")]
    assert _home(None, found, "9.9.9") == "2.6.0"  # the first
    assert _home(None, found, "2.1.2") == "2.1.2"  # what production runs
    assert _home("2.6", found, "") == _home("2.6.0", found, "") == "2.6.0"
    with pytest.raises(ConfigError, match="--golden-in 2.15.0: it is none of the releases"):
        _home("2.15.0", found, "")


def test_a_ready_made_interpreter_and_its_library_are_told_to_its_own_pairs_only() -> None:
    options = Options(
        project=PROJECT, environments=("prod=/opt/prod/bin/python",), libraries=("prod=/ops/libx.so", "torchvision")
    )
    table, settings = settings_of(options)
    found = _named(("prod", "2.6.0"), options, table, settings)
    assert found["prod"].spec.interpreter == "/opt/prod/bin/python"
    assert found["prod"].spec.libraries == ("/ops/libx.so", "torchvision")
    assert found["2.6.0"].spec.libraries == ("torchvision",)
    assert found["prod"].words[0] == ("--env", "prod=/opt/prod/bin/python")
    assert found["2.6.0"].words == (("--library", "torchvision"),)


@pytest.mark.parametrize("texts", [(), ("2.6.0",), ("2.6", "2.6.0")])
def test_one_release_makes_no_matrix(texts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="a matrix needs two releases"):
        named(*texts)


def test_an_environment_that_is_no_release_of_the_matrix_is_named() -> None:
    with pytest.raises(ConfigError, match="--env prod: it is none of the releases"):
        named("2.1.2", "2.6.0", environments=("prod=/opt/prod/bin/python",))


def test_what_says_which_models_is_passed_on_to_the_command_of_a_pair() -> None:
    models = ["--fixtures", "my zoo", "-k", "x", "--set=jobs=1", "--deadline", "5", "--library", "ops.so"]
    arguments = ["matrix", "--releases", "2.1.2", "2.6.0", *models, "--out", "d", "--fresh"]
    words = " --project '/p q' compat --fixtures 'my zoo' --set jobs=1 --deadline 5"
    assert _pair_command(arguments, Path("/p q")).endswith(words)


def test_mistakes_are_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["matrix", "--releases", "2.six", "2.6.0", "--out", str(tmp_path / "store")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and "2.six" in line
    assert not (tmp_path / "store").exists()
