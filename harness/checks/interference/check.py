"""What a recording shows: where the watched process did not get on, and whose activity goes with that; pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from harness.checks.interference.recording import Course, ProcessCourse, Recording, Series, on_grid
from harness.checks.interference.statistics import ROTATIONS, SEED, period, rotation_test, runs
from harness.core.interference import LEAST_PAUSES, LEVEL, Activity, Association, Interference, Loss, Pauses

C = TypeVar("C", bound=Course)
# Of a cell of 10 ms: less is what any process waits for its turn.
PAUSE = 0.2
# A process that became active less often does not recur.
LEAST_BURSTS = 5
# About one block of the rotations for each pause, none shorter than this.
BLOCK_S = 0.5
# Activity so many cells before a pause goes with it.
BEFORE = 2


def check(recording: Recording, *, chosen: bool, seed: int = SEED) -> Interference:
    """Return what the recording shows; without ``culprits``, which ``verdict`` names."""
    edges_ns = grid(recording)
    cell_s = float(edges_ns[1] - edges_ns[0]) * 1e-9
    lost, wants = losses(recording, edges_ns)
    pauses = {loss: _pauses(series, wants, cell_s) for loss, series in lost.items()}
    others = [_others(group, edges_ns) for group in _groups(recording.others)]
    activities = [
        replace(
            _activity(one.group, one.ran, one.blocked, cell_s), meanwhile_s=float(one.ran @ lost[Loss.CPU]) * cell_s
        )
        for one in others
    ]
    recurring = [
        (activity, one) for activity, one in zip(activities, others, strict=True) if activity.bursts >= LEAST_BURSTS
    ]
    tests = [
        _Test(loss, series[wants], *_measured(loss, recurring, recording.watched.cpus, wants), pauses[loss].count)
        for loss, series in lost.items()
        if pauses[loss].count >= LEAST_PAUSES
    ]
    associations = [one for found in _associations(tests, cell_s, seed) for one in found]
    own = _others([*recording.threads], edges_ns)
    return Interference(
        watched=_activity([recording.watched], own.ran, own.blocked, cell_s),
        chosen=chosen,
        seconds=recording.span_ns * 1e-9,
        interval_s=recording.interval_ns * 1e-9,
        own_share=recording.own_cpu_ns / max(recording.span_ns, 1),
        pauses={loss: seen for loss, seen in pauses.items() if seen.count},
        where={name: ns * 1e-9 for name, ns in sorted(recording.blocked_in.items(), key=lambda item: -item[1])},
        processes=len(recording.others) + 1,
        active=tuple(
            sorted((one for one in activities if one.bursts), key=lambda one: one.ran_s + one.blocked_s, reverse=True)
        ),
        associations=tuple(sorted(associations, key=lambda one: one.excess_s, reverse=True)),
        tested=len(associations),
        rotations=ROTATIONS,
        seed=seed,
        ended=recording.ended,
        counts_waits=recording.counts_waits,
        sees_functions=not recording.blocked_in or bool({*recording.blocked_in} - {"", "0"}),
    )


def grid(recording: Recording) -> Series:
    """Return the edges of cells as long as the interval of the looks, in ns; of one cell at least."""
    cell_ns = max(recording.interval_ns, 1)
    cells = max(recording.span_ns // cell_ns, 1)
    return recording.looks_ns[0] + cell_ns * np.arange(cells + 1, dtype=float)


def losses(recording: Recording, edges_ns: Series) -> tuple[dict[Loss, Series], npt.NDArray[np.bool_]]:
    """Return which share of each cell the watched process lost in each way, and where it wanted to get on at all.

    Of several threads the one that lost most counts: others may wait for it. Threads that keep each other waiting for
    CPUs are nobody else's fault.
    """
    cell_ns = edges_ns[1] - edges_ns[0]
    cpus = max(len(recording.watched.cpus), 1)
    ran = [on_grid(thread.ran, edges_ns) / cell_ns for thread in recording.threads]
    all_ran = sum(ran, np.zeros(len(edges_ns) - 1))
    waited, blocked = np.zeros_like(all_ran), np.zeros_like(all_ran)
    for thread, own in zip(recording.threads, ran, strict=True):
        others = np.clip((all_ran - own) / cpus, 0, 1)
        if thread.waited:
            waited = np.maximum(waited, on_grid(thread.waited, edges_ns) / cell_ns * (1 - others))
        if thread.blocked:
            blocked = np.maximum(blocked, on_grid(thread.blocked, edges_ns) / cell_ns)
    waited, blocked = np.clip(waited, 0, 1), np.clip(blocked, 0, 1)
    return {Loss.CPU: waited, Loss.BLOCKED: blocked}, all_ran + waited + blocked > 0


def threshold(lost: Series, wants: npt.NDArray[np.bool_]) -> float:
    """Return the share of a cell that makes it a pause: more than is usual where something is lost all the time."""
    return max(PAUSE, float(lost[wants].mean())) if wants.any() else PAUSE


def _groups(courses: Sequence[ProcessCourse]) -> list[list[ProcessCourse]]:
    """Return the processes, and those that came and went together where they have one name and one parent."""
    fresh = sorted((one for one in courses if one.is_new), key=lambda one: (one.parent, one.name))
    return [[one] for one in courses if not one.is_new] + [
        list(group) for _, group in groupby(fresh, key=lambda one: (one.parent, one.name))
    ]


class _Others(NamedTuple, Generic[C]):
    """One process, or several as one; which share of each cell it ran and was blocked for."""

    group: Sequence[C]
    ran: Series
    blocked: Series


def _others(group: Sequence[C], edges_ns: Series) -> _Others[C]:
    cell_ns = edges_ns[1] - edges_ns[0]
    return _Others(
        group,
        on_grid((part for course in group for part in course.ran), edges_ns) / cell_ns,
        on_grid((part for course in group for part in course.blocked), edges_ns) / cell_ns,
    )


def _activity(group: Sequence[ProcessCourse], ran: Series, blocked: Series, cell_s: float) -> Activity:
    first = group[0]
    active = (ran > 0) | (blocked > 0)
    cells = period(np.minimum(ran + blocked, 1)) if active.any() else None
    return Activity(
        pid=first.pid,
        name=first.name,
        command=first.command,
        count=len(group),
        ran_s=float(ran.sum()) * cell_s,
        blocked_s=float(blocked.sum()) * cell_s,
        bursts=len(runs(active)),
        period_s=None if cells is None else cells * cell_s,
    )


def _pauses(lost: Series, wants: npt.NDArray[np.bool_], cell_s: float) -> Pauses:
    stretches = runs(lost >= threshold(lost, wants))
    cells = period(lost)
    lengths = [float(lost[begin:end].sum()) * cell_s for begin, end in stretches]
    return Pauses(
        count=len(stretches),
        lost_s=float(lost.sum()) * cell_s,
        longest_s=max(lengths, default=0.0),
        period_s=None if cells is None else cells * cell_s,
    )


class _Test(NamedTuple):
    """One kind of pauses, (cells,), against the activity of some processes, (processes, cells)."""

    loss: Loss
    lost: Series
    pids: Sequence[int]
    activity: npt.NDArray[np.float64]
    pauses: int

    def pair(self, where: npt.NDArray[np.bool_], cell_s: float) -> tuple[Series, npt.NDArray[np.float64], int]:
        """Return what ``rotation_test`` takes, of some cells only."""
        most = max(int(np.count_nonzero(where) * cell_s / BLOCK_S), 1)
        return self.lost[where], self.activity[:, where], min(self.pauses, most)


def _associations(tests: Sequence[_Test], cell_s: float, seed: int) -> Iterator[list[Association]]:
    """Yield those of each test. Of the significant ones, all but the first are tested without the activity of others.

    Two that keep one rhythm, or of which one does the other's work, cannot both be told from chance then.
    """
    everywhere = [np.ones(len(test.lost), dtype=bool) for test in tests]
    first = rotation_test([test.pair(where, cell_s) for test, where in zip(tests, everywhere, strict=True)], seed=seed)
    for test, tested, where in zip(tests, first, everywhere, strict=True):
        found = []
        for place in np.argsort(-tested.excess).tolist():
            row = test.activity[place]
            excess, p_value = tested.excess[place], tested.p_value[place]
            if p_value <= LEVEL:
                if not where.all():
                    alone = test._replace(activity=test.activity[place : place + 1]).pair(where, cell_s)
                    ((excess,), _, (again,)) = rotation_test([alone], seed=seed)[0]
                    p_value = max(p_value, again)
                np.logical_and(where, row == 0, out=where)
            found.append(
                Association(
                    pid=test.pids[place],
                    loss=test.loss,
                    beside=float(row @ test.lost / test.lost.sum()),
                    usual=float(row.mean()),
                    excess_s=float(excess) * cell_s,
                    score=float(tested.score[place]),
                    p_value=float(p_value),
                )
            )
        yield found


def _measured(
    loss: Loss,
    recurring: Sequence[tuple[Activity, _Others[ProcessCourse]]],
    cpus: frozenset[int],
    wants: npt.NDArray[np.bool_],
) -> tuple[list[int], npt.NDArray[np.float64]]:
    """Return the PIDs of those that may cause such a loss, and what of each cell they were active for.

    A CPU is lost to whoever runs on one that the watched process may use, by how long that runs; anything else to
    whoever is active at all.
    """
    if loss is Loss.CPU:
        recurring = [
            (activity, one) for activity, one in recurring if any(_meets(course, cpus) for course in one.group)
        ]
        rows = [np.minimum(one.ran, 1) for _, one in recurring]
    else:
        rows = [((one.ran > 0) | (one.blocked > 0)).astype(float) for _, one in recurring]
    return [activity.pid for activity, _ in recurring], _lately(np.array(rows).reshape(len(rows), len(wants)))[:, wants]


def _meets(course: ProcessCourse, cpus: frozenset[int]) -> bool:
    return not course.cpus or bool(course.cpus & cpus)


def _lately(activity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the most in each cell and ``BEFORE`` cells before it."""
    padded = np.pad(activity, ((0, 0), (BEFORE, 0)))
    recent: npt.NDArray[np.float64] = np.lib.stride_tricks.sliding_window_view(padded, BEFORE + 1, axis=1).max(axis=2)
    return recent
