"""What holds up a process, as a document: three sentences, then every process that goes with its pauses."""

from collections.abc import Iterator

from harness.core.interference import LEAST_PAUSES, LEVEL, Activity, Interference, Loss
from harness.core.text import counted, first_few, joined
from harness.report.document import (
    ALWAYS,
    BAD,
    DETAIL,
    GOOD,
    MORE,
    OPEN,
    PLAIN,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    facts,
    placed,
)
from harness.report.words.phrases import shorten
from harness.verdict.interference import holds_up, is_named, is_well, share, too_few

MOST_ROWS = 10
MOST_NAMED = 3
LEAST_SHOWN = 0.005
"""Of the lost time: less is 0 %."""
LONGEST_COMMAND = 60
# Parts of the names of kernel functions -> what a process waits for in them.
WAITS_FOR = (
    (("mmap", "munmap", "mprotect", "rwsem", "brk", "madvise"), "memory map"),
    (("bio", "folio", "buffer", "jbd2", "io_schedule", "writeback", "dirty", "ext4", "xfs", "btrfs"), "disk"),
)
REMEDIES = {
    "cpu": "keep them apart: other CPUs (taskset, cpuset.cpus), or a higher cpu.weight for the one that waits",
    "memory map": "it waits for its memory map, which is locked while anybody reads its smaps, numa_maps or pagemap"
    " in /proc: have that done seldom, or smaps left out",
    "disk": "it waits for its disk: put one of them on another, or bound the other one with io.max or ionice",
    "": "the functions of the kernel below say what both of them need",
}


def interference_document(result: Interference, *, directory: str = "") -> Document:
    """Return the document; ``directory``: where its files and the trace lie, as the reader would type it."""
    return Document(
        title=f"Who holds up {_name(result.watched)}",
        verdict=_verdict(result),
        full="--format json",
        parts=(
            Part(
                title="Processes whose activity recurs, by what of the lost time goes with it beyond chance",
                blocks=(_associations(result),) if result.associations else (),
            ),
            Part(
                title="Who had the CPUs while it waited for one", blocks=(_meanwhile(result),) if _had(result) else ()
            ),
            Part(title="How it was recorded", blocks=(*facts(_how(result), MORE), *_trace(directory))),
        ),
    )


def _verdict(result: Interference) -> Verdict:
    lost = joined(*(_loss(result, loss) for loss in result.pauses)) or "it never waited"
    recorded = f"of {result.seconds:.1f} s, {_name(result.watched)} lost: {lost}"
    if result.culprits:
        named = [_sentence(result, pid) for pid in result.culprits[:MOST_NAMED]]
        return Verdict(
            word="HELD UP",
            tone=BAD,
            means="by " + first_few([_name(_activity(result, pid)) for pid in result.culprits], MOST_NAMED),
            reason=f"{recorded}. {'; '.join(named)}. To do: {'; '.join(_remedies(result))}.",
        )
    if is_well(result):
        return Verdict(word="NOT HELD UP", tone=GOOD, means="it hardly waits", reason=f"{recorded}.")
    return Verdict(
        word="NOBODY NAMED", tone=OPEN, means=_why_not(result), reason=f"{recorded}. {_constant(result)}".strip()
    )


def _why_not(result: Interference) -> str:
    if not result.counts_waits:
        return "this kernel does not count how long threads wait for a CPU: /proc has no schedstat"
    if result.ended:
        return f"the process ended after {result.seconds:.1f} s"
    few = [f"{counted(result.pauses[loss].count, 'pause')} {loss}" for loss in too_few(result)]
    if few:
        return f"{joined(*few)}: too few pauses to tell, {LEAST_PAUSES} are needed; record longer: --seconds"
    return "nobody's activity goes with its pauses more often than chance"


def _loss(result: Interference, loss: Loss) -> str:
    seen = result.pauses[loss]
    every = f", every {seen.period_s:.2f} s" if seen.period_s is not None else ""
    where = _where(result) if loss is Loss.BLOCKED else ""
    pauses = f"{counted(seen.count, 'pause')}{every}, the longest {seen.longest_s * 1e3:.0f} ms"
    return f"{seen.lost_s:.2f} s {loss}{where} in {pauses}"


def _where(result: Interference) -> str:
    functions = [name for name in result.where if name not in ("", "0")]
    return f" ({first_few(functions, 2)})" if functions else ""


def _sentence(result: Interference, pid: int) -> str:
    best = max((one for one in result.associations if one.pid == pid), key=lambda one: share(one, result))
    activity = _activity(result, pid)
    recurs = f", and recurs every {activity.period_s:.2f} s" if activity.period_s is not None else ""
    what = "has {:.0%} of a CPU" if best.loss is Loss.CPU else "is active for {:.0%}"
    beside = f"{what.format(best.beside)} beside what is lost {best.loss}, usually {best.usual:.0%}"
    p_value = f"(p = {best.p_value:.2g}, corrected for {counted(result.tested, 'test')})"
    return f"{_name(activity)} {beside} {p_value}{recurs}"


def _remedies(result: Interference) -> Iterator[str]:
    losses = {one.loss for one in result.associations if one.pid in result.culprits and is_named(one, result)}
    if Loss.CPU in losses:
        yield REMEDIES["cpu"]
    if Loss.BLOCKED in losses:
        most = next((name for name in result.where if name not in ("", "0")), "")
        yield REMEDIES[next((what for parts, what in WAITS_FOR if any(part in most for part in parts)), "")]


def _constant(result: Interference) -> str:
    had = _had(result)
    if not had:
        return ""
    total = sum(one.meanwhile_s for one in had)
    return (
        f"While it waited for a CPU, {_name(had[0])} had {had[0].meanwhile_s / total:.0%} of what others had of them."
    )


def _had(result: Interference) -> list[Activity]:
    """Return who had CPUs while the watched process waited for one, where it waited much."""
    waits = result.pauses.get(Loss.CPU)
    if waits is None or not holds_up(waits, result):
        return []
    return sorted((one for one in result.active if one.meanwhile_s), key=lambda one: one.meanwhile_s, reverse=True)


def _associations(result: Interference) -> Table:
    rows = tuple(
        Row(
            cells=(
                _name(_activity(result, one.pid)),
                str(one.loss),
                f"{share(one, result):.0%}",
                f"{one.beside:.0%}",
                f"{one.usual:.0%}",
                _period(_activity(result, one.pid)),
                Cell(f"{one.p_value:.2g}", tone=BAD if one.pid in result.culprits and is_named(one, result) else PLAIN),
            ),
            importance=ALWAYS if place < MOST_ROWS and share(one, result) >= LEAST_SHOWN else placed(DETAIL, place),
        )
        for place, one in enumerate(result.associations)
    )
    return Table(
        heads=("process", "pauses", "explains", "beside", "usual", "every", "p"),
        rows=rows,
        numbers=(2, 3, 4, 5, 6),
        noun="program",
        legend="beside: how much of the lost time it was active (of a CPU: had one); usual: of all time",
    )


def _meanwhile(result: Interference) -> Table:
    had = _had(result)
    total = sum(one.meanwhile_s for one in had)
    rows = tuple(
        Row(
            cells=(_name(one), f"{one.meanwhile_s / total:.0%}", f"{one.ran_s:.2f} s", _period(one)),
            importance=MORE if place < MOST_ROWS // 2 else placed(DETAIL, place),
        )
        for place, one in enumerate(had)
    )
    return Table(
        heads=("process", "share", "in all", "every"), rows=rows, numbers=(1, 2, 3), noun="program", importance=MORE
    )


def _how(result: Interference) -> Iterator[tuple[str, str]]:
    processes = counted(result.processes, "process", "processes")
    looks = f"{processes}, every {result.interval_s * 1e3:.0f} ms for {result.seconds:.1f} s"
    yield "looks", f"{looks}; that took {result.own_share:.1%} of one core"
    if result.chosen:
        yield "process", "the one that waited most for CPUs: nobody named one (--pid)"
    if result.tested:
        rotated = f"the pauses were rotated within blocks against the activity {result.rotations} times"
        yield "test", f"{rotated} (seed {result.seed}); p <= {LEVEL:g} after correction for the number of tests"
    if not result.sees_functions:
        yield "unseen", "what it is blocked in: it is another user's, and that needs the right to trace it"


def _trace(directory: str) -> tuple[Fact, ...]:
    """Return where the trace is; https://ui.perfetto.dev opens it, and so does chrome://tracing."""
    return (Fact("trace", f"{directory}/trace.json", MORE, "path"),) if directory else ()


def _activity(result: Interference, pid: int) -> Activity:
    return next(one for one in result.active if one.pid == pid)


def _name(activity: Activity) -> str:
    several = f"{activity.count} processes, the first " if activity.count > 1 else ""
    return f"{shorten(activity.command or activity.name, LONGEST_COMMAND)} ({several}{activity.pid})"


def _period(activity: Activity) -> str:
    return "" if activity.period_s is None else f"{activity.period_s:.2f} s"
