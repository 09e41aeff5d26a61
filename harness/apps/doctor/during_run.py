"""Opinions on what happened to the machine while a run went on: the doctor's second look. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from harness.apps.doctor.checks import GB
from harness.apps.doctor.facts import CounterReading
from harness.checks.latency.machine import HARMLESS, OTHERS_LIMIT, STOLEN_LIMIT
from harness.core.machine import ENDS, ERRORS, TIMES, GpuCard, Gpus, MachineDuringRun, MachineEvent
from harness.core.text import counted
from harness.environments.cuda_support import gpu_trouble

# A process that is listed takes memory; what the driver itself holds is below that.
TENANT_MIB = 1024
# Ticks of 10 ms: below a second of cores' time a share is a guess.
LEAST_S = 1.0
STOPPED_SHARE, STOPPED_S = 0.01, 0.1
SLEPT_S = 1.0
SWAPPED_BYTES = 64 << 20
LOW_BYTES = 1_000_000_000
LEFT_BEHIND_BYTES = 16 << 20
# What a machine in trouble looks like from inside a model: it ends or hangs, or raises; never another answer.
Seen = tuple[str, str]  # a key of CONSEQUENCES, and what was read


class Consequence(NamedTuple):
    """What an event means for the run, what to do about it, the verdicts that it touches, and its name if not its key.

    What a lost GPU means, and what to do, is in braces: its trouble says that.
    """

    so_what: str
    do_this: str
    touches: tuple[str, ...]
    name: str = ""


GPU_LOST, OUT_OF_MEMORY, OF_OTHERS = "GPU lost", "out of memory", "out of memory of others"
CONSEQUENCES = {
    OUT_OF_MEMORY: Consequence(
        "A crash or a hang of this run may be such a kill, and not the release's doing.",
        "Repeat those cells with a lower --jobs or more memory before you believe them.",
        (ENDS,),
    ),
    OF_OTHERS: Consequence(
        "Another container's limit does nothing here; a machine that is short of memory makes times long.",
        "If much memory is taken now as well, repeat what is red or undecided on another machine.",
        (TIMES,),
        name=OUT_OF_MEMORY,
    ),
    "process limit": Consequence(
        "A worker that lacks a thread fails or waits forever, which looks like a fault of the release.",
        "Raise the container's --pids-limit, or lower --jobs, and repeat what is red.",
        (ENDS, ERRORS),
    ),
    GPU_LOST: Consequence(
        "{so_what} What failed since then is not the release's doing.",
        "{do_this} Then repeat what is red.",
        (TIMES, ENDS, ERRORS),
    ),
    "GPU driver": Consequence("Models were judged under two drivers.", "Repeat the run.", (TIMES, ENDS, ERRORS)),
    "GPU memory": Consequence(
        "The driver ends what reads a lost value: a crash or an error of this run may be such an end.",
        "Reset it (nvidia-smi --gpu-reset), and repeat what is red.",
        (ENDS, ERRORS),
    ),
    "GPU tenants": Consequence(
        "They took turns with the models on the same units, and took memory from them.",
        "Wait for them, or set CUDA_VISIBLE_DEVICES to another GPU, and repeat what is red or undecided.",
        (TIMES, ENDS, ERRORS),
    ),
    "GPU clocks": Consequence(
        "The clock moved while models were timed.",
        "See to cooling and power, or lock it with nvidia-smi --lock-gpu-clocks.",
        (TIMES,),
    ),
    "profilers": Consequence(
        "Programs that read the GPU's counters slow kernels a little and now and then.",
        "End them (dcgmi profile --pause), and repeat what is red or undecided.",
        (TIMES,),
    ),
    "suspended": Consequence(
        "What was being timed or waited for when it went to sleep is not to be trusted.",
        "Repeat what is red or undecided, and keep the machine awake.",
        (TIMES, ENDS),
    ),
    "CPU quota": Consequence(
        "All threads stand still together then: times get long, and a call may look like a hang.",
        "Raise the quota, give whole cores (docker run --cpuset-cpus), or lower --jobs.",
        (TIMES, ENDS),
    ),
    "steal time": Consequence(
        "Intervals are wide, and small slowdowns stay undecided.",
        "Use a machine with cores of its own, or --latency thorough.",
        (TIMES,),
    ),
    "other load": Consequence(
        "Times are noisy, and a deadline may have ended what only waited.",
        "Repeat what is red or undecided on a machine that does nothing else.",
        (TIMES,),
    ),
    "heat": Consequence(
        "The clock moved while models were timed; the benchmark alternates, loads and first calls do not.",
        "See to cooling, or repeat with fewer --jobs.",
        (TIMES,),
    ),
    "CPU governor": Consequence(
        "Times from before and after the change are not of one machine.",
        "Repeat the run with one governor.",
        (TIMES,),
    ),
    "cores": Consequence(
        "Times from before and after the change are not of one machine.",
        "Repeat the run, and leave the container's CPUs alone meanwhile.",
        (TIMES,),
    ),
    "swap": Consequence(
        "What is read back from disk is slow to load and to call first.",
        "Lower --jobs, stop other programs, or give the machine more memory.",
        (TIMES,),
    ),
    "memory": Consequence(
        "With every worker ended there is hardly room to start one: the next run may lose some.",
        "Find out who holds it, or raise the container's limit.",
        (ENDS,),
    ),
    "disk": Consequence(
        "Outputs of models may be lost for want of space, now or in the next run.",
        "Remove old runs (they may be deleted at any time), or use --out.",
        (ENDS, ERRORS),
    ),
    "shared memory": Consequence(
        "Processes that were killed leave such blocks behind, and what is full ends others by a bus error.",
        "Look there (ls -l /dev/shm) and remove what nobody uses.",
        (ENDS, ERRORS),
    ),
}


def happened_between(before: CounterReading, after: CounterReading) -> MachineDuringRun:
    """Return what happened between two readings, the gravest first; no event where the machine stayed as it was."""
    stolen, others = _shares(before, after)
    seen = (
        *_kills(before, after),
        *_gpus(before.gpus, after.gpus),
        *_time(before, after, stolen, others),
        *_clocks(before, after),
        *_space(before, after),
    )
    events = tuple(_event(*event) for event in seen)
    return MachineDuringRun(seconds=after.at_s - before.at_s, stolen=stolen, others=others, events=events)


def _event(key: str, read: str) -> MachineEvent:
    so_what, do_this, touches, name = CONSEQUENCES[key]
    if key == GPU_LOST:
        meaning, advice = gpu_trouble(read) or ("Nobody knows how the GPU fares.", "Run nvidia-smi.")
        so_what, do_this = so_what.format(so_what=meaning), do_this.format(do_this=advice)
    return MachineEvent(name=name or key, read=read, so_what=so_what, do_this=do_this, touches=touches)


def during_run_notes(during_run: MachineDuringRun, *, times: bool = True) -> tuple[str, ...]:
    """Return one note per event; what disturbs times alone is none unless the run has timed something (``times``)."""
    noted = (event for event in during_run.events if times or set(event.touches) != {TIMES})
    return tuple(f"while it ran, {event.name}: {event.read}. {event.so_what} {event.do_this}" for event in noted)


def _shares(before: CounterReading, after: CounterReading) -> tuple[float | None, float | None]:
    total = after.core_s - before.core_s
    if total < LEAST_S or before.cores != after.cores:
        return None, None
    others = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return _share((after.stolen_s - before.stolen_s) / total), _share(others / total)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _kills(before: CounterReading, after: CounterReading) -> Iterator[Seen]:
    ours, all_ = _grown(before.oom_kills, after.oom_kills), _grown(before.machine_oom_kills, after.machine_oom_kills)
    killed = f"the kernel killed {counted(ours or all_, 'process', 'processes')}"
    if ours:
        yield OUT_OF_MEMORY, f"{killed} in this container"
    elif all_ and after.oom_kills is None:
        yield OUT_OF_MEMORY, f"{killed} on this machine"
    elif all_:
        yield OF_OTHERS, f"{killed} on this machine, none of them in this container"
    if refused := _grown(before.tasks_refused, after.tasks_refused):
        yield "process limit", f"a process or thread could not be started {counted(refused, 'time')}"


def _gpus(before: Gpus | None, after: Gpus | None) -> Iterator[Seen]:
    """Yield what happened to them between two looks, both taken while none of the run's own processes lives."""
    if before is None or after is None:
        return
    if after.trouble and after.trouble != before.trouble:
        yield GPU_LOST, f"nvidia-smi answered before, and now: {after.trouble}"
    if before.driver and after.driver and before.driver != after.driver:
        yield "GPU driver", f"{before.driver} before, {after.driver} now"
    cards, left = {card.uuid: card for card in before.cards}, {card.uuid for card in after.cards}
    if gone := [card.machine_state.name for card in before.cards if card.uuid not in left and not after.trouble]:
        yield GPU_LOST, f"no longer listed: {', '.join(gone)}"
    for card in after.cards:
        if card.uuid in cards:
            yield from _memory_errors(cards[card.uuid], card)
            yield from _tenants(cards[card.uuid], card)
        state = card.machine_state
        if reasons := [reason for reason in state.throttle_reasons if reason not in HARMLESS]:
            heat = f" at {state.temperature_c} C" if state.temperature_c is not None else ""
            yield "GPU clocks", f"{state.name}: held down at the end of the run{heat} ({', '.join(reasons)})"
    if started := sorted({*after.profilers} - {*before.profilers}):
        yield "profilers", f"started meanwhile: {', '.join(started)}"


def _memory_errors(was: GpuCard, now: GpuCard) -> Iterator[Seen]:
    if lost := _grown(was.ecc_errors, now.ecc_errors):
        yield "GPU memory", f"{now.machine_state.name}: {counted(lost, 'uncorrected error')} more than before"


def _tenants(was: GpuCard, now: GpuCard) -> Iterator[Seen]:
    more = now.machine_state.other_processes - was.machine_state.other_processes
    more_mib = _grown(was.memory_used_mib, now.memory_used_mib)
    if more > 0 or more_mib > TENANT_MIB:
        what = f"{max(more, 0)} more processes than before, {more_mib} MiB more taken"
        yield "GPU tenants", f"{now.machine_state.name}: {what}"


def _time(before: CounterReading, after: CounterReading, stolen: float | None, others: float | None) -> Iterator[Seen]:
    slept = (after.slept_s or 0.0) - (before.slept_s or 0.0)
    if before.slept_s is not None and slept > SLEPT_S:
        yield "suspended", f"the machine slept for {slept:.0f} s"
    stopped, seconds = after.throttled_s - before.throttled_s, after.at_s - before.at_s
    if stopped > max(STOPPED_S, STOPPED_SHARE * seconds):
        limit = "" if after.quota_cores is None else f" of {after.quota_cores:g} cores"
        yield "CPU quota", f"the quota{limit} stopped everything for {stopped:.1f} s of {seconds:.0f} s"
    if stolen is not None and stolen > STOLEN_LIMIT:
        yield "steal time", f"the hypervisor took {100 * stolen:.0f} % of the cores' time"
    if others is not None and others > OTHERS_LIMIT:
        yield "other load", f"other programs used {100 * others:.0f} % of the cores' time"


def _clocks(before: CounterReading, after: CounterReading) -> Iterator[Seen]:
    if hot := _grown(before.hot, after.hot):
        yield "heat", f"cores were slowed down {counted(hot, 'time')} for their heat"
    was, now = ", ".join(before.governors), ", ".join(after.governors)
    if was != now and was and now:
        yield "CPU governor", f"{was} before, {now} now"
    if before.cores != after.cores:
        yield "cores", f"{before.cores} could be used before, {after.cores} now"


def _space(before: CounterReading, after: CounterReading) -> Iterator[Seen]:
    swapped = _grown(before.swapped_bytes, after.swapped_bytes)
    if swapped > SWAPPED_BYTES:
        yield "swap", f"{swapped / GB:.1f} GB went to swap or came back"
    if after.available_bytes is not None and after.available_bytes < LOW_BYTES:
        yield "memory", f"{after.available_bytes / GB:.1f} GB is left at its end"
    if after.disk_bytes is not None and after.disk_bytes < LOW_BYTES:
        yield "disk", f"{after.disk_bytes / GB:.1f} GB is left where the run is kept"
    left_behind = _grown(after.shared_bytes, before.shared_bytes)
    if left_behind > LEFT_BEHIND_BYTES:
        yield "shared memory", f"{left_behind / GB:.2f} GB more of /dev/shm is taken than before"


def _grown(before: int | None, after: int | None) -> int:
    return max(after - before, 0) if before is not None and after is not None else 0
