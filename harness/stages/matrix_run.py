"""Runs a version matrix in the folder that keeps its results: what is known there already is not asked again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.domain.environment import Environment, EnvSpec
from harness.domain.matrix import Matrix, MatrixRelease
from harness.domain.plan import Plan
from harness.domain.registry import OperatorRegistry
from harness.errors import ConfigError, EnvironmentUnavailable, GateError
from harness.runtime import clock
from harness.runtime.environments import EnvironmentBuilder
from harness.runtime.golden_store import GoldenStore
from harness.runtime.native_builds import build_stack_dumper
from harness.runtime.probe_runner import ZygoteRunner
from harness.runtime.progress import Progress
from harness.runtime.registries import registries_of
from harness.runtime.release_store import fingerprint_of, release_key
from harness.runtime.run_dir import RunDir
from harness.stages.facts import Effects
from harness.stages.matrix import matrix_cells, matrix_rows
from harness.stages.matrix_rows import Release
from harness.stages.provision import build_environments


def run_matrix(
    plan: Plan,
    specs: Mapping[str, EnvSpec],
    golden_in: str,
    *,
    store: RunDir,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: GoldenStore,
    command: str,
    command_words: Mapping[str, tuple[tuple[str, str], ...]],
) -> Matrix:
    """Return the matrix of the plan's models over the releases ``specs``, in their order.

    Args:
        plan: its sides count for nothing here.
        golden_in: the one of ``specs`` whose answers are the golden ones of artifacts that are given.
        store: keeps every result under its key, for this run and later ones.
        command, command_words: see ``Matrix``.

    Raises:
        EnvironmentUnavailable: an environment could not be provisioned or asked.
        ConfigError: two names mean one environment.
    """
    begin_ns = clock.monotonic_ns()
    progress.stage("environments")
    environments = build_environments(specs, builder)
    keys = _keys(environments, plan.device)
    runner = ZygoteRunner({keys[name]: environments[name] for name in keys}, store.probes)
    runner.mends = True  # the folder outlives versions of what is stored there
    effects = Effects(
        environments={keys[name]: environments[name] for name in keys},
        runner=runner,
        run_dir=store,
        progress=progress,
        golden=golden,
        waivers=(),
        native_folder=builder.root / "native",
        today=clock.today(),
    )
    try:
        runner.stack_dumper = build_stack_dumper(effects.native_folder)
        releases, notes = _releases(plan, environments, keys, effects, builder)
        home = next(release for release in releases if release.name == golden_in)
        rows = matrix_rows(plan, releases, home, effects)
        cells = matrix_cells(rows, releases, effects)
        progress.finish()
        given = any(model.given is not None for model in plan.models)
        return Matrix(
            device=plan.device,
            profile=plan.profile_name,
            releases=tuple(_described(release) for release in releases),
            exporters=tuple(row.name for row in rows),
            golden_in=golden_in if given else "",
            models=tuple(model.name for model in plan.models),
            cells=cells,
            asked=len({result.key for result in runner.finished}),
            known=len(runner.reused),
            wall_s=(clock.monotonic_ns() - begin_ns) * 1e-9,
            command=command,
            command_words=command_words,
            notes=(*plan.notes, *notes, *(f"could not be ended: {name}" for name in runner.unreaped)),
        )
    finally:
        runner.close()


def _keys(environments: Mapping[str, Environment], device: str) -> dict[str, str]:
    keys = {name: release_key(environment, device) for name, environment in environments.items()}
    for name, key in keys.items():
        twin = next((other for other in keys if other != name and keys[other] == key), None)
        if twin is not None:
            raise ConfigError(f"{name} and {twin} are the same environment", "name each release once")
    return keys


def _releases(
    plan: Plan,
    environments: Mapping[str, Environment],
    keys: Mapping[str, str],
    effects: Effects,
    builder: EnvironmentBuilder,
) -> tuple[Sequence[Release], tuple[str, ...]]:
    """Return what each environment is, and which operators it has, asked once; and notes on what is not known."""
    profile = plan.settings.profile
    effects.progress.stage("ask the releases", len(environments))
    registries, why_not = _registries(environments, builder)
    releases = []
    for name, environment in environments.items():
        key = keys[name]
        found = fingerprint_of(
            key,
            effects.runner,
            effects.folder("releases"),
            profile=profile,
            device=plan.device,
            libraries=bool(environment.spec.libraries),
        )
        if plan.device == "cuda" and found.gpu is None:
            raise EnvironmentUnavailable(
                f"this machine has a GPU and {environment.name} sees none",
                "check the driver and that it is a CUDA build, or run with --device cpu",
            )
        shown = environment if environment.spec.release else replace(environment, name=f"{name} (torch {found.torch})")
        releases.append(
            Release(key=key, name=name, environment=shown, fingerprint=found, registry=registries.get(name))
        )
        effects.progress.step(f"{name}: torch {found.torch}")
    return releases, why_not


def _registries(
    environments: Mapping[str, Environment], builder: EnvironmentBuilder
) -> tuple[Mapping[str, OperatorRegistry], tuple[str, ...]]:
    """Return which operators each release has, or why nothing can be predicted: the rest goes on without."""
    try:
        return registries_of(environments, builder.root), ()
    except GateError as error:
        return {}, (f"nothing was predicted: {error.message}",)


def _described(release: Release) -> MatrixRelease:
    found = release.fingerprint
    return MatrixRelease(name=release.name, torch=found.torch, python=found.python, cpu=found.cpu or "")
