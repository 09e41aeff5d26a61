"""What the files of the kernel say of the cores, from trees like real ones."""

from pathlib import Path

import pytest

from harness.system import cores

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
def sys(tmp_path: Path) -> Path:
    cpus = tmp_path / "sys" / "devices" / "system" / "cpu"
    for core, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (cpus / f"cpu{core}" / "topology").mkdir(parents=True)
        (cpus / f"cpu{core}" / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    return tmp_path / "sys"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_cores_threads_and_nothing_else_of_a_virtual_machine(proc: Path, sys: Path) -> None:
    found = cores.look_at_cores(proc, sys, allowed=(0, 1), look_s=0)
    assert (found.visible, found.allowed, found.threads_per_core) == (4, 2, 2)
    assert (found.governors, found.turbo, found.quota, found.stolen, found.busy) == ((), None, None, None, None)


def test_governors_are_those_of_the_cores_that_may_be_used(proc: Path, sys: Path) -> None:
    for core, name in enumerate(("performance", "powersave", "ondemand", "performance")):
        write(sys / f"devices/system/cpu/cpu{core}/cpufreq/scaling_governor", f"{name}\n")
    assert cores.look_at_cores(proc, sys, allowed=(0, 1), look_s=0).governors == ("performance", "powersave")
    assert cores.look_at_cores(proc, sys, allowed=(0, 3), look_s=0).governors == ("performance",)


@pytest.mark.parametrize(
    ("file", "text", "turbo"),
    [
        ("intel_pstate/no_turbo", "0\n", True),
        ("intel_pstate/no_turbo", "1\n", False),
        ("cpufreq/boost", "1\n", True),
        ("cpufreq/boost", "0\n", False),
        ("cpufreq/boost", "?\n", None),
    ],
)
def test_turbo_is_reported_by_either_driver(proc: Path, sys: Path, file: str, text: str, turbo: bool | None) -> None:
    write(sys / "devices/system/cpu" / file, text)
    assert cores.look_at_cores(proc, sys, allowed=(0,), look_s=0).turbo is turbo


def test_a_quota_is_read_from_either_version_of_control_groups(proc: Path, sys: Path) -> None:
    write(sys / "fs/cgroup/cpu.max", "150000 100000\n")
    assert cores.look_at_cores(proc, sys, allowed=(0,), look_s=0).quota == 1.5
    (sys / "fs/cgroup/cpu.max").unlink()
    (proc / "self" / "cgroup").write_text("3:cpu,cpuacct:/docker/1f\n")
    write(sys / "fs/cgroup/cpu/docker/1f/cpu.cfs_quota_us", "200000\n")
    write(sys / "fs/cgroup/cpu/docker/1f/cpu.cfs_period_us", "100000\n")
    assert cores.look_at_cores(proc, sys, allowed=(0,), look_s=0).quota == 2.0


def test_two_readings_tell_who_took_the_time(proc: Path, sys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = STAT.replace("cpu2 1 0 0 100 0 0 0 0", "cpu2 5 0 0 110 0 0 0 6")  # 4 busy, 10 idle, 6 stolen ticks
    monkeypatch.setattr("harness.system.cores.time.sleep", lambda _: (proc / "stat").write_text(later))
    found = cores.look_at_cores(proc, sys, allowed=(2, 3))
    assert found.stolen == pytest.approx(6 / 20)
    assert found.busy == pytest.approx(4 / 20)


def test_this_machine_is_checked_in_a_moment() -> None:
    found = cores.look_at_cores(look_s=0.05)
    assert found.visible >= found.allowed >= 1
    assert found.stolen is not None
