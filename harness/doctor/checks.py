"""All checks of the doctor, from facts; its exit code; and what of it a run's report should tell. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from harness.doctor.cores import core_checks
from harness.doctor.environments import environment_checks
from harness.doctor.evidence import evidence_checks
from harness.doctor.gpus import gpu_checks, profiler_checks
from harness.doctor.resources import limit_checks, memory_checks, resource_checks
from harness.domain.machine import Candidate, CheckStatus, Checkup, Disk, Gpus, Host, MachineCheck, Tools
from harness.errors import ExitCode

# What a run's notes leave out: a report that lacks stacks says so itself.
_QUIET = frozenset({"debuggers", "ptrace"})


def examined(
    candidates: Sequence[Candidate], host: Host, disk: Disk, tools: Tools, *, device: str, jobs: int, runtime: str
) -> tuple[MachineCheck, ...]:
    """Return every check, in the order in which they are shown.

    Args:
        device, jobs, runtime: as in ``Settings``.
    """
    names = [one.name for one in candidates]
    return (
        *environment_checks(
            candidates,
            glibc=host.glibc,
            gpus=host.gpus,
            uses_gpu=_uses_gpu(host.gpus, device),
            has_installer=bool(tools.installer),
        ),
        *resource_checks(
            candidates, disk=disk, memory=host.memory, tools=tools, jobs=jobs, wants_native=runtime == "libtorch"
        ),
        *limit_checks(host.limits, jobs),
        *gpu_checks(host.gpus, host.container, device=device, names=names),
        *core_checks(host.cores),
        *evidence_checks(host.forensics, host.container, host.limits),
    )


def exit_code(checkup: Checkup) -> ExitCode:
    """Return 3 where an environment cannot be provisioned here, else 0; warnings change nothing."""
    return ExitCode.ENVIRONMENT if checkup.blocked else ExitCode.COMPATIBLE


def run_notes(host: Host, *, jobs: int, device: str, times: bool) -> tuple[str, ...]:
    """Return what is wrong with this machine for the notes of a run: of what can be read without waiting.

    Args:
        jobs, device: as in ``Settings``.
        times: whether the run measures latency.
    """
    cores = host.cores if times else replace(host.cores, governors=())
    checks = [*memory_checks(host.memory, jobs), *limit_checks(host.limits, jobs), *core_checks(cores)]
    checks += evidence_checks(host.forensics, host.container, host.limits)
    checks += profiler_checks(host.gpus) if _uses_gpu(host.gpus, device) else ()
    wrong = (one for one in checks if one.status in (CheckStatus.WARN, CheckStatus.FAIL) and one.name not in _QUIET)
    return tuple(f"{one.name}: {one.read}. {one.so_what} {one.do_this}" for one in wrong)


def _uses_gpu(gpus: Gpus, device: str) -> bool:
    return bool(gpus.nodes) and device != "cpu"
