"""An environment has what its release needs and does not ask for; any other stays as it was."""

import pytest

from harness.core.environment import EnvSpec
from harness.environments.undeclared import SETUPTOOLS, compiling, importing


@pytest.mark.parametrize("release", ["2.6.0", "2.8.0", "2.10.0+cpu"])
def test_releases_that_do_not_bring_setuptools_get_it(release: str) -> None:
    assert compiling(EnvSpec(name="new", release=release, extras=("numpy",))).extras == ("numpy", SETUPTOOLS)


@pytest.mark.parametrize(
    "spec",
    [
        EnvSpec(name="new", release="2.11.0"),
        EnvSpec(name="new", release="2.15.0+cpu"),
        EnvSpec(name="new", interpreter="/opt/torch/bin/python"),
        EnvSpec(name="new", release="2.6.0", extras=("Setuptools>=70",)),
    ],
)
def test_others_stay_as_they_are(spec: EnvSpec) -> None:
    assert compiling(spec) is spec


def test_what_is_no_requirement_is_left_to_the_installer() -> None:
    assert compiling(EnvSpec(name="new", release="2.6.0", extras=("./wheels/x.whl",))).extras[-1] == SETUPTOOLS


@pytest.mark.parametrize(
    ("release", "extras", "wanted"),
    [
        ("2.1.2", ("torchvision",), ("torchvision", "packaging")),
        ("1.13.1", ("torchaudio",), ("torchaudio", "packaging")),
        ("2.1.2", (), ()),
        ("2.1.2", ("torchvision", "packaging>=24"), ("torchvision", "packaging>=24")),
        ("2.6.0", ("torchvision",), ("torchvision",)),
    ],
)
def test_packages_that_import_an_older_torch_find_packaging(
    release: str, extras: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    assert importing(EnvSpec(name="old", release=release, extras=extras)).extras == wanted
