"""What the doctor reads for each of its checks, and which of the check's problems that is. Pure.

A reader gets the facts and what it looks at (an environment, a GPU, or the machine), and returns nothing where its
question does not come up there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.doctor.cuda_support import gpu_trouble, is_older, minimal_driver, runs_on
from harness.domain.machine import Candidate, CheckStatus, Disk, GpuCard, Host, Tools
from harness.domain.text import counted
from harness.latency.machine import HARMLESS, STOLEN_LIMIT

GB = 1e9
# Environments of 2.1 to 2.15 were 4.6 to 5.3 GB unpacked; the download of one is about half of that.
UNPACKED_BYTES = 5.3e9
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


def python(_facts: Facts, one: Candidate) -> Reading:
    """Return which Python the environment has or would get."""
    if one.trouble:
        return Reading(one.trouble, "missing", (one.name,), {"name": one.name, "hint": _sentence(one.hint)})
    if one.unsuited:
        return Reading(f"{one.python}, as configured; wheels for {one.pythons}", "unsuited")
    suits = f"; wheels for {one.pythons}" if one.pythons else ""
    built = "; built already" if one.built and one.pythons else ""
    return Reading(f"{one.python}{suits}{built}")


def wheel(_facts: Facts, one: Candidate) -> Reading | None:
    """Return whether it is known what the wheel asks for."""
    if one.trouble or one.wheel is not None:
        return None
    return Reading("this gate does not know what its wheel asks for", "unknown", is_certain=False)


def glibc(facts: Facts, one: Candidate) -> Reading | None:
    """Return whether the C library is new enough for the wheel."""
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


def cuda(facts: Facts, one: Candidate) -> Reading | None:
    """Return whether a build without CUDA meets a GPU that it should use."""
    if one.trouble or one.wheel is None or one.wheel.cuda is not None or not facts.uses_gpu:
        return None
    return Reading(f"a build without CUDA ({one.wheel.source})", "none", (one.name,))


def driver(facts: Facts, one: Candidate) -> Reading | None:
    """Return whether the driver is new enough for the wheel's CUDA."""
    if one.trouble or one.wheel is None or one.wheel.cuda is None or not facts.uses_gpu:
        return None
    here, least = facts.host.gpus.driver, minimal_driver(one.wheel.cuda)
    shown = f"{here or 'unknown'} here; CUDA {one.wheel.cuda} ({one.wheel.source}) needs {least or '?'}"
    older = is_older(here, least or "")
    if older is False:
        return Reading(shown)
    problem = "too old" if least else "not in the table"
    return Reading(shown, problem, (one.name,) if older else (), {"least": least}, is_certain=bool(older))


def architecture(facts: Facts, one: Candidate) -> Reading | None:
    """Return whether the wheel has kernels for the GPUs."""
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


def index(facts: Facts, one: Candidate) -> Reading | None:
    """Return whether what is to be built can be had."""
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


def disk(facts: Facts, _host: Host) -> Reading:
    """Return whether what is to be built fits on the disk."""
    place, missing = facts.disk, facts.to_build
    free = "free space unknown" if place.free is None else f"{place.free / GB:.0f} GB free"
    if not missing:
        return Reading(f"{free} in {place.folder}; nothing to build")
    needed = len(missing) * UNPACKED_BYTES
    shown = f"{free} in {place.folder}; {len(missing)} to build, {needed / GB:.0f} GB"
    if not place.writable:
        return Reading(shown, "read-only", missing)
    if place.free is not None and place.free < needed:
        return Reading(shown, "full", missing[int(place.free // UNPACKED_BYTES) :])
    return Reading(shown)


def cache(facts: Facts, _host: Host) -> Reading | None:
    """Return whether environments are linked out of uv's cache."""
    place = facts.disk
    if not facts.to_build or not place.cache or place.same_filesystem is None:
        return None
    if place.same_filesystem:
        return Reading(f"{place.cache}, on the same filesystem: linked, not copied")
    return Reading(f"{place.cache} is on another filesystem than {place.folder}", "copies")


def memory(facts: Facts, host: Host) -> Reading | None:
    """Return whether memory is enough for the jobs."""
    usable, available = host.memory.usable, host.memory.available
    if usable is None:
        return None
    needed = (facts.jobs + 3) * JOB_BYTES
    left = usable if available is None else min(available, usable)
    said = "" if available is None else f", {left / GB:.1f} GB of it available"
    words = {"jobs": facts.jobs, "needed": f"{needed / GB:.1f}"}
    problem = "" if left >= needed else "little"
    return Reading(f"{usable / GB:.1f} GB{said}, for {facts.jobs} jobs", problem, words=words)


def shared_memory(_facts: Facts, host: Host) -> Reading:
    """Return whether tensors can be passed between processes."""
    shared = host.memory.shared
    if shared is None:
        return Reading("there is no /dev/shm", "none")
    if shared <= SHARED_BYTES:
        return Reading(f"{shared / GB:.2f} GB in /dev/shm", "little")
    return Reading(f"{shared / GB:.1f} GB in /dev/shm")


def installer(facts: Facts, _host: Host) -> Reading:
    """Return what builds environments."""
    found, missing = facts.tools.installer, facts.to_build
    if not found:
        return Reading("neither uv nor pip", "none", missing)
    if found.startswith("uv") or not missing:
        return Reading(found)
    return Reading(f"{found}, no uv", "slow")


def compiler(facts: Facts, _host: Host) -> Reading:
    """Return whether the C++ worker can be built."""
    if facts.tools.compiler:
        return Reading(facts.tools.compiler)
    why, _, cure = facts.tools.no_compiler.rpartition(": ")
    words = {"cure": f"{cure[:1].upper()}{cure[1:]}."}
    if facts.runtime == "libtorch" and facts.names:
        return Reading(why, "wanted", facts.names, words)
    return Reading(why, "none", words=words)


def limits(facts: Facts, host: Host) -> Reading:
    """Return whether processes and files are enough for the jobs."""
    tasks, files = host.limits.tasks, host.limits.open_files
    needed = (facts.jobs + 3) * JOB_TASKS
    shown = "no limit on processes" if tasks is None else f"{tasks} processes and threads"
    shown += ", no limit on files" if files is None else f", {files} open files"
    if (tasks is None or tasks >= needed) and (files is None or files >= OPEN_FILES):
        return Reading(shown)
    return Reading(f"{shown}; {facts.jobs} jobs take up to {needed} and {OPEN_FILES}", "low")


def gpu(facts: Facts, host: Host) -> Reading | None:
    """Return whether there is a GPU, where there is none."""
    if host.gpus.nodes:
        return None
    if facts.device != "cuda":
        return Reading("none here; runs take the CPU")
    return Reading('none here, and device is "cuda"', "none", facts.names)


def nvidia_smi(facts: Facts, host: Host) -> Reading | None:
    """Return why the GPU cannot be asked, where it cannot."""
    text = host.gpus.trouble
    if not host.gpus.nodes or not text:
        return None
    known = gpu_trouble(text)
    so_what, do_this = known or ("The GPU's clocks and tenants cannot be seen.", "Run nvidia-smi.")
    return Reading(text, "trouble", facts.wanting_gpu if known else (), {"so_what": so_what, "do_this": do_this})


def compute_mode(facts: Facts, card: GpuCard) -> Reading | None:
    """Return who may compute on a GPU, where not everybody may."""
    if card.compute_mode == PROHIBITED:
        every = all(one.compute_mode == PROHIBITED for one in facts.host.gpus.cards)
        return Reading(card.compute_mode, "prohibited", facts.wanting_gpu if every else ())
    return Reading(card.compute_mode, "exclusive") if card.compute_mode.startswith("Exclusive") else None


def tenants(_facts: Facts, card: GpuCard) -> Reading:
    """Return who else is on a GPU."""
    count, used = card.machine_state.other_processes, card.memory_used_mib or 0
    taken = f", {used} of {card.memory_mib} MiB taken" if card.memory_mib else ""
    mig = ", cut into MIG instances" if card.mig else ""
    shown = f"{counted(count, 'other process', 'other processes')} on it{taken}{mig}"
    return Reading(shown, "others" if count or used > TENANT_MIB else "")


def clocks(_facts: Facts, card: GpuCard) -> Reading:
    """Return what holds the clock of a GPU down."""
    state = card.machine_state
    seen = state.sm_clock_mhz is not None and state.max_sm_clock_mhz is not None
    shown = f"{state.sm_clock_mhz} of {state.max_sm_clock_mhz} MHz" if seen else "clocks not shown"
    heat = f", {state.temperature_c} C" if state.temperature_c is not None else ""
    why = f" ({', '.join(state.throttle_reasons)})" if state.throttle_reasons else ""
    return Reading(f"{shown}{heat}{why}", "held down" if set(state.throttle_reasons) - set(HARMLESS) else "")


def device_links(_facts: Facts, host: Host) -> Reading | None:
    """Return whether containers here may lose their GPU: the links in /dev/char can be seen from the host only."""
    inside, systemd = host.container.kind, bool(SYSTEMD.search(host.container.group))
    if not host.gpus.nodes or (inside and not systemd):
        return None
    if not host.gpus.unlinked:
        return Reading("in /dev/char, as containers under systemd need them")
    where = "this container's group is systemd's" if inside else f"no links for {', '.join(host.gpus.unlinked)}"
    return Reading(where, "missing", is_certain=bool(inside) or systemd)


def profilers(_facts: Facts, host: Host) -> Reading | None:
    """Return which programs read the GPU's counters."""
    if not host.gpus.nodes:
        return None
    found = host.gpus.profilers
    return Reading(", ".join(found), "running") if found else Reading("none runs here")


def cores(_facts: Facts, host: Host) -> Reading:
    """Return how many cores may be used."""
    quota = host.cores.quota
    shown = f"{host.cores.allowed} of {host.cores.visible} may be used"
    if quota is None or quota >= host.cores.allowed:
        return Reading(shown)
    return Reading(f"{shown}, with a CPU quota of {quota:g}", "quota", words={"jobs": max(1, int(quota))})


def steal_time(_facts: Facts, host: Host) -> Reading | None:
    """Return how much the hypervisor takes."""
    return _share(host.cores.stolen, STOLEN_LIMIT)


def other_load(_facts: Facts, host: Host) -> Reading | None:
    """Return how much other programs use."""
    return _share(host.cores.busy, BUSY_LIMIT)


def governor(_facts: Facts, host: Host) -> Reading:
    """Return how the clock of the CPU moves."""
    found = host.cores.governors
    if not found:
        return Reading("not shown, as in most virtual machines", "unknown", is_certain=False)
    return Reading(", ".join(found), "" if set(found) <= STEADY else "rising")


def turbo(_facts: Facts, host: Host) -> Reading | None:
    """Return whether the clock rises above its base."""
    if host.cores.turbo is None:
        return None
    shown = "on: clocks follow load and heat" if host.cores.turbo else "off"
    return Reading(f"{shown}; the benchmark alternates, so both releases see the same")


def smt(_facts: Facts, host: Host) -> Reading | None:
    """Return how many threads share a core."""
    threads = host.cores.threads_per_core
    if threads is None:
        return None
    if threads == 1:
        return Reading("one thread per core")
    return Reading(f"{threads} threads per core; benchmarks take one thread of each core first")


def core_dumps(_facts: Facts, host: Host) -> Reading | None:
    """Return what becomes of the memory of a crashed worker."""
    pattern, limit = host.forensics.core_pattern, host.limits.core_bytes
    if not pattern:
        return None
    if not pattern.startswith("|"):
        ulimit = "unlimited" if limit is None else f"{limit}"
        return Reading(f"to files ({pattern}), ulimit -c {ulimit}; workers write none")
    # A limit of 0 holds for files only: the kernel ignores it for pipes (fs/coredump.c; core(5)).
    program = pattern[1:].split(maxsplit=1)[0].rpartition("/")[2] if pattern[1:].split() else pattern
    return Reading(f"piped to {program}, which no limit of a worker prevents", "piped")


def ptrace(_facts: Facts, host: Host) -> Reading:
    """Return whether a debugger may look into a hung worker."""
    scope, may = host.forensics.ptrace_scope, host.forensics.may_ptrace
    filtered = host.forensics.seccomp == FILTER
    shown = "no yama" if scope is None else f"yama scope {scope}"
    shown += {None: "", True: ", CAP_SYS_PTRACE", False: ", no CAP_SYS_PTRACE"}[may]
    shown += ", seccomp filter" * filtered
    # Workers allow it themselves (PR_SET_PTRACER) where yama's scope is 1; from 2 on only the capability counts.
    if scope == 3 or (scope == 2 and not may):
        return Reading(shown, "forbidden")
    return Reading(shown, "filtered" if host.container.kind and filtered and not may else "", is_certain=False)


def debuggers(_facts: Facts, host: Host) -> Reading:
    """Return which debuggers there are."""
    found = host.forensics.debuggers
    return Reading(", ".join(found)) if found else Reading("none of pystack, py-spy, eu-stack, gdb", "none")


def container(_facts: Facts, host: Host) -> Reading:
    """Return what container this is."""
    version = host.container.cgroup_version
    groups = f"cgroup v{version}" if version else "no control groups seen"
    return Reading(f"{host.container.kind or 'none seen'}, {groups}")


def _share(share: float | None, limit: float) -> Reading | None:
    if share is None:
        return None
    return Reading(f"{100 * share:.0f} % of the cores' time, in 0.2 s", "much" if share > limit else "")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else "See the message."
