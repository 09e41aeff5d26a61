"""Memory, crash dumps, ptrace and containers, from trees like real ones."""

from pathlib import Path

import pytest

from harness.doctor import host
from harness.domain.machine import Container, Limits
from harness.hang import debuggers

GIB = 1 << 30
STATUS = "Name:\tpython\nNoNewPrivs:\t0\nCapEff:\t{capabilities}\nSeccomp:\t{seccomp}\nSeccomp_filters:\t1\n"
EVERYTHING, DOCKERS = "000001fffeffffff", "00000000a80425fb"
OVERLAY = "613 543 0:52 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/AB\n"


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_memory_is_the_machines_or_the_containers(tmp_path: Path) -> None:
    write(tmp_path / "proc/meminfo", f"MemTotal: {16 * GIB // 1024} kB\nMemAvailable: {9 * GIB // 1024} kB\n")
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    found = host.look_at_memory(tmp_path / "proc", tmp_path / "sys", tmp_path / "nowhere")
    assert (found.usable, found.available, found.shared) == (16 * GIB, 9 * GIB, None)
    write(tmp_path / "sys/fs/cgroup/memory.max", f"{4 * GIB}\n")
    found = host.look_at_memory(tmp_path / "proc", tmp_path / "sys", tmp_path)
    assert found.usable == 4 * GIB
    assert found.shared is not None


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    assert host.look_at_memory(tmp_path, tmp_path, tmp_path / "no").usable is None
    found = host.look_at_forensics(tmp_path)
    assert (found.core_pattern, found.ptrace_scope, found.seccomp, found.may_ptrace) == ("", None, None, None)
    assert host.look_at_container(tmp_path, tmp_path, tmp_path) == Container()


LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    unlimited            bytes
Max processes             {processes}                98736                processes
Max open files            1024                 1048576              files
"""


def test_limits_are_those_of_the_user_and_of_the_container(tmp_path: Path) -> None:
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys") == Limits()
    write(tmp_path / "proc/self/limits", LIMITS.format(processes="98736"))
    write(tmp_path / "proc/self/cgroup", "8:pids:/docker/1f\n0::/\n")
    found = host.look_at_limits(tmp_path / "proc", tmp_path / "sys")
    assert found == Limits(tasks=98736, open_files=1024, core_bytes=0)
    write(tmp_path / "sys/fs/cgroup/pids/docker/1f/pids.max", "max\n")
    write(tmp_path / "sys/fs/cgroup/pids/docker/pids.max", "512\n")
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys").tasks == 512
    write(tmp_path / "sys/fs/cgroup/pids.max", "100\n")
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys").tasks == 100


def test_no_limit_is_none(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/limits", LIMITS.format(processes="unlimited"))
    assert host.look_at_limits(tmp_path / "proc", tmp_path / "sys").tasks is None


def test_forensics_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debuggers, "find", lambda name: name if name in ("gdb", "eu-stack") else None)
    write(tmp_path / "self/status", STATUS.format(capabilities=EVERYTHING, seccomp=0))
    write(tmp_path / "sys/kernel/core_pattern", "|/usr/share/apport/apport -p%p\n")
    write(tmp_path / "sys/kernel/yama/ptrace_scope", "1\n")
    found = host.look_at_forensics(tmp_path)
    assert found.core_pattern == "|/usr/share/apport/apport -p%p"
    assert (found.ptrace_scope, found.seccomp, found.may_ptrace) == (1, 0, True)
    assert found.debuggers == ("eu-stack", "gdb")


def test_dockers_capabilities_do_not_hold_ptrace(tmp_path: Path) -> None:
    write(tmp_path / "self/status", STATUS.format(capabilities=DOCKERS, seccomp=2))
    found = host.look_at_forensics(tmp_path)
    assert (found.seccomp, found.may_ptrace) == (2, False)


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
    assert host.look_at_container(tmp_path / "proc", tmp_path / "sys", tmp_path).kind == kind


def test_the_root_mount_tells_where_the_group_is_hidden(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    write(tmp_path / "proc/self/mountinfo", OVERLAY)
    assert host.look_at_container(tmp_path / "proc", tmp_path / "sys", tmp_path).kind == "docker"


def test_the_version_of_control_groups_and_the_group(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/1f\n0::/\n")
    found = host.look_at_container(tmp_path / "proc", tmp_path / "sys", tmp_path)
    assert (found.cgroup_version, found.group) == (1, "/docker/1f")
    write(tmp_path / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    assert host.look_at_container(tmp_path / "proc", tmp_path / "sys", tmp_path).cgroup_version == 2


def test_this_machine_tells_its_memory() -> None:
    assert (host.look_at_memory().usable or 0) > 0
