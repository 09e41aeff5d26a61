"""Opinions on what happened to the machine while a run went on: the doctor's second look. Pure."""

from collections.abc import Iterator

from harness.doctor.cuda_support import gpu_trouble
from harness.doctor.readings import GB, TENANT_MIB
from harness.domain.machine import (
    ENDS,
    ERRORS,
    TIMES,
    CounterReading,
    GpuCard,
    Gpus,
    MachineDuringRun,
    MachineEvent,
)
from harness.domain.text import counted
from harness.domain.verdict import CellVerdict
from harness.latency.machine import HARMLESS, OTHERS_LIMIT, STOLEN_LIMIT

# Ticks of 10 ms: below a second of cores' time a share is a guess.
LEAST_S = 1.0
STOPPED_SHARE, STOPPED_S = 0.01, 0.1
SLEPT_S = 1.0
SWAPPED_BYTES = 64 << 20
LOW_BYTES = 1_000_000_000
LEFT_BEHIND_BYTES = 16 << 20
# What a machine in trouble looks like from inside a model: it ends or hangs, or raises; never another answer.
KINDS = {
    ENDS: frozenset({"out_of_memory", "crash", "hang", "starved", "protocol_error"}),
    ERRORS: frozenset({"load_error", "call_error", "concurrent_error", "export_error"}),
}


def happened_between(before: CounterReading, after: CounterReading) -> MachineDuringRun:
    """Return what happened between two readings, the gravest first; no event where the machine stayed as it was."""
    shares = _shares(before, after)
    events = (
        *_kills(before, after),
        *_refusals(before, after),
        *_gpus(before.gpus, after.gpus),
        *_sleep(before, after),
        *_quota(before, after),
        *_steal(shares[0]),
        *_load(shares[1]),
        *_clocks(before, after),
        *_memory(before, after),
        *_space(before, after),
    )
    return MachineDuringRun(seconds=after.at_s - before.at_s, stolen=shares[0], others=shares[1], events=events)


def during_run_notes(during_run: MachineDuringRun, *, times: bool = True) -> tuple[str, ...]:
    """Return one note per event: what it was, what that does to the run, and what to do.

    Args:
        times: whether the run timed anything; else what disturbs times alone is no note.
    """
    told = [one for one in during_run.events if times or set(one.touches) != {TIMES}]
    return tuple(f"while it ran, {one.name}: {one.read}. {one.so_what} {one.do_this}" for one in told)


def touching(during_run: MachineDuringRun | None, cell: CellVerdict) -> tuple[MachineEvent, ...]:
    """Return the events that a verdict is to be read with: times with load, ends without an answer with kills."""
    if during_run is None:
        return ()
    touched = {name for name, kinds in KINDS.items() if not kinds.isdisjoint(cell.kinds)} | (
        {TIMES} if cell.scenario == "latency" else set()
    )
    return tuple(event for event in during_run.events if touched & {*event.touches})


def disturbing(during_run: MachineDuringRun | None) -> tuple[MachineEvent, ...]:
    """Return the events that every time of the run is to be read with."""
    return tuple(event for event in during_run.events if TIMES in event.touches) if during_run is not None else ()


def _shares(before: CounterReading, after: CounterReading) -> tuple[float | None, float | None]:
    """Return the shares of the cores' time that the hypervisor took, and that others used."""
    total = after.core_s - before.core_s
    if total < LEAST_S or before.cores != after.cores:
        return None, None
    others = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return _share((after.stolen_s - before.stolen_s) / total), _share(others / total)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _kills(before: CounterReading, after: CounterReading) -> Iterator[MachineEvent]:
    ours, all_ = _grown(before.oom_kills, after.oom_kills), _grown(before.machine_oom_kills, after.machine_oom_kills)
    killed = counted(ours or all_, "process", "processes")
    if ours or (all_ and after.oom_kills is None):
        where = "in this container" if ours else "on this machine"
        yield MachineEvent(
            name="out of memory",
            read=f"the kernel killed {killed} {where}",
            so_what="A crash or a hang of this run may be such a kill, and not the release's doing.",
            do_this="Repeat those cells with a lower --jobs or more memory before you believe them.",
            touches=(ENDS,),
        )
    elif all_:
        yield MachineEvent(
            name="out of memory",
            read=f"the kernel killed {killed} on this machine, none of them in this container",
            so_what="Another container's limit does nothing here; a machine that is short of memory makes times long.",
            do_this="If much memory is taken now as well, repeat what is red or undecided on another machine.",
            touches=(TIMES,),
        )


def _refusals(before: CounterReading, after: CounterReading) -> Iterator[MachineEvent]:
    refused = _grown(before.tasks_refused, after.tasks_refused)
    if refused:
        yield MachineEvent(
            name="process limit",
            read=f"a process or thread could not be started {counted(refused, 'time')}",
            so_what="A worker that lacks a thread fails or waits forever, which looks like a fault of the release.",
            do_this="Raise the container's --pids-limit, or lower --jobs, and repeat what is red.",
            touches=(ENDS, ERRORS),
        )


def _gpus(before: Gpus | None, after: Gpus | None) -> Iterator[MachineEvent]:
    """Yield what happened to them between two looks, both taken while none of the run's own processes lives."""
    if before is None or after is None:
        return
    if after.trouble and after.trouble != before.trouble:
        yield _lost(after.trouble)
    if before.driver and after.driver and before.driver != after.driver:
        yield MachineEvent(
            name="GPU driver",
            read=f"{before.driver} before, {after.driver} now",
            so_what="Models were judged under two drivers.",
            do_this="Repeat the run.",
            touches=(TIMES, ENDS, ERRORS),
        )
    cards = {card.uuid: card for card in before.cards}
    for card in after.cards:
        if card.uuid in cards:
            yield from _tenants(cards[card.uuid], card)
        yield from _throttling(card)
    started = sorted({*after.profilers} - {*before.profilers})
    if started:
        yield MachineEvent(
            name="profilers",
            read=f"started meanwhile: {', '.join(started)}",
            so_what="Programs that read the GPU's counters slow kernels a little and now and then.",
            do_this="End them (dcgmi profile --pause), and repeat what is red or undecided.",
            touches=(TIMES,),
        )


def _lost(trouble: str) -> MachineEvent:
    so_what, do_this = gpu_trouble(trouble) or ("Nobody knows how the GPU fares.", "Run nvidia-smi.")
    return MachineEvent(
        name="GPU lost",
        read=f"nvidia-smi answered before, and now: {trouble}",
        so_what=f"{so_what} What failed since then is not the release's doing.",
        do_this=f"{do_this} Then repeat what is red.",
        touches=(TIMES, ENDS, ERRORS),
    )


def _tenants(was: GpuCard, now: GpuCard) -> Iterator[MachineEvent]:
    more = now.machine_state.other_processes - was.machine_state.other_processes
    taken = (now.memory_used_mib or 0) - (was.memory_used_mib or 0)
    if more > 0 or taken > TENANT_MIB:
        yield MachineEvent(
            name="GPU tenants",
            read=f"{now.machine_state.name}: {max(more, 0)} more processes than before, {max(taken, 0)} MiB more taken",
            so_what="They took turns with the models on the same units, and took memory from them.",
            do_this="Wait for them, or set CUDA_VISIBLE_DEVICES to another GPU, and repeat what is red or undecided.",
            touches=(TIMES, ENDS, ERRORS),
        )


def _throttling(card: GpuCard) -> Iterator[MachineEvent]:
    held = [reason for reason in card.machine_state.throttle_reasons if reason not in HARMLESS]
    if held:
        heat = f" at {card.machine_state.temperature_c} C" if card.machine_state.temperature_c is not None else ""
        yield MachineEvent(
            name="GPU clocks",
            read=f"{card.machine_state.name}: held down at the end of the run{heat} ({', '.join(held)})",
            so_what="The clock moved while models were timed.",
            do_this="See to cooling and power, or lock it with nvidia-smi --lock-gpu-clocks.",
            touches=(TIMES,),
        )


def _sleep(before: CounterReading, after: CounterReading) -> Iterator[MachineEvent]:
    slept = (after.slept_s or 0.0) - (before.slept_s or 0.0)
    if before.slept_s is not None and slept > SLEPT_S:
        yield MachineEvent(
            name="suspended",
            read=f"the machine slept for {slept:.0f} s",
            so_what="What was being timed or waited for when it went to sleep is not to be trusted.",
            do_this="Repeat what is red or undecided, and keep the machine awake.",
            touches=(TIMES, ENDS),
        )


def _quota(before: CounterReading, after: CounterReading) -> Iterator[MachineEvent]:
    stopped, seconds = after.throttled_s - before.throttled_s, after.at_s - before.at_s
    if stopped > max(STOPPED_S, STOPPED_SHARE * seconds):
        limit = "" if after.quota_cores is None else f" of {after.quota_cores:g} cores"
        yield MachineEvent(
            name="CPU quota",
            read=f"the quota{limit} stopped everything for {stopped:.1f} s of {seconds:.0f} s",
            so_what="All threads stand still together then: times get long, and a call may look like a hang.",
            do_this="Raise the quota, give whole cores (docker run --cpuset-cpus), or lower --jobs.",
            touches=(TIMES, ENDS),
        )


def _steal(share: float | None) -> Iterator[MachineEvent]:
    if share is not None and share > STOLEN_LIMIT:
        yield MachineEvent(
            name="steal time",
            read=f"the hypervisor took {100 * share:.0f} % of the cores' time",
            so_what="Intervals are wide, and small slowdowns stay undecided.",
            do_this="Use a machine with cores of its own, or --latency thorough.",
            touches=(TIMES,),
        )


def _load(share: float | None) -> Iterator[MachineEvent]:
    if share is not None and share > OTHERS_LIMIT:
        yield MachineEvent(
            name="other load",
            read=f"other programs used {100 * share:.0f} % of the cores' time",
            so_what="Times are noisy, and a deadline may have ended what only waited.",
            do_this="Repeat what is red or undecided on a machine that does nothing else.",
            touches=(TIMES,),
        )


def _clocks(before: CounterReading, after: CounterReading) -> Iterator[MachineEvent]:
    hot = _grown(before.hot, after.hot)
    if hot:
        yield MachineEvent(
            name="heat",
            read=f"cores were slowed down {counted(hot, 'time')} for their heat",
            so_what="The clock moved while models were timed; the benchmark alternates, loads and first calls do not.",
            do_this="See to cooling, or repeat with fewer --jobs.",
            touches=(TIMES,),
        )
    was, now = ", ".join(before.governors), ", ".join(after.governors)
    if was != now and was and now:
        yield MachineEvent(
            name="CPU governor",
            read=f"{was} before, {now} now",
            so_what="Times from before and after the change are not of one machine.",
            do_this="Repeat the run with one governor.",
            touches=(TIMES,),
        )
    if before.cores != after.cores:
        yield MachineEvent(
            name="cores",
            read=f"{before.cores} could be used before, {after.cores} now",
            so_what="Times from before and after the change are not of one machine.",
            do_this="Repeat the run, and leave the container's CPUs alone meanwhile.",
            touches=(TIMES,),
        )


def _memory(before: CounterReading, after: CounterReading) -> Iterator[MachineEvent]:
    swapped = _grown(before.swapped_bytes, after.swapped_bytes)
    if swapped > SWAPPED_BYTES:
        yield MachineEvent(
            name="swap",
            read=f"{swapped / GB:.1f} GB went to swap or came back",
            so_what="What is read back from disk is slow to load and to call first.",
            do_this="Lower --jobs, stop other programs, or give the machine more memory.",
            touches=(TIMES,),
        )
    if after.available_bytes is not None and after.available_bytes < LOW_BYTES:
        yield MachineEvent(
            name="memory",
            read=f"{after.available_bytes / GB:.1f} GB is left at its end",
            so_what="With every worker ended there is hardly room to start one: the next run may lose some.",
            do_this="Find out who holds it, or raise the container's limit.",
            touches=(ENDS,),
        )


def _space(before: CounterReading, after: CounterReading) -> Iterator[MachineEvent]:
    if after.disk_bytes is not None and after.disk_bytes < LOW_BYTES:
        yield MachineEvent(
            name="disk",
            read=f"{after.disk_bytes / GB:.1f} GB is left where the run is kept",
            so_what="Outputs of models may be lost for want of space, now or in the next run.",
            do_this="Remove old runs (they may be deleted at any time), or use --out.",
            touches=(ENDS, ERRORS),
        )
    if before.shared_bytes is None or after.shared_bytes is None:
        return
    left_behind = before.shared_bytes - after.shared_bytes
    if left_behind > LEFT_BEHIND_BYTES:
        yield MachineEvent(
            name="shared memory",
            read=f"{left_behind / GB:.2f} GB more of /dev/shm is taken than before",
            so_what="Processes that were killed leave such blocks behind, and what is full ends others by a bus error.",
            do_this="Look there (ls -l /dev/shm) and remove what nobody uses.",
            touches=(ENDS, ERRORS),
        )


def _grown(before: int | None, after: int | None) -> int:
    return max(after - before, 0) if before is not None and after is not None else 0
