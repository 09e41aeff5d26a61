"""One release of many: its key in the store of results, its fingerprint, its exports and its answers.

A key says everything about an environment that may change what a probe answers: the interpreter, the build of its
torch, what was installed or is loaded beside it, and the machine. It never holds the name that a user gave the
environment. The gate's own version is in it too: another one may understand the same probe otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness import __version__
from harness.artifacts.archive.code import CodeMemory
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registries_of
from harness.core.archive import ArchiveFacts, OperatorRegistry
from harness.core.devices import Device
from harness.core.environment import Environment, Fingerprint
from harness.core.errors import ConfigError, GateError
from harness.core.models import ModelDeclaration
from harness.core.plan import Plan
from harness.core.probe import ServingProfile
from harness.core.releases import MatrixRelease
from harness.environments.interpreters import inspect_interpreter
from harness.machine import pool
from harness.machine.cores import machine_identity
from harness.machine.files import text_of
from harness.probing.export import export_model
from harness.probing.facts import Answered, Effects, Export, OldAnswers, Provisioned
from harness.probing.old_answers import take_old_answers
from harness.probing.runner import ZygoteRunner, worker_digest
from harness.store import codec
from harness.store.results import ResultStore, WhyNot
from harness.verdict.matrix import twins

GPUS = "/proc/driver/nvidia/gpus"


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release of the matrix; ``key`` names it to the runner and to the store, ``name`` to the user.

    ``registry`` is None where it did not say which operators it has: nothing is predicted for it.
    """

    key: str
    name: str
    environment: Environment
    fingerprint: Fingerprint
    registry: OperatorRegistry | None = None

    @property
    def described(self) -> MatrixRelease:
        fingerprint = self.fingerprint
        return MatrixRelease(
            name=self.name, torch=fingerprint.torch, python=fingerprint.python, cpu=fingerprint.cpu or ""
        )


@dataclass(frozen=True, kw_only=True)
class Row:
    """The artifacts of one exporter.

    ``name``: of the row; ``release``: where its artifacts were exported, or taken over where they were given; ``read``:
    model -> what is in its archive; none where it cannot be read or holds no code.
    """

    name: str
    release: Release
    facts: Answered
    read: Mapping[str, ArchiveFacts] = field(default_factory=dict)


def make_row(
    name: str,
    release: Release,
    models: Sequence[ModelDeclaration],
    facts: Provisioned,
    effects: Effects,
    *,
    memory: CodeMemory,
) -> Row:
    """Return the row of ``models`` in ``release``; its zygote may be ended afterwards.

    ``facts``: the plan and the fingerprints of all releases, by key; ``memory``: shared by all rows: they hold much the
    same code.
    """
    jobs = facts.plan.settings.jobs
    requests = facts.requests
    verb = "export" if name == release.name else "take over"
    effects.progress.stage(f"{verb} in {release.name}", len(models))

    def export(model: ModelDeclaration) -> Export:
        done = export_model(model, facts, effects, requests, release.key)
        effects.progress.step(model.name)
        return done

    with effects.runner.sharing():
        exports = {done.declaration.name: done for done in pool.each(export, models, jobs=jobs)}
    made = [done for done in exports.values() if done.artifact is not None]
    effects.progress.stage(f"golden outputs in {release.name}", len(made))

    def baseline(done: Export) -> tuple[str, OldAnswers]:
        answers = take_old_answers(done, facts, effects, requests, release.key)
        effects.progress.step(done.declaration.name)
        return done.declaration.name, answers

    with effects.runner.sharing():
        baselines = dict(pool.each(baseline, made, jobs=jobs))
    answered = Answered(**Provisioned.known(facts), exports=exports, baselines=baselines)
    effects.progress.stage(f"read what {release.name} wrote", len(made))
    read = {}
    for done in made:
        archive_facts = inspect_file(answered.artifact(done.declaration.name).path, {}, memory).facts
        if archive_facts is not None and archive_facts.is_judged:
            read[done.declaration.name] = archive_facts
        effects.progress.step(done.declaration.name)
    return Row(name=name, release=release, facts=answered, read=read)


def release_key(environment: Environment, device: Device) -> str:
    """Return a name for ``environment`` on this machine, fit for a file, e.g. ``torch-2.6.0-0123456789ab``."""
    spec = environment.spec
    torch, build = spec.release, ""
    installed: tuple[str, ...] = ()
    if torch is None:  # a ready-made one may change under its path
        facts = inspect_interpreter(environment.interpreter)
        torch, build, installed = facts.torch, facts.build, (facts.python, *facts.installed)
    beside = [sorted(spec.extras), *spec.libraries, *installed]
    identity = [__version__, environment.interpreter, torch, build, beside, _machine(device)]
    plain = "".join(character if character.isalnum() or character in ".-" else "-" for character in torch)
    return f"torch-{plain}-{codec.digest(identity)[:12]}"


def fingerprint_of(
    key: str, runner: ZygoteRunner, folder: Path, *, profile: ServingProfile, device: Device, anew: bool
) -> Fingerprint:
    """Return what an environment says of itself, once per key; ``anew``: libraries and drivers may change."""
    results, name = ResultStore(folder, Fingerprint), f"{key}-{worker_digest()[:12]}"
    fingerprint = results.reusable(name, fresh=anew or not device.is_cpu)
    if isinstance(fingerprint, WhyNot):
        fingerprint = runner.fingerprint(key, profile, device)
        results.save(name, fingerprint)
    return fingerprint


def _machine(device: Device) -> list[str]:
    gpus = sorted(Path(GPUS).glob("*/information")) if device.nvidia else []
    models = [line for path in gpus for line in text_of(path).splitlines() if line.startswith("Model")]
    if not device.is_cpu and not device.nvidia:
        models = [device.name]
    return [*machine_identity(), *models]


def release_keys(environments: Mapping[str, Environment], device: Device) -> dict[str, str]:
    """Return what names each environment to the store, by its name in the matrix; no two names may mean one."""
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

    ``fresh``: whether a release that was asked in an earlier run is asked again. Raises ``EnvironmentUnavailable``:
    torch cannot be imported in one, or does not see the device.
    """
    effects.progress.stage("ask the releases", len(environments))
    registries, why_not = _registries(environments, effects.environment_root)
    releases = []
    for name, environment in environments.items():
        release = ask_release(
            name, environment, keys[name], effects, profile=plan.settings.profile, device=plan.runs_on, fresh=fresh
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
    device: Device,
    fresh: bool = False,
) -> Release:
    """Return what one environment is, without its operators."""
    fingerprint = fingerprint_of(
        key,
        effects.runner,
        effects.folder("releases"),
        profile=profile,
        device=device,
        anew=fresh or bool(environment.spec.libraries),
    )
    shown = (
        environment if environment.spec.release else replace(environment, name=f"{name} (torch {fingerprint.torch})")
    )
    return Release(key=key, name=name, environment=shown, fingerprint=fingerprint)


def _registries(
    environments: Mapping[str, Environment], root: Path
) -> tuple[Mapping[str, OperatorRegistry], tuple[str, ...]]:
    """Return which operators each release has, or why nothing can be predicted: the rest goes on without."""
    try:
        return registries_of(environments, root), ()
    except GateError as error:
        return {}, (f"nothing was predicted: {error.message}",)
