"""Names environments for a store of results that outlives a run, and keeps the fingerprint of each.

A key says everything about an environment that may change what a probe answers: the interpreter, the build of its
torch, what was installed or is loaded beside it, and the machine. It never holds the name that a user gave the
environment. The gate's own version is in it too: another one may understand the same probe otherwise.
"""

import platform
from pathlib import Path

from harness import __version__
from harness.domain.environment import Environment, Fingerprint
from harness.domain.probe import ServingProfile
from harness.environments.interpreters import inspect_interpreter
from harness.probing.runner import ZygoteRunner, worker_digest
from harness.store import codec
from harness.store.results import ResultStore, WhyNot

GPUS = "/proc/driver/nvidia/gpus"


def release_key(environment: Environment, device: str) -> str:
    """Return a name for ``environment`` on this machine, fit for a file, e.g. ``torch-2.6.0-0123456789ab``.

    Raises:
        EnvironmentUnavailable: a ready-made interpreter cannot be asked what it holds.
    """
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
    key: str, runner: ZygoteRunner, folder: Path, *, profile: ServingProfile, device: str, anew: bool
) -> Fingerprint:
    """Return what an environment says of itself; asked once per key and worker, since that imports torch.

    Args:
        anew: whether it is asked every time: operator libraries may change under their names. A driver may too.

    Raises:
        EnvironmentUnavailable: torch cannot be imported there.
        RunDirError: ``folder`` cannot be written.
    """
    results, name = ResultStore(folder, Fingerprint), f"{key}-{worker_digest()[:12]}"
    fingerprint = results.reusable(name, fresh=anew or device != "cpu")
    if isinstance(fingerprint, WhyNot):
        fingerprint = runner.fingerprint(key, profile, device)
        results.save(name, fingerprint)
    return fingerprint


def _machine(device: str) -> list[str]:
    """Return what says on which kind of machine this runs: numbers change with the CPU's instructions."""
    cpu = [line for line in _lines(Path("/proc/cpuinfo")) if line.startswith(("model name", "flags", "Features"))]
    gpus = sorted(Path(GPUS).glob("*/information")) if device == "cuda" else []
    models = [line for path in gpus for line in _lines(path) if line.startswith("Model")]
    return [platform.machine(), *platform.libc_ver(), *sorted(set(cpu)), *models]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
