"""Opinions on the cores: what would make times untrue here. Pure."""

from collections.abc import Iterator

from harness.domain.machine import CheckStatus, Cores, MachineCheck
from harness.latency.machine import STOLEN_LIMIT

AREA = "timing"
# Two readings 0.2 s apart count ticks of 10 ms: a look, not a measurement. The benchmark measures for itself.
BUSY_LIMIT = 0.25
STEADY = frozenset({"performance"})


def core_checks(cores: Cores) -> Iterator[MachineCheck]:
    """Yield what is to be said of the cores; what was not looked at is left out."""
    yield _quota(cores)
    if cores.stolen is not None:
        yield _stolen(cores.stolen)
    if cores.busy is not None:
        yield _busy(cores.busy)
    yield _governor(cores)
    if cores.turbo is not None:
        words = "on: clocks follow load and heat" if cores.turbo else "off"
        yield MachineCheck(
            name="turbo", area=AREA, read=f"{words}; the benchmark alternates, so both releases see the same"
        )
    if cores.threads_per_core is not None:
        several = cores.threads_per_core > 1
        words = f"{cores.threads_per_core} threads per core" if several else "one thread per core"
        yield MachineCheck(
            name="SMT", area=AREA, read=f"{words}{'; benchmarks take one thread of each core first' * several}"
        )


def _quota(cores: Cores) -> MachineCheck:
    read = f"{cores.allowed} of {cores.visible} may be used"
    if cores.quota is None or cores.quota >= cores.allowed:
        return MachineCheck(name="cores", area=AREA, read=read)
    return MachineCheck(
        name="cores",
        area=AREA,
        read=f"{read}, with a CPU quota of {cores.quota:g}",
        status=CheckStatus.WARN,
        so_what="The kernel stops all threads together once the quota is used up, which looks like slowness or a hang.",
        do_this=f"Raise the quota, give whole cores (docker run --cpuset-cpus), or run with --jobs "
        f"{max(1, int(cores.quota))}.",
    )


def _stolen(share: float) -> MachineCheck:
    read = f"{100 * share:.0f} % of the cores' time, in 0.2 s"
    if share <= STOLEN_LIMIT:
        return MachineCheck(name="steal time", area=AREA, read=read)
    return MachineCheck(
        name="steal time",
        area=AREA,
        read=read,
        status=CheckStatus.WARN,
        so_what="The hypervisor gives these cores to others: intervals get wide and latency stays undecided.",
        do_this="Use a machine with cores of its own, or --latency thorough.",
    )


def _busy(share: float) -> MachineCheck:
    read = f"{100 * share:.0f} % of the cores' time, in 0.2 s"
    if share <= BUSY_LIMIT:
        return MachineCheck(name="other load", area=AREA, read=read)
    return MachineCheck(
        name="other load",
        area=AREA,
        read=read,
        status=CheckStatus.WARN,
        so_what="Other programs run on these cores: times are noisy, and a deadline may end what only waited.",
        do_this="Wait for them, or leave latency out with --latency off.",
    )


def _governor(cores: Cores) -> MachineCheck:
    if not cores.governors:
        return MachineCheck(
            name="CPU governor",
            area=AREA,
            read="not shown, as in most virtual machines",
            status=CheckStatus.UNKNOWN,
            so_what="Changes of the clock cannot be seen from here; "
            "the benchmark alternates, so both releases get them.",
            do_this="Nothing; on a machine of your own, load its cpufreq driver.",
        )
    read = ", ".join(cores.governors)
    if set(cores.governors) <= STEADY:
        return MachineCheck(name="CPU governor", area=AREA, read=read)
    return MachineCheck(
        name="CPU governor",
        area=AREA,
        read=read,
        status=CheckStatus.WARN,
        so_what="The clock rises only while a block runs, so short blocks are timed at a clock of their own.",
        do_this="Run cpupower frequency-set -g performance on the host for the time of the run.",
    )
