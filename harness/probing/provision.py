"""Builds or finds the environments, asks each what it is, and opens and ends what stages touch the world with."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from packaging.version import Version

from harness.artifacts.imported_source import ImportedSource
from harness.artifacts.old_outputs import Records
from harness.core.environment import Environment, EnvSpec, Fingerprint
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.core.plan import Plan
from harness.core.verdict import Waiver
from harness.environments.builder import EnvironmentBuilder
from harness.environments.interpreters import find_pythons
from harness.environments.native import build_stack_dumper
from harness.environments.pythons import choose_python
from harness.environments.torch_backends import with_common_build
from harness.machine import pool
from harness.machine.progress import Progress
from harness.probing.facts import Effects, profile_of
from harness.probing.runner import Watchdog, ZygoteRunner
from harness.store.run_folder import RunDir


def sides(plan: Plan) -> dict[str, EnvSpec]:
    """Return the environments that a plan needs, by side; golden records need no old one."""
    return {"new": plan.new} if plan.old is None else {"old": plan.old, "new": plan.new}


def with_common_python(specs: Mapping[str, EnvSpec]) -> dict[str, EnvSpec]:
    """Return the specs with one common installed Python. Raises ``EnvironmentUnavailable``: none suits all."""
    open_releases = [spec.release for spec in specs.values() if spec.release is not None and spec.python is None]
    if not open_releases:
        return dict(specs)
    python = choose_python(open_releases, list(find_pythons()))
    return {
        side: replace(spec, python=python) if spec.release is not None and spec.python is None else spec
        for side, spec in specs.items()
    }


def build_environments(specs: Mapping[str, EnvSpec], builder: EnvironmentBuilder) -> dict[str, Environment]:
    """Return the environments, all with one Python and one kind of build where they are free to choose."""
    complete = with_common_build(list(with_common_python(specs).values()), builder)
    return dict(zip(specs, builder.build_all(complete), strict=True))


def take_fingerprints(
    plan: Plan, environments: Mapping[str, Environment], runner: ZygoteRunner, tick: Callable[[str], None]
) -> dict[str, Fingerprint]:
    """Return what each environment says of itself; the zygotes import torch at the same time.

    Raises:
        EnvironmentUnavailable: torch cannot be imported, or does not see the device.
        ConfigError: both sides are the same torch and nobody asked for that.
    """
    profiles = {side: profile_of(side, plan) for side in environments}
    for side in environments:
        runner.start(side, profiles[side])

    def fingerprint(side: str) -> Fingerprint:
        answer = runner.fingerprint(side, profiles[side], plan.runs_on)
        tick(f"{environments[side].name}: torch {answer.torch}")
        return answer

    order: Sequence[str] = list(environments)
    fingerprints = dict(zip(order, pool.each(fingerprint, order, jobs=len(order)), strict=True))
    for side, fingerprint_ in fingerprints.items():
        release = environments[side].spec.release
        if release is not None and Version(fingerprint_.torch).release != Version(release).release:
            raise EnvironmentUnavailable(
                f"the environment of torch {release} holds torch {fingerprint_.torch}",
                f"something was installed into it; delete {environments[side].interpreter.rpartition('/bin/')[0]}",
            )
    same = len({item.identity for item in fingerprints.values()}) < len(fingerprints)
    if same and not plan.settings.allow_same_torch:
        raise ConfigError(
            f"both sides are torch {fingerprints['new'].torch}",
            "name two releases, or --allow-same-torch to see the noise",
        )
    return fingerprints


@contextlib.contextmanager
def opened(
    environments: Mapping[str, Environment],
    run_dir: RunDir,
    *,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: Records,
    waivers: tuple[Waiver, ...],
    today: date,
    watchdog: Watchdog,
    reuse: bool = True,
    imported: ImportedSource | None = None,
) -> Iterator[Effects]:
    """Yield what probes in ``environments``, by side, need; the mapping may grow while it is open.

    ``reuse``: whether results that ``run_dir`` holds are returned in place of new probes; ``imported``: where
    ``run_dir`` outlives this run, see ``ZygoteRunner``.
    """
    native_folder = builder.root / "native"
    stack_dumper = build_stack_dumper(native_folder)
    runner = ZygoteRunner(
        environments,
        run_dir.probes,
        watchdog,
        reuse=reuse,
        stack_dumper=stack_dumper.binary,
        compiler_checks=native_folder,
        imported=imported,
        progress=progress,
    )
    try:
        effects = Effects(
            environments=environments,
            runner=runner,
            run_dir=run_dir,
            progress=progress,
            golden=golden,
            waivers=waivers,
            native_folder=native_folder,
            today=today,
        )
        effects.book_compilation("new", "the dumper of stacks", stack_dumper)
        yield effects
    finally:
        runner.close()
