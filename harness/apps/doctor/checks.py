"""The doctor's checks, as a table: what is read for each, which problem that is, and what to do about it. Pure.

A reader gets the facts and what it looks at (an environment, or the machine), and returns nothing where its
question does not come up there.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple

from harness.apps.doctor.facts import Disk, Host, Tools
from harness.checks.latency.machine import STOLEN_LIMIT
from harness.core.environment import CPU_ENVIRONMENT_BYTES, ENVIRONMENT_BYTES
from harness.core.machine import CheckStatus, MachineCheck
from harness.environments.candidate_facts import Candidate, Wheel
from harness.environments.cuda_support import LINK_THEM, gpu_trouble, is_older, minimal_driver, runs_on

GB = 1e9
# A worker with torch and a small model held 0.4 GB; two zygotes and the controller come on top.
JOB_BYTES = 0.5e9
# Tens of threads per worker: its pools, its callers, the libraries that it loads. A rough bound, not a measurement.
JOB_TASKS = 64
OPEN_FILES = 1024
PROHIBITED = "Prohibited"
# How runtimes name groups: systemd's end in .scope or lie in a .slice.
SYSTEMD = re.compile(r"\.(scope|slice)\b")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that was looked up for a checkup; ``device``, ``jobs``, ``runtime``: as in ``Settings``."""

    host: Host
    device: str
    jobs: int
    candidates: tuple[Candidate, ...] = ()
    disk: Disk = field(default_factory=lambda: Disk(folder=""))
    tools: Tools = field(default_factory=Tools)
    runtime: str = "auto"

    @property
    def uses_gpu(self) -> bool:
        return bool(self.host.gpus.nodes) and self.device != "cpu"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(candidate.name for candidate in self.candidates)

    @property
    def wanting_gpu(self) -> tuple[str, ...]:
        """Environments that a GPU that cannot be used stops: all, or none."""
        return self.names if self.device != "cpu" else ()

    @property
    def to_build(self) -> dict[str, int]:
        """Name -> the bytes that its building needs."""
        missing = [candidate for candidate in self.candidates if not candidate.built and not candidate.trouble]
        return {candidate.name: _needed_bytes(candidate.wheel) for candidate in missing}


def _needed_bytes(wheel: Wheel | None) -> int:
    return CPU_ENVIRONMENT_BYTES if wheel is not None and wheel.cuda is None else ENVIRONMENT_BYTES


class Reading(NamedTuple):
    """What was read.

    ``problem``: one of those of the check; empty: all is well; ``is_certain``: whether the problem is there, not merely
    possible.
    """

    shown: str
    problem: str = ""
    blocks: tuple[str, ...] = ()
    words: Mapping[str, Any] = {}
    is_certain: bool = True

    @property
    def status(self) -> CheckStatus:
        """What the check came to: what blocks an environment is a failure."""
        if not self.problem:
            return CheckStatus.OK
        if not self.is_certain:
            return CheckStatus.UNKNOWN
        return CheckStatus.FAIL if self.blocks else CheckStatus.WARN


def _python(_facts: Facts, candidate: Candidate) -> Reading:
    if candidate.trouble:
        return Reading(
            candidate.trouble, "missing", (candidate.name,), {"name": candidate.name, "hint": _sentence(candidate.hint)}
        )
    if candidate.unsuited:
        return Reading(f"{candidate.python}, as configured; wheels for {candidate.pythons}", "unsuited")
    suits = f"; wheels for {candidate.pythons}" if candidate.pythons else ""
    built = "; built already" if candidate.built and candidate.pythons else ""
    return Reading(f"{candidate.python}{suits}{built}")


def _wheel(_facts: Facts, candidate: Candidate) -> Reading | None:
    if candidate.trouble or candidate.wheel is not None:
        return None
    return Reading("this gate does not know what its wheel asks for", "unknown", is_certain=False)


def _glibc(facts: Facts, candidate: Candidate) -> Reading | None:
    if candidate.trouble or candidate.wheel is None:
        return None
    here, needed = facts.host.glibc, candidate.wheel.glibc
    if not here:
        return Reading("this machine's C library is not glibc", "too old", (candidate.name,))
    if needed is None:
        return Reading(f"{here} here; the wheel does not say")
    older = is_older(here, needed)
    shown = f"{here} here, {needed} needed"
    if older is False:
        return Reading(shown)
    return Reading(shown, "too old", (candidate.name,) if older else (), is_certain=bool(older))


def _cuda(facts: Facts, candidate: Candidate) -> Reading | None:
    if candidate.trouble or candidate.wheel is None or candidate.wheel.cuda is not None or not facts.uses_gpu:
        return None
    return Reading(f"a build without CUDA ({candidate.wheel.source})", "none", (candidate.name,))


def _driver(facts: Facts, candidate: Candidate) -> Reading | None:
    if candidate.trouble or candidate.wheel is None or candidate.wheel.cuda is None or not facts.uses_gpu:
        return None
    here, least = facts.host.gpus.driver, minimal_driver(candidate.wheel.cuda)
    shown = f"{here or 'unknown'} here; CUDA {candidate.wheel.cuda} ({candidate.wheel.source}) needs {least or '?'}"
    older = is_older(here, least or "")
    if older is False:
        return Reading(shown)
    problem = "too old" if least else "not in the table"
    return Reading(shown, problem, (candidate.name,) if older else (), {"least": least}, is_certain=bool(older))


def _architecture(facts: Facts, candidate: Candidate) -> Reading | None:
    cards, built = facts.host.gpus.cards, candidate.wheel
    if candidate.trouble or built is None or built.cuda is None or not facts.uses_gpu or not cards:
        return None
    runs = {card.machine_state.name: runs_on(built.architectures, card.capability) for card in cards}
    missing = [name for name, kernels in runs.items() if kernels is False] if built.architectures else []
    capabilities = ", ".join(sorted({card.capability or "unknown" for card in cards}))
    newest = f"{built.architectures[0]} to {built.architectures[-1]}" if built.architectures else "unknown GPUs"
    shown = f"compute capability {capabilities} here; kernels for {newest} ({built.source})"
    if not missing and built.architectures and None not in runs.values():
        return Reading(shown)
    words = {"cards": " and ".join(missing) or "such a GPU"}
    if len(missing) == len(runs):
        return Reading(shown, "no GPU", (candidate.name,), words)
    return Reading(shown, "not every GPU", words=words, is_certain=bool(missing))


def _index(facts: Facts, candidate: Candidate) -> Reading | None:
    if candidate.name in facts.to_build and not facts.tools.installer:
        return Reading("neither uv nor pip", "no installer", (candidate.name,))
    if candidate.trouble or candidate.index is None:
        return None
    answer = candidate.index
    if answer.found:
        return Reading("; ".join(["the index has it"] * answer.reached + ["the cache has all of it"] * answer.cached))
    if answer.found is None and answer.cached:
        return Reading(f"{answer.said}; the cache has all of it", "cache only")
    hint = answer.hint or "check the network, proxy and index arguments, or give --env NAME=PYTHON"
    silent = answer.found is None and not answer.hint
    words = {"name": candidate.name, "hint": _sentence(hint)}
    return Reading(answer.said, "away", () if silent else (candidate.name,), words)


def _disk(facts: Facts, _host: Host) -> Reading:
    place, missing = facts.disk, facts.to_build
    free = "free space unknown" if place.free is None else f"{place.free / GB:.0f} GB free"
    if not missing:
        return Reading(f"{free} in {place.folder}; nothing to build")
    needed = sum(missing.values())
    shown = f"{free} in {place.folder}; {len(missing)} to build, {needed / GB:.0f} GB"
    if not place.writable:
        return Reading(shown, "read-only", tuple(missing))
    if place.free is not None and place.free < needed:
        fitting = sum(total <= place.free for total in accumulate(missing.values()))
        return Reading(shown, "full", tuple(missing)[fitting:])
    return Reading(shown)


def _memory(facts: Facts, host: Host) -> Reading | None:
    usable, available = host.memory.usable, host.memory.available
    if usable is None:
        return None
    needed = (facts.jobs + 3) * JOB_BYTES
    left = usable if available is None else min(available, usable)
    free = "" if available is None else f", {left / GB:.1f} GB of it available"
    words = {"jobs": facts.jobs, "needed": f"{needed / GB:.1f}"}
    problem = "" if left >= needed else "little"
    return Reading(f"{usable / GB:.1f} GB{free}, for {facts.jobs} jobs", problem, words=words)


def _compiler(facts: Facts, _host: Host) -> Reading:
    if facts.tools.compiler:
        return Reading(facts.tools.compiler)
    why, _, advice = facts.tools.no_compiler.rpartition(": ")
    words = {"advice": f"{advice[:1].upper()}{advice[1:]}."}
    if facts.runtime in ("libtorch", "both") and facts.names:
        return Reading(why, "wanted", facts.names, words)
    return Reading(why, "none", words=words)


def _limits(facts: Facts, host: Host) -> Reading:
    tasks, files = host.limits.tasks, host.limits.open_files
    needed = (facts.jobs + 3) * JOB_TASKS
    shown = "no limit on processes" if tasks is None else f"{tasks} processes and threads"
    shown += ", no limit on files" if files is None else f", {files} open files"
    if (tasks is None or tasks >= needed) and (files is None or files >= OPEN_FILES):
        return Reading(shown)
    return Reading(f"{shown}; {facts.jobs} jobs take up to {needed} and {OPEN_FILES}", "low")


def _gpu(facts: Facts, host: Host) -> Reading | None:
    if host.gpus.nodes:
        return None
    if facts.device != "cuda":
        return Reading("none here; runs take the CPU")
    return Reading('none here, and device is "cuda"', "none", facts.names)


def _nvidia_smi(facts: Facts, host: Host) -> Reading | None:
    text, cards = host.gpus.trouble, host.gpus.cards
    if host.gpus.nodes and not text and cards and all(card.compute_mode == PROHIBITED for card in cards):
        return Reading(f"compute mode {PROHIBITED}", "prohibited", facts.wanting_gpu)
    if not host.gpus.nodes or not text:
        return None
    known = gpu_trouble(text)
    so_what, do_this = known or ("The GPU's clocks and tenants cannot be seen.", "Run nvidia-smi.")
    return Reading(text, "trouble", facts.wanting_gpu if known else (), {"so_what": so_what, "do_this": do_this})


def _device_links(_facts: Facts, host: Host) -> Reading | None:
    inside, systemd = host.container.kind, bool(SYSTEMD.search(host.container.group))
    if not host.gpus.nodes or (inside and not systemd):
        return None
    if not host.gpus.unlinked:
        return Reading("in /dev/char, as containers under systemd need them")
    where = "this container's group is systemd's" if inside else f"no links for {', '.join(host.gpus.unlinked)}"
    return Reading(where, "missing", is_certain=bool(inside) or systemd)


def _profilers(_facts: Facts, host: Host) -> Reading | None:
    if not host.gpus.nodes:
        return None
    running = host.gpus.profilers
    return Reading(", ".join(running), "running") if running else Reading("none runs here")


def _cores(_facts: Facts, host: Host) -> Reading:
    quota = host.cores.quota
    shown = f"{host.cores.allowed} of {host.cores.visible} may be used"
    if quota is None or quota >= host.cores.allowed:
        return Reading(shown)
    return Reading(f"{shown}, with a CPU quota of {quota:g}", "quota", words={"jobs": max(1, int(quota))})


def _steal_time(_facts: Facts, host: Host) -> Reading | None:
    share = host.cores.stolen
    if share is None:
        return None
    return Reading(f"{100 * share:.0f} % of the cores' time, in 0.2 s", "much" if share > STOLEN_LIMIT else "")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else "See the message."


ON_THE_CPU = "or run with --device cpu"


class Problem(NamedTuple):
    """What a reading does to a run, and what to do about it; words in braces are the reading's."""

    so_what: str
    do_this: str


class Check(NamedTuple):
    """One row of the table.

    Attributes:
        read: answers it; nothing where its question does not come up.
        source: what it reads; ``limit``: what must hold. As the guide has them.
        problems: what can be wrong, by the name that the reading gives it.
    """

    name: str
    area: str
    read: Callable[[Facts, Any], Reading | None]
    source: str
    limit: str
    problems: Mapping[str, Problem] = {}
    noted: bool = False


NO_KERNEL = 'On {cards} every call would end with "no kernel image is available".'
CHOOSE_A_GPU = "Choose a GPU with CUDA_VISIBLE_DEVICES that the wheel has kernels for."
OLD_DRIVER = "torch sees no GPU with an older driver, so a run ends before it begins."
ENVIRONMENTS, RESOURCES, GPU, TIMING = "environments", "resources", "GPU", "timing"
# In the order in which they are shown. Each has stopped somebody, or made the answer of a run worth nothing.
CHECKS = (
    Check(
        "Python",
        ENVIRONMENTS,
        _python,
        source="the installed Pythons, the wheels of each release",
        limit="one that suits all releases; an --env runs and has torch",
        problems={
            "missing": Problem("{name} cannot be provisioned here.", "{hint}"),
            "unsuited": Problem(
                "Only an index with wheels of your own can have one for this Python.",
                "Name another Python in [tool.compat.environments], or none.",
            ),
        },
    ),
    Check(
        "wheel",
        ENVIRONMENTS,
        _wheel,
        source="the environment's own files, else harness/environments/wheel_requirements.py",
        limit="known",
        problems={
            "unknown": Problem(
                "Whether the driver, the GPU and glibc suit it shows only once it is built.",
                "Build it and ask again: env RELEASE.",
            ),
        },
    ),
    Check(
        "glibc",
        ENVIRONMENTS,
        _glibc,
        source="the C library, the wheel's tag",
        limit="what the wheel asks for",
        problems={
            "too old": Problem(
                "The installer takes no wheel, or torch cannot be imported.",
                "Use a newer system or container image: Debian 10, Ubuntu 20.04, RHEL 8 or later have 2.28.",
            ),
        },
    ),
    Check(
        "CUDA",
        ENVIRONMENTS,
        _cuda,
        source="the wheel",
        limit="built for CUDA, where the machine has a GPU",
        problems={
            "none": Problem(
                "This machine has a GPU and this build cannot use it, so a run ends before it begins.",
                f"Name a build with CUDA, {ON_THE_CPU}.",
            ),
        },
    ),
    Check(
        "GPU driver",
        ENVIRONMENTS,
        _driver,
        source="/proc/driver/nvidia/version, the wheel's CUDA, harness/environments/cuda_support.py",
        limit="what that CUDA needs",
        problems={
            "too old": Problem(
                OLD_DRIVER,
                f"Update the driver to {{least}} or later, name a +cuXYZ build for an older CUDA, {ON_THE_CPU}.",
            ),
            "not in the table": Problem(OLD_DRIVER, "Compare them with the table of NVIDIA's CUDA release notes."),
        },
    ),
    Check(
        "GPU architecture",
        ENVIRONMENTS,
        _architecture,
        source="nvidia-smi, the list of architectures in libtorch_python.so",
        limit="kernels for a GPU that is here",
        problems={
            "no GPU": Problem(NO_KERNEL, f"Name a release or a +cuXYZ build with that architecture, {ON_THE_CPU}."),
            "not every GPU": Problem(NO_KERNEL, CHOOSE_A_GPU),
        },
    ),
    Check(
        "index",
        ENVIRONMENTS,
        _index,
        source="uv or pip, 3 s at most",
        limit="the release is there, or the cache has all of it",
        problems={
            "cache only": Problem(
                "uv asks the index even for what its cache has, so a build fails until it answers.",
                "Set UV_OFFLINE=1, and build from the cache.",
            ),
            "away": Problem("{name} is not built yet, and cannot be as long as this is so.", "{hint}"),
            "no installer": Problem(
                "No environment can be built here.",
                "Run pip install uv, or give ready-made interpreters with --env NAME=PYTHON.",
            ),
        },
    ),
    Check(
        "disk",
        RESOURCES,
        _disk,
        source="the folder of the environments",
        limit=(
            f"{ENVIRONMENT_BYTES / GB:.0f} GB for each that is to be built, "
            f"{CPU_ENVIRONMENT_BYTES / GB:g} GB without CUDA, and writable"
        ),
        problems={
            "read-only": Problem(
                "The folder of the environments may not be written.",
                "Free some space, or set TORCHSCRIPT_GATE_ENVS to a folder on a larger disk.",
            ),
            "full": Problem(
                "The folder of the environments is full before all of them are built.",
                "Free some space, or set TORCHSCRIPT_GATE_ENVS to a folder on a larger disk.",
            ),
        },
    ),
    Check(
        "memory",
        RESOURCES,
        _memory,
        source="/proc/meminfo, control groups of both versions",
        limit="0.5 GB for each job and three more",
        problems={
            "little": Problem(
                "{jobs} probes at once need about {needed} GB before any model: the kernel may end workers.",
                "Lower --jobs, stop other programs, or raise the container's limit.",
            ),
        },
        noted=True,
    ),
    Check(
        "C++ compiler",
        RESOURCES,
        _compiler,
        source="g++",
        limit="one for C++20, where --runtime libtorch asks for it",
        problems={
            "none": Problem(
                "Models are brought up by Python threads, which the GIL lets load only one after the other.", "{advice}"
            ),
            "wanted": Problem(
                'The C++ worker was asked for (runtime = "libtorch" or "both"), so a run ends before it begins.',
                "{advice}",
            ),
        },
    ),
    Check(
        "limits",
        RESOURCES,
        _limits,
        source="/proc/self/limits, pids.max of the control group",
        limit="64 threads for each job and three more, 1024 open files",
        problems={
            "low": Problem(
                "Threads or files cannot be made in the midst of a run, which looks like a fault of the release.",
                "Lower --jobs, or raise ulimit -u, ulimit -n and the container's --pids-limit.",
            ),
        },
        noted=True,
    ),
    Check(
        "GPU",
        GPU,
        _gpu,
        source="device files",
        limit="one, where --device cuda asks for it",
        problems={
            "none": Problem(
                "A run ends before it begins.",
                "Run with --device cpu, or give the container its GPU (docker run --gpus all).",
            ),
        },
    ),
    Check(
        "nvidia-smi",
        GPU,
        _nvidia_smi,
        source="nvidia-smi, 5 s at most",
        limit="NVML begins, no GPU is lost or has to be reset, and not all are prohibited",
        problems={
            "trouble": Problem("{so_what}", "{do_this}"),
            "prohibited": Problem(
                "No program may compute on this GPU.", "Run nvidia-smi --compute-mode=DEFAULT on the host."
            ),
        },
    ),
    Check(
        "device links",
        GPU,
        _device_links,
        source="/dev/char, the control group",
        limit="there, where systemd makes the group",
        problems={
            "missing": Problem(
                'A container may lose its GPU in the midst of a run ("Failed to initialize NVML: Unknown Error") '
                "when systemd reloads.",
                LINK_THEM,
            ),
        },
    ),
    Check(
        "profilers",
        GPU,
        _profilers,
        source="the names of running programs: DCGM, Nsight, nvprof",
        limit="none",
        problems={
            "running": Problem(
                "Monitoring of counters slows kernels a little and now and then, and a second profiler gets none.",
                "Run dcgmi profile --pause before the run and --resume after it; end other profilers.",
            ),
        },
        noted=True,
    ),
    Check(
        "cores",
        TIMING,
        _cores,
        source="allowed cores, the CPU quota of the control group",
        limit="a quota of all that are allowed",
        problems={
            "quota": Problem(
                "The kernel stops all threads together once the quota is used up, which looks like slowness or a hang.",
                "Raise the quota, give whole cores (docker run --cpuset-cpus), or run with --jobs {jobs}.",
            ),
        },
        noted=True,
    ),
    Check(
        "steal time",
        TIMING,
        _steal_time,
        source="/proc/stat, twice within 0.2 s",
        limit="5 % of the cores' time",
        problems={
            "much": Problem(
                "The hypervisor gives these cores to others: intervals get wide and latency stays undecided.",
                "Use a machine with cores of its own, or --latency thorough.",
            ),
        },
        noted=True,
    ),
)


def examined(facts: Facts) -> tuple[MachineCheck, ...]:
    of_environments = [check for check in CHECKS if check.area == ENVIRONMENTS]
    of_machine = [check for check in CHECKS if check.area != ENVIRONMENTS]
    answers = [_answer(check, facts, item, item.name) for item in facts.candidates for check in of_environments]
    answers += [_answer(check, facts, facts.host) for check in of_machine]
    return tuple(answer for answer in answers if answer is not None)


def run_notes(facts: Facts) -> tuple[str, ...]:
    """Return what is wrong with this machine for the notes of a run: of what can be read without waiting."""
    noted = [check for check in CHECKS if check.noted and (check.area != GPU or facts.uses_gpu)]
    answers = [_answer(check, facts, facts.host) for check in noted]
    return tuple(
        f"{answer.name}: {answer.read}. {answer.so_what} {answer.do_this}"
        for answer in answers
        if answer is not None and answer.status in (CheckStatus.WARN, CheckStatus.FAIL)
    )


def _answer(check: Check, facts: Facts, subject: object, about: str = "") -> MachineCheck | None:
    """Return the answer of one check about an environment or the machine; None where its question does not come up."""
    reading = check.read(facts, subject)
    if reading is None:
        return None
    answer = MachineCheck(name=check.name, area=check.area, read=reading.shown, about=about)
    if not reading.problem:
        return answer
    problem = check.problems[reading.problem]
    return replace(
        answer,
        status=reading.status,
        so_what=problem.so_what.format_map(reading.words),
        do_this=problem.do_this.format_map(reading.words),
        blocks=reading.blocks,
    )
