"""The releases of a version matrix: the key of each in the store of results, and its fingerprint."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.domain.archive import OperatorRegistry
from harness.domain.environment import Environment
from harness.domain.plan import Plan
from harness.domain.probe import ServingProfile
from harness.errors import ConfigError, EnvironmentUnavailable, GateError
from harness.probing.facts import Effects
from harness.releases.fingerprints import fingerprint_of, release_key
from harness.releases.matrix_judging import twins
from harness.releases.matrix_rows import Release
from harness.static.registries import registries_of


def release_keys(environments: Mapping[str, Environment], device: str) -> dict[str, str]:
    """Return what names each environment to the store, by its name in the matrix.

    Raises:
        ConfigError: two names mean one environment.
        EnvironmentUnavailable: a ready-made interpreter cannot be asked what it holds.
    """
    keys = {name: release_key(environment, device) for name, environment in environments.items()}
    for name, key in keys.items():
        twin = next((other for other in keys if other != name and keys[other] == key), None)
        if twin is not None:
            raise ConfigError(f"{name} and {twin} are the same environment", "name each release once")
    return keys


def ask_releases(
    plan: Plan,
    environments: Mapping[str, Environment],
    keys: Mapping[str, str],
    effects: Effects,
    *,
    fresh: bool,
) -> tuple[Sequence[Release], tuple[str, ...]]:
    """Return what each environment is, and which operators it has; and notes on what is not known or no upgrade.

    Args:
        keys: of ``release_keys``; ``fresh``: whether a release that was asked in an earlier run is asked again.

    Raises:
        EnvironmentUnavailable: torch cannot be imported in one, or the GPU that was asked for is not seen.
    """
    effects.progress.stage("ask the releases", len(environments))
    registries, why_not = _registries(environments, effects.environment_root)
    releases = []
    for name, environment in environments.items():
        release = ask_release(
            name, environment, keys[name], effects, profile=plan.settings.profile, device=plan.device, fresh=fresh
        )
        releases.append(replace(release, registry=registries.get(name)))
        effects.progress.step(f"{name}: torch {release.fingerprint.torch}")
    return releases, (*twins({release.name: release.fingerprint for release in releases}), *why_not)


def ask_release(
    name: str,
    environment: Environment,
    key: str,
    effects: Effects,
    *,
    profile: ServingProfile,
    device: str,
    fresh: bool = False,
) -> Release:
    """Return what one environment is, without its operators.

    Raises:
        EnvironmentUnavailable: torch cannot be imported there, or the GPU that was asked for is not seen.
    """
    found = fingerprint_of(
        key,
        effects.runner,
        effects.folder("releases"),
        profile=profile,
        device=device,
        anew=fresh or bool(environment.spec.libraries),
    )
    if device == "cuda" and found.gpu is None:
        raise EnvironmentUnavailable(
            f"this machine has a GPU and {environment.name} sees none",
            "check the driver and that it is a CUDA build, or run with --device cpu",
        )
    shown = environment if environment.spec.release else replace(environment, name=f"{name} (torch {found.torch})")
    return Release(key=key, name=name, environment=shown, fingerprint=found)


def _registries(
    environments: Mapping[str, Environment], root: Path
) -> tuple[Mapping[str, OperatorRegistry], tuple[str, ...]]:
    """Return which operators each release has, or why nothing can be predicted: the rest goes on without."""
    try:
        return registries_of(environments, root), ()
    except GateError as error:
        return {}, (f"nothing was predicted: {error.message}",)
