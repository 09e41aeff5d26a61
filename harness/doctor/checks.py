"""The doctor's checks, as a table: what is read for each, which problem that is, and what to do about it. Pure.

A reader gets the facts and what it looks at (an environment, a GPU, or the machine), and returns nothing where its
question does not come up there.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from harness.doctor.cuda_support import LINK_THEM, gpu_trouble, is_older, minimal_driver, runs_on
from harness.domain.environment import ENVIRONMENT_BYTES
from harness.domain.machine import Candidate, CheckStatus, Checkup, Disk, GpuCard, Host, MachineCheck, Tools
from harness.domain.text import counted
from harness.errors import ExitCode
from harness.latency.machine import HARMLESS, STOLEN_LIMIT

GB = 1e9
# A worker with torch and a small model held 0.4 GB; two zygotes and the controller come on top.
JOB_BYTES = 0.5e9
# Tens of threads per worker: its pools, its callers, the libraries that it loads. A rough bound, not a measurement.
JOB_TASKS = 64
OPEN_FILES = 1024
# What Docker gives by default.
SHARED_BYTES = 64 << 20
# Two readings 0.2 s apart count ticks of 10 ms: a look, not a measurement. The benchmark measures for itself.
BUSY_LIMIT = 0.25
STEADY = frozenset({"performance"})
# A process that is listed takes memory; what the driver itself holds is below that.
TENANT_MIB = 1024
PROHIBITED = "Prohibited"
# How runtimes name groups: systemd's end in .scope or lie in a .slice.
SYSTEMD = re.compile(r"\.(scope|slice)\b")
FILTER = 2  # of seccomp


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that was looked up for a checkup.

    Attributes:
        device, jobs, runtime: as in ``Settings``.
    """

    host: Host
    device: str
    jobs: int
    candidates: tuple[Candidate, ...] = ()
    disk: Disk = field(default_factory=lambda: Disk(folder=""))
    tools: Tools = field(default_factory=Tools)
    runtime: str = "auto"

    @property
    def uses_gpu(self) -> bool:
        """Whether a run here would use the GPU."""
        return bool(self.host.gpus.nodes) and self.device != "cpu"

    @property
    def names(self) -> tuple[str, ...]:
        """Of all environments."""
        return tuple(one.name for one in self.candidates)

    @property
    def wanting_gpu(self) -> tuple[str, ...]:
        """Environments that a GPU that cannot be used stops: all, or none."""
        return self.names if self.device != "cpu" else ()

    @property
    def to_build(self) -> tuple[str, ...]:
        """Environments that are still to be built."""
        return tuple(one.name for one in self.candidates if not one.built and not one.trouble)


class Reading(NamedTuple):
    """What was read.

    Attributes:
        problem: one of those of the check; empty: all is well.
        blocks: the environments that cannot be provisioned because of it.
        words: what the sentences of the problem name.
        is_certain: whether the problem is there, not merely possible.
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


def _python(_facts: Facts, one: Candidate) -> Reading:
    if one.trouble:
        return Reading(one.trouble, "missing", (one.name,), {"name": one.name, "hint": _sentence(one.hint)})
    if one.unsuited:
        return Reading(f"{one.python}, as configured; wheels for {one.pythons}", "unsuited")
    suits = f"; wheels for {one.pythons}" if one.pythons else ""
    built = "; built already" if one.built and one.pythons else ""
    return Reading(f"{one.python}{suits}{built}")


def _wheel(_facts: Facts, one: Candidate) -> Reading | None:
    if one.trouble or one.wheel is not None:
        return None
    return Reading("this gate does not know what its wheel asks for", "unknown", is_certain=False)


def _glibc(facts: Facts, one: Candidate) -> Reading | None:
    if one.trouble or one.wheel is None:
        return None
    here, needed = facts.host.glibc, one.wheel.glibc
    if not here:
        return Reading("this machine's C library is not glibc", "too old", (one.name,))
    if needed is None:
        return Reading(f"{here} here; the wheel does not say")
    older = is_older(here, needed)
    shown = f"{here} here, {needed} needed"
    if older is False:
        return Reading(shown)
    return Reading(shown, "too old", (one.name,) if older else (), is_certain=bool(older))


def _cuda(facts: Facts, one: Candidate) -> Reading | None:
    if one.trouble or one.wheel is None or one.wheel.cuda is not None or not facts.uses_gpu:
        return None
    return Reading(f"a build without CUDA ({one.wheel.source})", "none", (one.name,))


def _driver(facts: Facts, one: Candidate) -> Reading | None:
    if one.trouble or one.wheel is None or one.wheel.cuda is None or not facts.uses_gpu:
        return None
    here, least = facts.host.gpus.driver, minimal_driver(one.wheel.cuda)
    shown = f"{here or 'unknown'} here; CUDA {one.wheel.cuda} ({one.wheel.source}) needs {least or '?'}"
    older = is_older(here, least or "")
    if older is False:
        return Reading(shown)
    problem = "too old" if least else "not in the table"
    return Reading(shown, problem, (one.name,) if older else (), {"least": least}, is_certain=bool(older))


def _architecture(facts: Facts, one: Candidate) -> Reading | None:
    cards, built = facts.host.gpus.cards, one.wheel
    if one.trouble or built is None or built.cuda is None or not facts.uses_gpu or not cards:
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
        return Reading(shown, "no GPU", (one.name,), words)
    return Reading(shown, "not every GPU", words=words, is_certain=bool(missing))


def _index(facts: Facts, one: Candidate) -> Reading | None:
    if one.trouble or one.index is None or not facts.tools.installer:
        return None
    answer = one.index
    if answer.found:
        return Reading("; ".join(["the index has it"] * answer.reached + ["the cache has all of it"] * answer.cached))
    if answer.found is None and answer.cached:
        return Reading(f"{answer.said}; the cache has all of it", "cache only")
    hint = answer.hint or "check the network, proxy and index arguments, or give --env NAME=PYTHON"
    silent = answer.found is None and not answer.hint
    words = {"name": one.name, "hint": _sentence(hint)}
    return Reading(answer.said, "away", () if silent else (one.name,), words)


def _disk(facts: Facts, _host: Host) -> Reading:
    place, missing = facts.disk, facts.to_build
    free = "free space unknown" if place.free is None else f"{place.free / GB:.0f} GB free"
    if not missing:
        return Reading(f"{free} in {place.folder}; nothing to build")
    needed = len(missing) * ENVIRONMENT_BYTES
    shown = f"{free} in {place.folder}; {len(missing)} to build, {needed / GB:.0f} GB"
    if not place.writable:
        return Reading(shown, "read-only", missing)
    if place.free is not None and place.free < needed:
        return Reading(shown, "full", missing[int(place.free // ENVIRONMENT_BYTES) :])
    return Reading(shown)


def _cache(facts: Facts, _host: Host) -> Reading | None:
    place = facts.disk
    if not facts.to_build or not place.cache or place.same_filesystem is None:
        return None
    if place.same_filesystem:
        return Reading(f"{place.cache}, on the same filesystem: linked, not copied")
    return Reading(f"{place.cache} is on another filesystem than {place.folder}", "copies")


def _memory(facts: Facts, host: Host) -> Reading | None:
    usable, available = host.memory.usable, host.memory.available
    if usable is None:
        return None
    needed = (facts.jobs + 3) * JOB_BYTES
    left = usable if available is None else min(available, usable)
    said = "" if available is None else f", {left / GB:.1f} GB of it available"
    words = {"jobs": facts.jobs, "needed": f"{needed / GB:.1f}"}
    problem = "" if left >= needed else "little"
    return Reading(f"{usable / GB:.1f} GB{said}, for {facts.jobs} jobs", problem, words=words)


def _shared_memory(_facts: Facts, host: Host) -> Reading:
    shared = host.memory.shared
    if shared is None:
        return Reading("there is no /dev/shm", "none")
    if shared <= SHARED_BYTES:
        return Reading(f"{shared / GB:.2f} GB in /dev/shm", "little")
    return Reading(f"{shared / GB:.1f} GB in /dev/shm")


def _installer(facts: Facts, _host: Host) -> Reading:
    found, missing = facts.tools.installer, facts.to_build
    if not found:
        return Reading("neither uv nor pip", "none", missing)
    if found.startswith("uv") or not missing:
        return Reading(found)
    return Reading(f"{found}, no uv", "slow")


def _compiler(facts: Facts, _host: Host) -> Reading:
    if facts.tools.compiler:
        return Reading(facts.tools.compiler)
    why, _, cure = facts.tools.no_compiler.rpartition(": ")
    words = {"cure": f"{cure[:1].upper()}{cure[1:]}."}
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
    text = host.gpus.trouble
    if not host.gpus.nodes or not text:
        return None
    known = gpu_trouble(text)
    so_what, do_this = known or ("The GPU's clocks and tenants cannot be seen.", "Run nvidia-smi.")
    return Reading(text, "trouble", facts.wanting_gpu if known else (), {"so_what": so_what, "do_this": do_this})


def _compute_mode(facts: Facts, card: GpuCard) -> Reading | None:
    if card.compute_mode == PROHIBITED:
        every = all(one.compute_mode == PROHIBITED for one in facts.host.gpus.cards)
        return Reading(card.compute_mode, "prohibited", facts.wanting_gpu if every else ())
    return Reading(card.compute_mode, "exclusive") if card.compute_mode.startswith("Exclusive") else None


def _tenants(_facts: Facts, card: GpuCard) -> Reading:
    count, used = card.machine_state.other_processes, card.memory_used_mib or 0
    taken = f", {used} of {card.memory_mib} MiB taken" if card.memory_mib else ""
    mig = ", cut into MIG instances" if card.mig else ""
    shown = f"{counted(count, 'other process', 'other processes')} on it{taken}{mig}"
    return Reading(shown, "others" if count or used > TENANT_MIB else "")


def _clocks(_facts: Facts, card: GpuCard) -> Reading:
    state = card.machine_state
    seen = state.sm_clock_mhz is not None and state.max_sm_clock_mhz is not None
    shown = f"{state.sm_clock_mhz} of {state.max_sm_clock_mhz} MHz" if seen else "clocks not shown"
    heat = f", {state.temperature_c} C" if state.temperature_c is not None else ""
    why = f" ({', '.join(state.throttle_reasons)})" if state.throttle_reasons else ""
    return Reading(f"{shown}{heat}{why}", "held down" if set(state.throttle_reasons) - set(HARMLESS) else "")


def _ecc(_facts: Facts, card: GpuCard) -> Reading | None:
    if card.ecc_errors is None:
        return None
    shown = f"{counted(card.ecc_errors, 'uncorrected error')} since the driver was loaded"
    return Reading(shown, "uncorrected" if card.ecc_errors else "")


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
    found = host.gpus.profilers
    return Reading(", ".join(found), "running") if found else Reading("none runs here")


def _cores(_facts: Facts, host: Host) -> Reading:
    quota = host.cores.quota
    shown = f"{host.cores.allowed} of {host.cores.visible} may be used"
    if quota is None or quota >= host.cores.allowed:
        return Reading(shown)
    return Reading(f"{shown}, with a CPU quota of {quota:g}", "quota", words={"jobs": max(1, int(quota))})


def _steal_time(_facts: Facts, host: Host) -> Reading | None:
    return _share(host.cores.stolen, STOLEN_LIMIT)


def _other_load(_facts: Facts, host: Host) -> Reading | None:
    return _share(host.cores.busy, BUSY_LIMIT)


def _governor(_facts: Facts, host: Host) -> Reading:
    found = host.cores.governors
    if not found:
        return Reading("not shown, as in most virtual machines", "unknown", is_certain=False)
    return Reading(", ".join(found), "" if set(found) <= STEADY else "rising")


def _turbo(_facts: Facts, host: Host) -> Reading | None:
    if host.cores.turbo is None:
        return None
    shown = "on: clocks follow load and heat" if host.cores.turbo else "off"
    return Reading(f"{shown}; the benchmark alternates, so both releases see the same")


def _smt(_facts: Facts, host: Host) -> Reading | None:
    threads = host.cores.threads_per_core
    if threads is None:
        return None
    if threads == 1:
        return Reading("one thread per core")
    return Reading(f"{threads} threads per core; benchmarks take one thread of each core first")


def _core_dumps(_facts: Facts, host: Host) -> Reading | None:
    pattern, limit = host.forensics.core_pattern, host.limits.core_bytes
    if not pattern:
        return None
    if not pattern.startswith("|"):
        ulimit = "unlimited" if limit is None else f"{limit}"
        return Reading(f"to files ({pattern}), ulimit -c {ulimit}; workers write none")
    # A limit of 0 holds for files only: the kernel ignores it for pipes (fs/coredump.c; core(5)).
    program = pattern[1:].split(maxsplit=1)[0].rpartition("/")[2] if pattern[1:].split() else pattern
    return Reading(f"piped to {program}, which no limit of a worker prevents", "piped")


def _ptrace(_facts: Facts, host: Host) -> Reading:
    scope, may = host.forensics.ptrace_scope, host.forensics.may_ptrace
    filtered = host.forensics.seccomp == FILTER
    shown = "no yama" if scope is None else f"yama scope {scope}"
    shown += {None: "", True: ", CAP_SYS_PTRACE", False: ", no CAP_SYS_PTRACE"}[may]
    shown += ", seccomp filter" * filtered
    # Workers allow it themselves (PR_SET_PTRACER) where yama's scope is 1; from 2 on only the capability counts.
    if scope == 3 or (scope == 2 and not may):
        return Reading(shown, "forbidden")
    return Reading(shown, "filtered" if host.container.kind and filtered and not may else "", is_certain=False)


def _debuggers(_facts: Facts, host: Host) -> Reading:
    found = host.forensics.debuggers
    return Reading(", ".join(found)) if found else Reading("none of pystack, py-spy, eu-stack, gdb", "none")


def _container(_facts: Facts, host: Host) -> Reading:
    version = host.container.cgroup_version
    groups = f"cgroup v{version}" if version else "no control groups seen"
    return Reading(f"{host.container.kind or 'none seen'}, {groups}")


def _share(share: float | None, limit: float) -> Reading | None:
    if share is None:
        return None
    return Reading(f"{100 * share:.0f} % of the cores' time, in 0.2 s", "much" if share > limit else "")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else "See the message."


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
        "Build it and ask again: env RELEASE.",
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
        'The C++ worker was asked for (runtime = "libtorch" or "both"), so a run ends before it begins.',
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
    "ECC: uncorrected": Problem(
        "Memory of this GPU has lost values: the driver ends what reads them, and a reset has to replace those rows.",
        "Reset it (nvidia-smi --gpu-reset), or choose another GPU with CUDA_VISIBLE_DEVICES.",
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
    "Python": _python,
    "wheel": _wheel,
    "glibc": _glibc,
    "CUDA": _cuda,
    "GPU driver": _driver,
    "GPU architecture": _architecture,
    "index": _index,
}
RESOURCES: Readings = {
    "disk": _disk,
    "uv's cache": _cache,
    "memory": _memory,
    "shared memory": _shared_memory,
    "installer": _installer,
    "C++ compiler": _compiler,
    "limits": _limits,
}
GPU: Readings = {
    "GPU": _gpu,
    "nvidia-smi": _nvidia_smi,
}
CARD: Readings = {
    "compute mode": _compute_mode,
    "tenants": _tenants,
    "clocks": _clocks,
    "ECC": _ecc,
}
GPU_AND_OTHERS: Readings = {
    "device links": _device_links,
    "profilers": _profilers,
}
TIMING: Readings = {
    "cores": _cores,
    "steal time": _steal_time,
    "other load": _other_load,
    "CPU governor": _governor,
    "turbo": _turbo,
    "SMT": _smt,
}
EVIDENCE: Readings = {
    "core dumps": _core_dumps,
    "ptrace": _ptrace,
    "debuggers": _debuggers,
    "container": _container,
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
