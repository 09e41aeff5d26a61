"""The preflight: judges this machine before anything is installed; and the second look, at what happened in a run."""

import contextlib
import os
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from harness.apps.doctor import host
from harness.apps.doctor.checks import Facts, examined, run_notes
from harness.apps.doctor.during_run import during_run_notes, happened_between
from harness.apps.doctor.facts import CounterReading, Host, Tools
from harness.core.devices import AUTO, CPU, device_named
from harness.core.environment import EnvSpec
from harness.core.errors import EnvironmentUnavailable
from harness.core.machine import Checkup, Cores, Gpus
from harness.core.plan import Plan, Settings
from harness.core.report import RunReport
from harness.environments import candidates
from harness.environments.builder import EnvironmentBuilder
from harness.environments.candidate_facts import Candidate
from harness.environments.installer import find_uv, pip_for
from harness.environments.interpreters import find_pythons
from harness.environments.native import NoCompiler, ask_compiler
from harness.environments.torch_backends import common_build, with_build
from harness.machine import clock, gpu, pool
from harness.machine.cores import look_at_cores
from harness.probing.provision import with_common_python
from harness.store.run_folder import RunDir

# The newest standard that the headers of a known release ask for (2.15); every compiler that is new enough has it.
STANDARD = 20


def examine(specs: Sequence[EnvSpec], settings: Settings, builder: EnvironmentBuilder) -> Checkup:
    """Return all checks of this machine for the environments of ``specs``; builds and imports nothing."""
    begin_ns = clock.monotonic_ns()
    uv = find_uv()
    # The look at the cores comes first: what the others do would count as load.
    cores = look_at_cores()
    with ThreadPoolExecutor(max_workers=3) as threads:
        looking = threads.submit(_candidates, specs, builder, uv)
        gpus = threads.submit(gpu.survey, visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
        tools = threads.submit(_tools, uv)
    facts = Facts(
        host=_host(cores, gpus.result()),
        device=_checked(settings.device, settings),
        jobs=settings.jobs,
        candidates=tuple(looking.result()),
        disk=host.look_at_disk(builder.root),
        tools=tools.result(),
        runtime=settings.runtime,
    )
    wall_s = (clock.monotonic_ns() - begin_ns) * 1e-9
    return Checkup(environments=facts.names, checks=examined(facts), wall_s=wall_s)


def machine_notes(plan: Plan) -> tuple[str, ...]:
    """Return what is wrong with this machine, for the notes of a run; a few files are read, nothing is waited for."""
    seen = _host(look_at_cores(look_s=0), gpu.without_asking())
    return run_notes(Facts(host=seen, device=_checked(plan.device, plan.settings), jobs=plan.settings.jobs))


def _checked(device: str, settings: Settings) -> str:
    """Return the device as checks know it: they are about NVIDIA's, so another one is like the CPU to them."""
    return device if device == AUTO or device_named(device, settings.devices).nvidia else CPU.name


def _candidates(specs: Sequence[EnvSpec], builder: EnvironmentBuilder, uv: str | None) -> list[Candidate]:
    """Return what is known of each environment, with the Python that a run would choose for all of them."""
    pythons = find_pythons()
    chosen = _with_pythons(specs)
    backend = common_build([each for each in chosen if isinstance(each, EnvSpec)], builder, limit_s=candidates.LIMIT_S)

    def look(wanted: EnvSpec | Candidate) -> Candidate:
        if isinstance(wanted, Candidate):
            return wanted
        return candidates.examine(with_build(wanted, backend), builder, uv=uv, pythons=pythons)

    return pool.each(look, chosen, jobs=len(chosen))


def _with_pythons(specs: Sequence[EnvSpec]) -> list[EnvSpec | Candidate]:
    """Return the specs with a Python; those that no installed one suits, alone or together, as what is wrong."""
    named = {spec.name: spec for spec in specs}
    try:
        return list(with_common_python(named).values())
    except EnvironmentUnavailable as error:
        together = error
    alone = [_alone(spec) for spec in specs]
    if any(isinstance(item, Candidate) for item in alone):
        return alone
    fixed = [spec.release is None or spec.python is not None for spec in specs]
    return [
        spec if is_fixed else Candidate(name=spec.name, trouble=together.message, hint=together.hint)
        for spec, is_fixed in zip(specs, fixed, strict=True)
    ]


def _alone(spec: EnvSpec) -> EnvSpec | Candidate:
    try:
        return with_common_python({spec.name: spec})[spec.name]
    except EnvironmentUnavailable as error:
        return Candidate(name=spec.name, trouble=error.message, hint=error.hint)


def _host(cores: Cores, gpus: Gpus) -> Host:
    return Host(
        cores=cores,
        memory=host.look_at_memory(),
        limits=host.look_at_limits(),
        container=host.look_at_container(),
        gpus=gpus,
        glibc=platform.libc_ver()[1],
    )


def _tools(uv: str | None) -> Tools:
    installer = f"uv ({uv})" if uv is not None else ""
    if not installer:
        with contextlib.suppress(EnvironmentUnavailable):
            installer = f"pip ({Path(pip_for(sys.executable, sys.executable)[1]).name})"
    try:
        compiler = ask_compiler(STANDARD)
    except NoCompiler as error:
        return Tools(installer=installer, no_compiler=str(error))
    return Tools(installer=installer, compiler=f"{' '.join(compiler.command)}, {compiler.version}")


def look(plan: Plan, run_dir: RunDir) -> CounterReading:
    """Return what the machine's counters are now; of GPUs only where the run uses them."""
    on_gpu = plan.runs_on.nvidia
    gpus = gpu.survey(visible=os.environ.get("CUDA_VISIBLE_DEVICES")) if on_gpu else None
    return host.read_counters(run_dir.path, gpus=gpus)


def with_machine_changes(report: RunReport, before: CounterReading, after: CounterReading) -> RunReport:
    """Return the report with what happened to the machine between two looks, and a note for each thing."""
    during_run = happened_between(before, after)
    notes = during_run_notes(during_run, times=any(model.latency is not None for model in report.models))
    return replace(report, during_run=during_run, notes=tuple(dict.fromkeys((*report.notes, *notes))))
