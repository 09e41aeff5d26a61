"""What a recording shows: where the watched process did not get on, and whose activity goes with that; pure."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from harness.checks.interference.recording import Course, Part, ProcessCourse, Recording, Series, on_grid
from harness.checks.interference.statistics import ROTATIONS, SEED, period, rotation_test, runs
from harness.core.interference import Activity, Association, Interference, Loss, Pauses

# Of a cell of 10 ms: less is what any process waits for its turn.
PAUSE = 0.2
# Fewer pauses of one kind tell nothing.
LEAST_PAUSES = 20
# A process that became active less often does not recur.
LEAST_BURSTS = 5
# About one block of the rotations for each pause, none shorter than this.
BLOCK_NS = 500_000_000
# Activity so many cells before a pause goes with it.
BEFORE = 2


def check(
    recording: Recording, *, chosen: bool, least_pauses: int = LEAST_PAUSES, seed: int = SEED
) -> Interference:
    """Return what the recording shows; without ``culprits``, which ``verdict`` names."""
    edges_ns = np.arange(recording.looks_ns[0], recording.looks_ns[-1], max(recording.interval_ns, 1), dtype=float)
    cell_ns = float(max(recording.interval_ns, 1))
    groups = _groups(recording.others)
    ran = np.array([on_grid(_of(group, "ran"), edges_ns) for group in groups]).reshape(len(groups), -1) / cell_ns
    blocked = np.array([on_grid(_of(group, "blocked"), edges_ns) for group in groups]).reshape(len(groups), -1) / cell_ns
    lost, wants = losses(recording, edges_ns)
    pauses = {loss: _pauses(series, cell_ns) for loss, series in lost.items()}
    activities = [
        _activity(group, *series, cell_ns) for group, *series in zip(groups, ran, blocked, strict=True)
    ]
    associations, tested = _associations(recording, groups, activities, ran, blocked, lost, wants, pauses, cell_ns, seed)
    active = sorted((one for one in activities if one.bursts), key=lambda one: one.ran_s + one.blocked_s, reverse=True)
    threads = recording.threads
    own = [on_grid([part for thread in threads for part in getattr(thread, kind)], edges_ns) / cell_ns for kind in ("ran", "blocked")]
    return Interference(
        watched=_activity([recording.watched], *own, cell_ns),
        chosen=chosen,
        seconds=recording.span_ns * 1e-9,
        interval_s=recording.interval_ns * 1e-9,
        own_share=recording.own_cpu_ns / max(recording.span_ns, 1),
        pauses={loss: found for loss, found in pauses.items() if found.count},
        where={name: ns * 1e-9 for name, ns in sorted(recording.blocked_in.items(), key=lambda item: -item[1])},
        processes=len(recording.others) + 1,
        active=tuple(active),
        associations=tuple(sorted(associations, key=lambda one: one.excess_s, reverse=True)),
        tested=tested,
        rotations=ROTATIONS,
        seed=seed,
        notes=tuple(recording.notes),
    )


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


def _groups(courses: Sequence[ProcessCourse]) -> list[list[ProcessCourse]]:
    """Return the processes, and those that came and went together where they have one name and one parent."""
    fresh = sorted((one for one in courses if one.is_new), key=lambda one: (one.parent, one.name))
    return [[one] for one in courses if not one.is_new] + [
        list(group) for _, group in groupby(fresh, key=lambda one: (one.parent, one.name))
    ]


def _of(group: Sequence[Course], kind: str) -> list[Part]:
    return [part for course in group for part in getattr(course, kind)]


def _activity(group: Sequence[ProcessCourse], ran: Series, blocked: Series, cell_ns: float) -> Activity:
    first = group[0]
    active = (ran > 0) | (blocked > 0)
    cells = period(np.minimum(ran + blocked, 1)) if active.any() else None
    return Activity(
        pid=first.pid,
        name=first.name,
        command=first.command,
        count=len(group),
        is_kernel_thread=first.is_kernel_thread,
        ran_s=float(ran.sum()) * cell_ns * 1e-9,
        blocked_s=float(blocked.sum()) * cell_ns * 1e-9,
        bursts=len(runs(active)),
        period_s=None if cells is None else cells * cell_ns * 1e-9,
    )


def _pauses(lost: Series, cell_ns: float) -> Pauses:
    stretches = runs(lost >= PAUSE)
    cells = period(lost)
    lengths = [float(lost[begin:end].sum()) * cell_ns * 1e-9 for begin, end in stretches]
    return Pauses(
        count=len(stretches),
        lost_s=float(lost.sum()) * cell_ns * 1e-9,
        longest_s=max(lengths, default=0.0),
        period_s=None if cells is None else cells * cell_ns * 1e-9,
    )


def _associations(
    recording: Recording,
    groups: Sequence[Sequence[ProcessCourse]],
    activities: Sequence[Activity],
    ran: npt.NDArray[np.float64],
    blocked: npt.NDArray[np.float64],
    lost: dict[Loss, Series],
    wants: npt.NDArray[np.bool_],
    pauses: dict[Loss, Pauses],
    cell_ns: float,
    seed: int,
) -> tuple[list[Association], int]:
    recurring = np.array([one.bursts >= LEAST_BURSTS for one in activities], dtype=bool)
    reaches = np.array([any(one.cpus & recording.watched.cpus or not one.cpus for one in group) for group in groups], dtype=bool)
    active = (ran > 0) | (blocked > 0)
    measures = {
        Loss.CPU: (np.flatnonzero(recurring & reaches), np.minimum(ran, 1)),
        Loss.BLOCKED: (np.flatnonzero(recurring), active.astype(float)),
    }
    kinds = [loss for loss in Loss if pauses[loss].count >= LEAST_PAUSES and len(measures[loss][0])]
    if not kinds:
        return [], 0
    most_blocks = int(np.count_nonzero(wants) * cell_ns // BLOCK_NS)
    pairs = [
        (
            lost[loss][wants],
            _lately(measures[loss][1][measures[loss][0]])[:, wants],
            max(min(pauses[loss].count, most_blocks), 1),
        )
        for loss in kinds
    ]
    found = []
    for loss, (pause, activity, _), tested in zip(kinds, pairs, rotation_test(pairs, seed=seed), strict=True):
        for place, group in enumerate(measures[loss][0]):
            is_active = activity[place] > 0
            found.append(
                Association(
                    pid=activities[group].pid,
                    loss=loss,
                    beside=float(pause[is_active].sum() / pause.sum()),
                    usual=float(is_active.mean()),
                    excess_s=float(tested.excess[place]) * cell_ns * 1e-9,
                    score=float(tested.score[place]),
                    p_value=float(tested.p_value[place]),
                )
            )
    return found, len(found)


def _lately(activity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the most in each cell and ``BEFORE`` cells before it."""
    padded = np.pad(activity, ((0, 0), (BEFORE, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, BEFORE + 1, axis=1).max(axis=2)
