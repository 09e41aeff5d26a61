"""What an environment says of itself, held against what it is named for."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from harness.core.environment import Environment, EnvSpec, Fingerprint
from harness.core.errors import EnvironmentUnavailable
from harness.probing.provision import take_fingerprints
from tests.unit.builders.stages import NAMES, planned

RELEASES: Mapping[str, str | None] = {"old": "2.1.2", "new": "2.6.0"}


class Zygotes:
    """Environments that hold the given torch."""

    def __init__(self, **torch: str) -> None:
        self._torch = torch

    def start(self, side: str, profile: object) -> None:
        """Start nothing."""

    def fingerprint(self, side: str, profile: object, device: str) -> Fingerprint:
        """Return what ``side`` holds."""
        return Fingerprint(torch=self._torch[side], git_revision=self._torch[side])


def fingerprints(releases: Mapping[str, str | None] = RELEASES, **torch: str) -> dict[str, str]:
    environments = {
        side: Environment(
            name=NAMES[side], interpreter=f"/envs/{side}/bin/python", spec=EnvSpec(name=NAMES[side], release=release)
        )
        for side, release in releases.items()
    }
    found = take_fingerprints(planned(), environments, cast(Any, Zygotes(**torch)), lambda text: None)
    return {side: item.torch for side, item in found.items()}


@pytest.mark.parametrize("new", ["2.6.0", "2.6.0+cpu", "2.6.0+cu124", "2.6.0a0+git1234"])
def test_any_build_of_the_release_is_that_release(new: str) -> None:
    assert fingerprints(old="2.1.2+cu121", new=new) == {"old": "2.1.2+cu121", "new": new}


def test_environment_that_holds_another_release_is_refused_with_the_folder_to_delete() -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"the environment of torch 2\.6\.0 holds torch 2\.7\.1") as caught:
        fingerprints(old="2.1.2", new="2.7.1+cpu")
    assert caught.value.hint.endswith("delete /envs/new")


def test_interpreter_that_is_named_for_no_release_may_hold_any() -> None:
    assert fingerprints({"old": "2.1.2", "new": None}, old="2.1.2", new="2.9.0")["new"] == "2.9.0"
