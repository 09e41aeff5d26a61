"""What happened to the machine while a run went on: a planted trouble of each kind is told, a quiet machine is not.

What happens to GPUs is in ``test_gpus.py``.
"""

from dataclasses import replace

import pytest

from harness.verdict.machine import disturbing, touching
from harness.apps.doctor.during_run import during_run_notes, happened_between
from harness.core.machine import MachineEvent
from harness.apps.doctor.facts import CounterReading
from harness.core.outcome import Status
from harness.core.verdict import Finding
from tests.unit.builders.machines import GB, GPUS
from tests.unit.builders.reports import verdict

BEFORE = CounterReading(
    at_s=1000.0,
    slept_s=5.0,
    cores=4,
    core_s=9000.0,
    busy_s=4000.0,
    stolen_s=100.0,
    own_s=1.0,
    quota_cores=2.0,
    throttled_s=7.0,
    hot=3,
    governors=("performance",),
    oom_kills=2,
    machine_oom_kills=5,
    tasks_refused=1,
    swapped_bytes=10 * GB,
    available_bytes=20 * GB,
    disk_bytes=50 * GB,
    shared_bytes=8 * GB,
    gpus=GPUS,
)
# 100 s on four cores, half of it used by the run itself; others used 5 %, the hypervisor took 1 %.
QUIET = replace(BEFORE, at_s=1100.0, core_s=9400.0, busy_s=4220.0, stolen_s=104.0, own_s=201.0, throttled_s=7.5)


def happened(**changes: object) -> tuple[MachineEvent, ...]:
    """Return the events of a quiet run but for ``changes`` at its end."""
    return happened_between(BEFORE, replace(QUIET, **changes)).events  # type: ignore[arg-type]


def test_of_a_quiet_machine_nothing_is_reported() -> None:
    found = happened_between(BEFORE, QUIET)
    assert found.events == ()
    assert (found.seconds, found.stolen, found.others) == (100.0, 0.01, 0.05)
    assert during_run_notes(found) == ()


@pytest.mark.parametrize(
    ("changes", "name", "said", "touches"),
    [
        ({"oom_kills": 4}, "out of memory", "killed 2 processes in this container", "ends"),
        ({"machine_oom_kills": 6}, "out of memory", "killed 1 process on this machine, none of them", "times"),
        ({"oom_kills": None, "machine_oom_kills": 6}, "out of memory", "1 process on this machine", "times"),
        ({"tasks_refused": 4}, "process limit", "could not be started 3 times", "ends"),
        ({"slept_s": 65.0}, "suspended", "slept for 60 s", "times"),
        ({"throttled_s": 27.0}, "CPU quota", "the quota of 2 cores stopped everything for 20.0 s of 100 s", "times"),
        ({"stolen_s": 140.0}, "steal time", "took 10 %", "times"),
        ({"busy_s": 4300.0}, "other load", "used 25 %", "times"),
        ({"hot": 9}, "heat", "slowed down 6 times", "times"),
        ({"governors": ("powersave",)}, "CPU governor", "performance before, powersave now", "times"),
        ({"cores": 2}, "cores", "4 could be used before, 2 now", "times"),
        ({"swapped_bytes": 12 * GB}, "swap", "2.0 GB went to swap", "times"),
        ({"available_bytes": GB // 2}, "memory", "0.5 GB is left", "ends"),
        ({"disk_bytes": GB // 5}, "disk", "0.2 GB is left", "ends"),
        ({"shared_bytes": 7 * GB}, "shared memory", "1.00 GB more of /dev/shm", "ends"),
        ({"gpus": replace(GPUS, profilers=("nsys",))}, "profilers", "started meanwhile: nsys", "times"),
    ],
)
def test_each_trouble_is_reported_with_what_it_does_and_what_to_do(
    changes: dict[str, object], name: str, said: str, touches: str
) -> None:
    if changes.get("oom_kills", 2) is None:
        found = happened_between(replace(BEFORE, oom_kills=None), replace(QUIET, **changes)).events  # type: ignore[arg-type]
        touches = "ends"  # it may have been one of ours
    else:
        found = happened(**changes)
    (event,) = found
    assert event.name == name
    assert said in event.read
    assert touches in event.touches
    assert event.so_what.endswith(".")
    assert event.do_this.endswith(".")


@pytest.mark.parametrize(
    "changes",
    [
        {"throttled_s": 7.9},
        {"stolen_s": 118.0},
        {"busy_s": 4235.0},
        {"swapped_bytes": 10 * GB + (1 << 20)},
        {"shared_bytes": 8 * GB - (1 << 20)},
        {"slept_s": 5.5},
        {"hot": None},
        {"governors": ()},
        {"gpus": None},
        {"oom_kills": 0},
    ],
)
def test_what_is_small_or_not_reported_is_no_trouble(changes: dict[str, object]) -> None:
    assert happened(**changes) == ()


def test_the_shares_of_a_moment_are_not_reported() -> None:
    found = happened_between(BEFORE, replace(BEFORE, at_s=1000.1, core_s=9000.4, busy_s=4000.4))
    assert (found.stolen, found.others, found.events) == (None, None, ())


def test_of_other_cores_than_before_no_share_is_reported() -> None:
    found = happened_between(BEFORE, replace(QUIET, cores=2, core_s=9200.0))
    assert (found.stolen, found.others) == (None, None)


def test_times_are_read_with_load_and_ends_without_an_answer_with_kills() -> None:
    during_run = happened_between(BEFORE, replace(QUIET, oom_kills=3, stolen_s=140.0))
    crash = verdict("din", "alone", Status.FAIL, Finding(kind="crash", message="crashes"))
    values = verdict("din", "alone", Status.FAIL, Finding(kind="values", message="differs"))
    slow = verdict("din", "latency", Status.FAIL, Finding(kind="latency", message="slower"))
    assert [event.name for event in touching(during_run, crash)] == ["out of memory"]
    raised = verdict("din", "alone", Status.FAIL, Finding(kind="load_error", message="unknown operator"))
    assert touching(during_run, values) == touching(during_run, raised) == ()
    refused = happened_between(BEFORE, replace(QUIET, tasks_refused=9))
    assert [event.name for event in touching(refused, raised)] == ["process limit"]
    assert [event.name for event in touching(during_run, slow)] == ["steal time"]
    assert [event.name for event in disturbing(during_run)] == ["steal time"]
    assert touching(None, slow) == disturbing(None) == ()


def test_a_note_says_what_it_was_what_it_does_and_what_to_do() -> None:
    during_run = happened_between(BEFORE, replace(QUIET, stolen_s=140.0))
    (note,) = during_run_notes(during_run)
    assert during_run_notes(during_run, times=False) == ()
    assert len(during_run_notes(happened_between(BEFORE, replace(QUIET, oom_kills=3)), times=False)) == 1
    assert note == (
        "while it ran, steal time: the hypervisor took 10 % of the cores' time. Intervals are wide, and small slowdowns "
        "stay undecided. Use a machine with cores of its own, or --latency thorough."
    )
