"""The cores of a machine: which of them a benchmark runs on, and what is read of them from trees like real ones."""

import os
import subprocess
import sys
from collections.abc import Collection

import pytest
from harness.machine.cores import Placement, choose, cores_in, pin, rank
from pathlib import Path
from harness.machine import cores

PAIRS = {core: frozenset({core % 4, core % 4 + 4}) for core in range(8)}  # 0 and 4 are threads of one core, and so on


def test_quietest_core_comes_first() -> None:
    assert rank([0, 1, 2], {0: 0.1, 1: 0.0, 2: 0.05}, {}) == (1, 2, 0)


def test_one_thread_of_every_physical_core_comes_before_a_second_one() -> None:
    assert rank(range(8), {}, PAIRS) == (0, 1, 2, 3, 4, 5, 6, 7)


def test_core_whose_other_thread_is_busy_is_busy() -> None:
    ranked = rank(range(8), {4: 0.1, 2: 0.01}, PAIRS)
    assert ranked[:4] == (1, 3, 6, 0)  # 6 is the idle half of 2's core
    assert set(ranked[4:]) == {2, 4, 5, 7}


def test_core_that_may_not_be_used_is_not_chosen_and_still_counts() -> None:
    assert rank([0, 1], {5: 0.1}, PAIRS) == (0, 1)
    assert rank([0, 1], {4: 0.1}, PAIRS) == (1, 0)


@pytest.mark.parametrize(
    ("text", "cores"), [("0", {0}), ("0-2,8\n", {0, 1, 2, 8}), ("0,4", {0, 4}), ("", set()), ("1-1", {1})]
)
def test_kernel_list_is_read(text: str, cores: set[int]) -> None:
    assert cores_in(text) == cores


def test_one_core_of_those_that_may_be_used_is_chosen() -> None:
    allowed = os.sched_getaffinity(0)
    placement = choose(1, quiet_s=0.0)
    assert placement.why_not == ""
    assert len(placement.cores) == 1
    assert set(placement.ranked) == allowed
    assert placement.first(1) == placement.cores
    assert set(placement.first(1000)) == allowed
    assert os.sched_getaffinity(0) == allowed


def test_lanes_have_cores_of_their_own_and_callers_may_use_those_of_others() -> None:
    placement = Placement(cores=(1, 3), ranked=(3, 1, 6, 0, 7))
    first, second = placement.lanes(2)
    assert (first.cores, second.cores) == ((1, 3), (0, 6))
    assert (first.ranked, second.ranked) == ((3, 1, 6, 0, 7), (6, 0, 3, 1, 7))
    assert placement.lanes(9) == (first, second)
    assert placement.lanes(1) == (placement,)
    assert Placement(why_not="refused").lanes(2) == (Placement(why_not="refused"),)


@pytest.mark.parametrize(("allowed", "physical"), [(range(8), 4), ({0, 4}, 1), ({0, 1}, 2), ({5}, 1)])
def test_threads_of_one_physical_core_count_once(
    monkeypatch: pytest.MonkeyPatch, allowed: Collection[int], physical: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*allowed})
    monkeypatch.setattr(cores, "_siblings", PAIRS.__getitem__)
    assert cores.physical_cores() == physical
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores.physical_cores() == 1


def test_nothing_is_pinned_where_cores_are_missing() -> None:
    allowed = len(os.sched_getaffinity(0))
    placement = choose(allowed + 1, quiet_s=0.0)
    assert placement == Placement(why_not=f"{allowed + 1} cores are wanted and {allowed} may be used")
    assert placement.first(1) == ()


def test_nothing_is_pinned_where_the_platform_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert choose(1, quiet_s=0.0).why_not == "this platform cannot: [Errno 1] Operation not permitted"
    monkeypatch.delattr(os, "sched_getaffinity")
    assert "this platform cannot" in choose(1, quiet_s=0.0).why_not


def test_process_is_pinned_or_it_is_said_why_not() -> None:
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert pin(child.pid, [core]) == ""
        assert os.sched_getaffinity(child.pid) == {core}
        assert "Invalid argument" in pin(child.pid, [4095])
        assert os.sched_getaffinity(child.pid) == {core}
    assert "No such process" in pin(child.pid, [core])


STAT = """\
cpu  2602675 1027703 730131 2696502 21559 0 6508 10373 0 0
cpu0 1415985 516857 356113 1245977 7235 0 667 5067 0 0
cpu1 1186689 510845 374017 1450524 14323 0 5841 5305 0 0
cpu2 1 0 0 100 0 0 0 0 0 0
cpu3 1 0 0 100 0 0 0 0 0 0
intr 25671677 0 0
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "stat").write_text(STAT)
    (folder / "self" / "cgroup").write_text("0::/\n")
    return folder


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    cpus = tmp_path / "sys" / "devices" / "system" / "cpu"
    for core, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (cpus / f"cpu{core}" / "topology").mkdir(parents=True)
        (cpus / f"cpu{core}" / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    return tmp_path / "sys"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_cores_and_nothing_else_of_a_virtual_machine(proc: Path, sysfs: Path) -> None:
    found = cores.look_at_cores(proc, sysfs, allowed=(0, 1), look_s=0)
    assert (found.visible, found.allowed, found.quota, found.stolen) == (4, 2, None, None)


def test_governors_are_those_of_the_cores_that_may_be_used(sysfs: Path) -> None:
    cpus = sysfs / "devices/system/cpu"
    for core, name in enumerate(("performance", "powersave", "ondemand", "performance")):
        write(cpus / f"cpu{core}/cpufreq/scaling_governor", f"{name}\n")
    assert cores.governors(cpus, (0, 1)) == ("performance", "powersave")
    assert cores.governors(cpus, (0, 3)) == ("performance",)


def test_a_quota_is_read_from_either_version_of_control_groups(proc: Path, sysfs: Path) -> None:
    write(sysfs / "fs/cgroup/cpu.max", "150000 100000\n")
    assert cores.look_at_cores(proc, sysfs, allowed=(0,), look_s=0).quota == 1.5
    (sysfs / "fs/cgroup/cpu.max").unlink()
    (proc / "self" / "cgroup").write_text("3:cpu,cpuacct:/docker/1f\n")
    write(sysfs / "fs/cgroup/cpu/docker/1f/cpu.cfs_quota_us", "200000\n")
    write(sysfs / "fs/cgroup/cpu/docker/1f/cpu.cfs_period_us", "100000\n")
    assert cores.look_at_cores(proc, sysfs, allowed=(0,), look_s=0).quota == 2.0


def test_two_readings_tell_who_took_the_time(proc: Path, sysfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = STAT.replace("cpu2 1 0 0 100 0 0 0 0", "cpu2 5 0 0 110 0 0 0 6")  # 4 busy, 10 idle, 6 stolen ticks
    monkeypatch.setattr("harness.machine.cores.time.sleep", lambda _: (proc / "stat").write_text(later))
    found = cores.look_at_cores(proc, sysfs, allowed=(2, 3))
    assert found.stolen == pytest.approx(6 / 20)


def test_this_machine_is_checked_in_a_moment() -> None:
    found = cores.look_at_cores(look_s=0.05)
    assert found.visible >= found.allowed >= 1
    assert found.stolen is not None
