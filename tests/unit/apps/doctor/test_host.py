"""This machine and its container, read from trees like real ones: disk, memory, limits, counters."""

from pathlib import Path
import pytest
from harness.apps.doctor import host
from harness.core.machine import Container, Limits
from harness.core.machine import CounterReading
from harness.machine.load import TICK_S


def test_a_folder_that_is_not_there_is_on_the_disk_of_the_nearest_that_is(tmp_path: Path) -> None:
    found = host.look_at_disk(tmp_path / "a" / "b")
    assert (found.folder, found.writable) == (str(tmp_path), True)
    assert (found.free or 0) > 0


GIB = 1 << 30
OVERLAY = "613 543 0:52 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/AB\n"


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_memory_is_the_machines_or_the_containers(tmp_path: Path) -> None:
    write(tmp_path / "proc/meminfo", f"MemTotal: {16 * GIB // 1024} kB\nMemAvailable: {9 * GIB // 1024} kB\n")
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    found = host.look_at_memory(tmp_path / "proc", tmp_path / "sys")
    assert (found.usable, found.available) == (16 * GIB, 9 * GIB)
    write(tmp_path / "sys/fs/cgroup/memory.max", f"{4 * GIB}\n")
    assert host.look_at_memory(tmp_path / "proc", tmp_path / "sys").usable == 4 * GIB


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    assert host.look_at_memory(tmp_path, tmp_path).usable is None
    assert host.look_at_container(tmp_path, tmp_path) == Container()


LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max processes             {processes}                98736                processes
Max open files            1024                 1048576              files
"""


def test_limits_are_those_of_the_user_and_of_the_container(tmp_path: Path) -> None:
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys") == Limits()
    write(tmp_path / "proc/self/limits", LIMITS.format(processes="98736"))
    write(tmp_path / "proc/self/cgroup", "8:pids:/docker/1f\n0::/\n")
    found = host.look_at_limits(tmp_path / "proc", tmp_path / "sys")
    assert found == Limits(tasks=98736, open_files=1024)
    write(tmp_path / "sys/fs/cgroup/pids/docker/1f/pids.max", "max\n")
    write(tmp_path / "sys/fs/cgroup/pids/docker/pids.max", "512\n")
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys").tasks == 512
    write(tmp_path / "sys/fs/cgroup/pids.max", "100\n")
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys").tasks == 100


def test_no_limit_is_none(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/limits", LIMITS.format(processes="unlimited"))
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys").tasks is None


@pytest.mark.parametrize(
    ("own", "files", "kind"),
    [
        ("0::/user.slice/user-0.slice/session-1.scope\n", (), ""),
        ("0::/\n", (".dockerenv",), "docker"),
        ("12:cpu:/docker/1f2e\n0::/\n", (), "docker"),
        ("0::/system.slice/docker-1f2e.scope\n", (), "docker"),
        ("0::/\n", ("run/.containerenv",), "podman"),
        ("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-1f.scope\n", (), "kubernetes"),
        ("0::/\n", ("var/run/secrets/kubernetes.io/serviceaccount/token",), "kubernetes"),
        ("0::/system.slice/crio-1f.scope\n", (), "container"),
    ],
)
def test_engines_are_told_by_what_they_leave(tmp_path: Path, own: str, files: tuple[str, ...], kind: str) -> None:
    write(tmp_path / "proc/self/cgroup", own)
    for name in files:
        write(tmp_path / name)
    assert host.look_at_container(tmp_path / "proc", tmp_path).kind == kind


def test_the_root_mount_tells_where_the_group_is_hidden(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    write(tmp_path / "proc/self/mountinfo", OVERLAY)
    assert host.look_at_container(tmp_path / "proc", tmp_path).kind == "docker"


def test_the_group_that_tells_most_is_taken(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/1f\n0::/\n")
    assert host.look_at_container(tmp_path / "proc", tmp_path).group == "/docker/1f"


def test_this_machine_tells_its_memory() -> None:
    assert (host.look_at_memory().usable or 0) > 0


STAT = """\
cpu  300 0 100 500 0 0 0 100 0 0
cpu0 100 20 30 400 5 1 4 40 0 0
cpu1 200 0 50 300 5 0 0 60 0 0
cpu2 9000 0 0 0 0 0 0 0 0 0
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    write(tmp_path / "proc/stat", STAT)
    write(tmp_path / "proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\n")
    write(tmp_path / "proc/vmstat", "pswpin 10\npswpout 30\noom_kill 4\n")
    write(tmp_path / "proc/self/cgroup", "0::/app\n")
    return tmp_path / "proc"


def read(proc: Path, **more: object) -> CounterReading:
    root = proc.parent
    where = {"shared": root, **more}
    return host.read_counters(root, proc=proc, sys=root / "sys", allowed=(0, 1), **where)  # type: ignore[arg-type]


def test_time_is_that_of_the_cores_that_may_be_used(proc: Path) -> None:
    found = read(proc)
    assert found.cores == 2
    assert (found.core_s, found.busy_s, found.stolen_s) == pytest.approx((1215 * TICK_S, 405 * TICK_S, 100 * TICK_S))


def test_the_machine_tells_of_swap_kills_and_room(proc: Path) -> None:
    found = read(proc)
    assert (found.machine_oom_kills, found.swapped_bytes) == (4, 40 * host.PAGE_BYTES)
    assert (found.oom_kills, found.tasks_refused) == (None, None)
    assert found.available_bytes == 9_000_000 * 1024


def test_room_is_that_of_the_two_folders_named(proc: Path) -> None:
    """Other programs write to the disk meanwhile, so its free bytes are never compared; /proc always has none."""
    found = read(proc, shared=Path("/proc"))
    assert found.disk_bytes
    assert found.shared_bytes == 0


def test_groups_of_version_2_tell_of_kills_refusals_and_room(proc: Path) -> None:
    group = proc.parent / "sys/fs/cgroup/app"
    write(group / "memory.events", "low 0\nhigh 7\nmax 2\noom 1\noom_kill 3\noom_group_kill 0\n")
    write(group / "pids.events", "max 6\n")
    write(group / "memory.max", "5000\n")
    write(group / "memory.current", "4600\n")
    write(group / "memory.stat", "anon 12\ninactive_file 300\n")
    found = read(proc)
    assert (found.oom_kills, found.tasks_refused, found.available_bytes) == (3, 6, 700)


def test_the_nearest_group_that_tells_counts(proc: Path) -> None:
    """Inside a container the path that the kernel names is not there, and the root is the container's own group."""
    write(proc.parent / "sys/fs/cgroup/memory.events", "oom_kill 2\n")
    assert read(proc).oom_kills == 2
    write(proc.parent / "sys/fs/cgroup/app/memory.events", "oom_kill 1\n")
    assert read(proc).oom_kills == 1


def test_groups_of_version_1_tell_the_same(proc: Path) -> None:
    write(proc / "self/cgroup", "8:pids:/docker/1f\n4:memory:/docker/1f\n")
    groups = proc.parent / "sys/fs/cgroup"
    write(groups / "memory/docker/1f/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    write(groups / "memory/docker/1f/memory.limit_in_bytes", "8000\n")
    write(groups / "memory/docker/1f/memory.usage_in_bytes", "7900\n")
    write(groups / "pids/docker/pids.events", "max 1\n")
    found = read(proc)
    assert (found.oom_kills, found.tasks_refused, found.available_bytes) == (5, 1, 100)


def test_a_limit_that_is_none_takes_no_room(proc: Path) -> None:
    write(proc.parent / "sys/fs/cgroup/app/memory.max", "max\n")
    write(proc.parent / "sys/fs/cgroup/app/memory.current", "4600\n")
    assert read(proc).available_bytes == 9_000_000 * 1024


def test_heat_and_governors_are_those_of_the_cores(proc: Path) -> None:
    cpus = proc.parent / "sys/devices/system/cpu"
    assert read(proc).hot is None
    for core in (0, 1, 2):
        write(cpus / f"cpu{core}/thermal_throttle/core_throttle_count", f"{core + 1}\n")
        write(cpus / f"cpu{core}/cpufreq/scaling_governor", "performance\n")
    write(cpus / "cpu0/thermal_throttle/package_throttle_count", "10\n")
    found = read(proc)
    assert (found.hot, found.governors) == (13, ("performance",))


def test_where_nothing_can_be_read_nothing_is_reported(tmp_path: Path) -> None:
    found = host.read_counters(
        tmp_path / "gone", proc=tmp_path / "p", sys=tmp_path / "s", shared=tmp_path / "n", allowed=(0,)
    )
    assert (found.core_s, found.throttled_s, found.hot, found.oom_kills, found.swapped_bytes) == (
        0,
        0,
        None,
        None,
        None,
    )
    assert (found.available_bytes, found.disk_bytes, found.shared_bytes) == (None, None, None)


def test_this_machine_can_be_read_twice() -> None:
    first = host.read_counters(Path("/"))
    assert sum(number * number for number in range(300_000)) > 0
    second = host.read_counters(Path("/"))
    assert second.at_s > first.at_s
    assert second.own_s >= first.own_s
    assert second.core_s >= first.core_s > 0
