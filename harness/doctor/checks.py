"""The doctor's checks, as a table; all of them from facts; its exit code; and what of it a run's report tells. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from harness.doctor import readings
from harness.doctor.cuda_support import LINK_THEM
from harness.doctor.readings import Facts, Reading
from harness.domain.machine import Candidate, CheckStatus, Checkup, Disk, Host, MachineCheck, Tools
from harness.errors import ExitCode

ON_THE_CPU = "or run with --device cpu"


class Problem(NamedTuple):
    """What a reading does to a run, and what to do about it; words in braces are the reading's."""

    so_what: str
    do_this: str


Readings = Mapping[str, Callable[[Facts, Any], Reading | None]]
NO_KERNEL = 'On {cards} every call would end with "no kernel image is available".'
CHOOSE_A_GPU = "Choose a GPU with CUDA_VISIBLE_DEVICES that the wheel has kernels for."
OLD_DRIVER = "torch sees no GPU with an older driver, so a run ends before it begins."
# The problems of each check, as its reading names them.
PROBLEMS = {
    "Python: missing": Problem(
        "{name} cannot be provisioned here.",
        "{hint}",
    ),
    "Python: unsuited": Problem(
        "Only an index with wheels of your own can have one for this Python.",
        "Name another Python in [tool.compat.environments], or none.",
    ),
    "wheel: unknown": Problem(
        "Whether the driver, the GPU and glibc suit it shows only once it is built.",
        "Build it and ask again: python -m harness env RELEASE.",
    ),
    "glibc: too old": Problem(
        "The installer takes no wheel, or torch cannot be imported.",
        "Use a newer system or container image: Debian 10, Ubuntu 20.04, RHEL 8 or later have 2.28.",
    ),
    "CUDA: none": Problem(
        "This machine has a GPU and this build cannot use it, so a run ends before it begins.",
        f"Name a build with CUDA, {ON_THE_CPU}.",
    ),
    "GPU driver: too old": Problem(
        OLD_DRIVER,
        f"Update the driver to {{least}} or later, name a +cuXYZ build for an older CUDA, {ON_THE_CPU}.",
    ),
    "GPU driver: not in the table": Problem(
        OLD_DRIVER,
        "Compare them with the table of NVIDIA's CUDA release notes.",
    ),
    "GPU architecture: no GPU": Problem(
        NO_KERNEL,
        f"Name a release or a +cuXYZ build with that architecture, {ON_THE_CPU}.",
    ),
    "GPU architecture: not every GPU": Problem(
        NO_KERNEL,
        CHOOSE_A_GPU,
    ),
    "index: cache only": Problem(
        "uv asks the index even for what its cache has, so a build fails until it answers.",
        "Set UV_OFFLINE=1, and build from the cache.",
    ),
    "index: away": Problem(
        "{name} is not built yet, and cannot be as long as this is so.",
        "{hint}",
    ),
    "disk: read-only": Problem(
        "The folder of the environments may not be written.",
        "Free some space, or set TORCHSCRIPT_GATE_ENVS to a folder on a larger disk.",
    ),
    "disk: full": Problem(
        "The folder of the environments is full before all of them are built.",
        "Free some space, or set TORCHSCRIPT_GATE_ENVS to a folder on a larger disk.",
    ),
    "uv's cache: copies": Problem(
        "Every environment is copied out of the cache: 5 GB more on disk each, and minutes instead of seconds.",
        "Set UV_CACHE_DIR or TORCHSCRIPT_GATE_ENVS so that both are on one filesystem.",
    ),
    "memory: little": Problem(
        "{jobs} probes at once need about {needed} GB before any model: the kernel may end workers.",
        "Lower --jobs, stop other programs, or raise the container's limit.",
    ),
    "shared memory: none": Problem(
        "Models and libraries that pass tensors between processes fail.",
        "Mount a tmpfs there, or start the container with --shm-size=1g.",
    ),
    "shared memory: little": Problem(
        "Models and libraries that pass tensors between processes die there with a bus error.",
        "Start the container with --shm-size=1g or --ipc=host.",
    ),
    "installer: slow": Problem(
        "pip takes minutes for an environment where uv takes 20 s, and links nothing from its cache.",
        "Run pip install uv.",
    ),
    "installer: none": Problem(
        "No environment can be built here.",
        "Run pip install uv, or give ready-made interpreters with --env NAME=PYTHON.",
    ),
    "C++ compiler: none": Problem(
        "Models are brought up by Python threads, which the GIL lets load only one after the other.",
        "{cure}",
    ),
    "C++ compiler: wanted": Problem(
        'The C++ worker was asked for (runtime = "libtorch"), so a run ends before it begins.',
        "{cure}",
    ),
    "limits: low": Problem(
        "Threads or files cannot be made in the midst of a run, which looks like a fault of the release.",
        "Lower --jobs, or raise ulimit -u, ulimit -n and the container's --pids-limit.",
    ),
    "GPU: none": Problem(
        "A run ends before it begins.",
        "Run with --device cpu, or give the container its GPU (docker run --gpus all).",
    ),
    "nvidia-smi: trouble": Problem(
        "{so_what}",
        "{do_this}",
    ),
    "compute mode: prohibited": Problem(
        "No program may compute on this GPU.",
        "Run nvidia-smi --compute-mode=DEFAULT on the host.",
    ),
    "compute mode: exclusive": Problem(
        "One process at a time: the benchmark keeps two alive, and the second is refused.",
        "Run nvidia-smi --compute-mode=DEFAULT on the host for the time of the run.",
    ),
    "tenants: others": Problem(
        "They take turns with the benchmark on the same units, so times are noisy, and memory may run out.",
        "Choose another GPU with CUDA_VISIBLE_DEVICES, or wait for them.",
    ),
    "clocks: held down": Problem(
        "The clock is held down before the run has begun, and moves while it is timed.",
        "See to cooling and power, then lock it with nvidia-smi --lock-gpu-clocks.",
    ),
    "device links: missing": Problem(
        'A container may lose its GPU in the midst of a run ("Failed to initialize NVML: Unknown Error") '
        "when systemd reloads.",
        LINK_THEM,
    ),
    "profilers: running": Problem(
        "Monitoring of counters slows kernels a little and now and then, and a second profiler gets none.",
        "Run dcgmi profile --pause before the run and --resume after it; end other profilers.",
    ),
    "cores: quota": Problem(
        "The kernel stops all threads together once the quota is used up, which looks like slowness or a hang.",
        "Raise the quota, give whole cores (docker run --cpuset-cpus), or run with --jobs {jobs}.",
    ),
    "steal time: much": Problem(
        "The hypervisor gives these cores to others: intervals get wide and latency stays undecided.",
        "Use a machine with cores of its own, or --latency thorough.",
    ),
    "other load: much": Problem(
        "Other programs run on these cores: times are noisy, and a deadline may end what only waited.",
        "Wait for them, or leave latency out with --latency off.",
    ),
    "CPU governor: unknown": Problem(
        "Changes of the clock cannot be seen from here; the benchmark alternates, so both releases get them.",
        "Nothing; on a machine of your own, load its cpufreq driver.",
    ),
    "CPU governor: rising": Problem(
        "The clock rises only while a block runs, so short blocks are timed at a clock of their own.",
        "Run cpupower frequency-set -g performance on the host for the time of the run.",
    ),
    "core dumps: piped": Problem(
        "A crashed worker lives on until its gigabytes are piped away: a crash may look like a hang.",
        "On the host, for the time of the run: sysctl -w kernel.core_pattern=core.",
    ),
    "ptrace: forbidden": Problem(
        "No debugger may look into a hung worker: its own stacks are all that a report will have.",
        "On the host: sysctl -w kernel.yama.ptrace_scope=1.",
    ),
    "ptrace: filtered": Problem(
        "The container's filter may forbid it (Docker's before Linux 4.8): hangs then lack a debugger.",
        "Start the container with --cap-add SYS_PTRACE where hangs lack C++ names.",
    ),
    "debuggers: none": Problem(
        "A hang is shown by the process's own stacks only, with few names inside C++.",
        "Run pip install pystack py-spy, or apt-get install elfutils.",
    ),
}
# Each check by the reading that answers it, in the order in which they are shown.
ENVIRONMENT: Readings = {
    "Python": readings.python,
    "wheel": readings.wheel,
    "glibc": readings.glibc,
    "CUDA": readings.cuda,
    "GPU driver": readings.driver,
    "GPU architecture": readings.architecture,
    "index": readings.index,
}
RESOURCES: Readings = {
    "disk": readings.disk,
    "uv's cache": readings.cache,
    "memory": readings.memory,
    "shared memory": readings.shared_memory,
    "installer": readings.installer,
    "C++ compiler": readings.compiler,
    "limits": readings.limits,
}
GPU: Readings = {
    "GPU": readings.gpu,
    "nvidia-smi": readings.nvidia_smi,
}
CARD: Readings = {
    "compute mode": readings.compute_mode,
    "tenants": readings.tenants,
    "clocks": readings.clocks,
}
GPU_AND_OTHERS: Readings = {
    "device links": readings.device_links,
    "profilers": readings.profilers,
}
TIMING: Readings = {
    "cores": readings.cores,
    "steal time": readings.steal_time,
    "other load": readings.other_load,
    "CPU governor": readings.governor,
    "turbo": readings.turbo,
    "SMT": readings.smt,
}
EVIDENCE: Readings = {
    "core dumps": readings.core_dumps,
    "ptrace": readings.ptrace,
    "debuggers": readings.debuggers,
    "container": readings.container,
}
# What a run's notes tell, in their order: what can be read without waiting, but not what lacks for stacks: a report
# without them says so itself.
NOTED = ("memory", "shared memory", "limits", "cores", "steal time", "other load", "CPU governor", "core dumps")


def examined(
    candidates: Sequence[Candidate], host: Host, disk: Disk, tools: Tools, *, device: str, jobs: int, runtime: str
) -> tuple[MachineCheck, ...]:
    """Return every check, in the order in which they are shown.

    Args:
        device, jobs, runtime: as in ``Settings``.
    """
    facts = Facts(
        host=host, device=device, jobs=jobs, candidates=tuple(candidates), disk=disk, tools=tools, runtime=runtime
    )
    cards = host.gpus.cards if host.gpus.nodes and not host.gpus.trouble else ()
    return (
        *(check for one in candidates for check in _answers("environments", ENVIRONMENT, facts, one, one.name)),
        *_answers("resources", RESOURCES, facts, host),
        *_answers("GPU", GPU, facts, host),
        *(check for card in cards for check in _answers("GPU", CARD, facts, card, card.machine_state.name)),
        *_answers("GPU", GPU_AND_OTHERS, facts, host),
        *_answers("timing", TIMING, facts, host),
        *_answers("evidence", EVIDENCE, facts, host),
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
    seen = host if times else replace(host, cores=replace(host.cores, governors=()))
    facts = Facts(host=seen, device=device, jobs=jobs)
    readers = {**RESOURCES, **TIMING, **EVIDENCE, **GPU_AND_OTHERS}
    noted = {name: readers[name] for name in (*NOTED, *(["profilers"] if facts.uses_gpu else []))}
    wrong = (one for one in _answers("", noted, facts, seen) if one.status in (CheckStatus.WARN, CheckStatus.FAIL))
    return tuple(f"{one.name}: {one.read}. {one.so_what} {one.do_this}" for one in wrong)


def _answers(area: str, checks: Readings, facts: Facts, subject: object, about: str = "") -> Iterator[MachineCheck]:
    for name, read in checks.items():
        found = read(facts, subject)
        if found is None:
            continue
        answer = MachineCheck(name=name, area=area, read=found.shown, about=about)
        if found.problem:
            problem = PROBLEMS[f"{name}: {found.problem}"]
            answer = replace(
                answer,
                status=found.status,
                so_what=problem.so_what.format_map(found.words),
                do_this=problem.do_this.format_map(found.words),
                blocks=found.blocks,
            )
        yield answer
