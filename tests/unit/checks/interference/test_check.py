"""Recordings made by hand: who is named, who is not, and what is said of the pauses."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from harness.checks.interference.check import check
from harness.checks.interference.recording import Course, Part, ProcessCourse, Recording
from harness.checks.interference.timeline import timeline
from harness.core.errors import ExitCode
from harness.core.interference import Interference, Loss
from harness.verdict.exit_codes import exit_code
from harness.verdict.interference import culprits

MS = 1_000_000
LOOK = 10 * MS
SECONDS = 16
EVERY = 400 * MS
WATCHED, CULPRIT, TWIN = 10, 20, 30
BOTH = frozenset({0, 1})


def times(first: int = 0, every: int = EVERY) -> range:
    return range(first, SECONDS * 1000 * MS - EVERY, every)


def spread(begins: Iterable[int], long: int, share: float = 1.0) -> list[Part]:
    """Return parts of one look each, as they are recorded."""
    looks = sorted({at // LOOK * LOOK for begin in begins for at in range(begin, begin + long, LOOK)})
    return [Part(at, at + LOOK, int(share * LOOK)) for at in looks]


def process(pid: int, *, cpus: frozenset[int] = BOTH, is_new: bool = False, **parts: list[Part]) -> ProcessCourse:
    return ProcessCourse(pid=pid, name=f"p{pid}", command=f"p{pid}", parent=1, cpus=cpus, is_new=is_new, **parts)


def recorded(*others: ProcessCourse, **watched: list[Part]) -> Interference:
    recording = Recording(
        watched=process(WATCHED),
        threads=[Course(**watched)],
        others=list(others),
        looks_ns=list(range(0, SECONDS * 1000 * MS, LOOK)),
        own_cpu_ns=160 * MS,
    )
    assert timeline(recording).processes[1].spans
    found = check(recording, chosen=False)
    return replace(found, culprits=culprits(found))


def drifting(seed: int) -> list[int]:
    """Return when a process that sleeps between its bursts has them."""
    chance = np.random.default_rng(seed)
    return [int(at) for at in np.cumsum(chance.integers(330 * MS, 470 * MS, size=34))]


def test_who_takes_the_cpu_is_named_and_who_has_the_same_rhythm_is_not() -> None:
    found = recorded(
        process(CULPRIT, ran=spread(drifting(1), 90 * MS, 0.5)),
        process(TWIN, ran=spread(drifting(2), 90 * MS, 0.5)),
        ran=spread(times(every=LOOK), LOOK, 0.3),
        waited=spread(drifting(1), 90 * MS, 0.5),
    )
    assert found.culprits == (CULPRIT,) and exit_code(found) is ExitCode.INCOMPATIBLE
    assert found.pauses[Loss.CPU].count == 34 and found.pauses[Loss.CPU].lost_s == pytest.approx(34 * 0.045)
    named = found.associations[0]
    assert named.pid == CULPRIT and named.loss is Loss.CPU and named.beside == pytest.approx(0.5) and named.usual < 0.2
    assert found.own_share == pytest.approx(0.01, rel=0.01) and found.tested == 2


def test_nobody_is_named_who_cannot_run_where_the_process_waits_or_always_runs() -> None:
    found = recorded(
        process(CULPRIT, cpus=frozenset({2}), ran=spread(times(), 90 * MS, 0.5)),
        process(TWIN, ran=spread(times(every=LOOK), LOOK, 0.5)),
        ran=spread(times(every=LOOK), LOOK, 0.3),
        waited=spread(times(), 90 * MS, 0.5),
    )
    assert found.culprits == () and exit_code(found) is ExitCode.INCONCLUSIVE
    assert found.pauses[Loss.CPU].period_s == pytest.approx(0.4)
    had = {one.pid: one.meanwhile_s for one in found.active}
    assert had[TWIN] == pytest.approx(found.pauses[Loss.CPU].lost_s / 2)


def test_who_is_blocked_on_the_disk_beside_it_is_named_and_by_which_rhythm() -> None:
    found = recorded(
        process(CULPRIT, ran=spread(times(), LOOK, 0.01), blocked=spread(times(LOOK), 80 * MS)),
        ran=spread(times(every=2 * LOOK), LOOK, 0.1),
        blocked=spread(times(2 * LOOK), 60 * MS),
    )
    assert found.culprits == (CULPRIT,) and found.associations[0].loss is Loss.BLOCKED
    assert found.active[0].period_s == pytest.approx(0.4) and found.active[0].bursts == len(times())


def test_of_two_with_one_rhythm_only_the_one_that_explains_more_is_named() -> None:
    found = recorded(
        process(CULPRIT, ran=spread(times(), 90 * MS, 0.6)),
        process(TWIN, ran=spread(times(20 * MS), 30 * MS, 0.3)),
        ran=spread(times(every=LOOK), LOOK, 0.3),
        waited=spread(times(), 90 * MS, 0.6),
    )
    assert found.culprits == (CULPRIT,)
    assert {one.pid: one.score > 4 for one in found.associations} == {CULPRIT: True, TWIN: True}


def test_processes_that_come_and_go_count_as_one() -> None:
    begins = drifting(3)
    found = recorded(
        *(process(100 + place, is_new=True, ran=spread([at], 90 * MS, 0.5)) for place, at in enumerate(begins)),
        ran=spread(times(every=LOOK), LOOK, 0.3),
        waited=spread(begins, 90 * MS, 0.5),
    )
    assert {one.bursts for one in found.active} == {1} and found.culprits == ()  # of another name each
    same = [
        replace(process(100 + place, is_new=True, ran=spread([at], 90 * MS, 0.5)), name="scrape")
        for place, at in enumerate(begins)
    ]
    found = recorded(*same, ran=spread(times(every=LOOK), LOOK, 0.3), waited=spread(begins, 90 * MS, 0.5))
    assert found.culprits == (100,) and found.active[0].count == len(begins)


def test_too_few_pauses_tell_nothing_and_hardly_any_are_well() -> None:
    begins = drifting(4)[:12]
    culprit = process(CULPRIT, ran=spread(begins, 90 * MS, 0.5))
    work = spread(times(every=LOOK), LOOK, 0.3)
    few = recorded(culprit, ran=work, waited=spread(begins, 90 * MS, 0.5))
    assert few.culprits == () and few.associations == () and exit_code(few) is ExitCode.INCONCLUSIVE
    well = recorded(culprit, ran=work, waited=spread(begins, LOOK, 0.3))
    assert exit_code(well) is ExitCode.COMPATIBLE
    assert exit_code(replace(well, counts_waits=False)) is ExitCode.INCONCLUSIVE
    assert exit_code(replace(well, ended=True)) is ExitCode.INCONCLUSIVE


def test_a_process_that_waits_all_the_time_has_pauses_where_it_waits_more() -> None:
    begins = drifting(5)
    waits = spread(times(every=LOOK), LOOK, 0.21)
    more = {part.begin_ns for part in spread(begins, 90 * MS)}
    found = recorded(
        process(CULPRIT, ran=spread(begins, 90 * MS, 0.5)),
        ran=spread(times(every=LOOK), LOOK, 0.3),
        waited=[part._replace(amount_ns=int(0.8 * LOOK)) if part.begin_ns in more else part for part in waits],
    )
    assert found.pauses[Loss.CPU].count > 20 and found.culprits == (CULPRIT,)


def test_threads_that_keep_each_other_waiting_are_nobody_elses_fault() -> None:
    recording = Recording(
        watched=process(WATCHED, cpus=frozenset({0})),
        threads=[Course(ran=spread(times(), 90 * MS)), Course(waited=spread(times(), 90 * MS))],
        looks_ns=list(range(0, SECONDS * 1000 * MS, LOOK)),
    )
    assert Loss.CPU not in check(recording, chosen=False).pauses


def test_one_look_is_a_recording_of_nothing() -> None:
    found = check(Recording(watched=process(WATCHED), threads=[Course()], looks_ns=[5]), chosen=True)
    assert found.seconds == 0 and found.pauses == {} and found.processes == 1
