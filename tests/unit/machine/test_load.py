"""What is read of the machine around a benchmark."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.machine import load
from harness.machine.load import CoreTime, Quota, Watch, core_times_in, cpu_s_in, quota

# Recorded on Linux 6.18, two cores, 100 ticks per second.
STAT = """\
cpu  1009879 701 225003 1209710 6999 0 2330 3474 0 0
cpu0 472712 701 104138 646669 2419 0 337 1697 0 0
cpu1 537167 0 120864 563041 4579 0 1992 1776 0 0
intr 8638122 0 0 0 0
ctxt 56773478
btime 1795253000
"""
PROCESS = (
    "8771 (python (3) x) R 8769 8771 8771 0 -1 4194304 39518 0 6 0 1234 66 0 0 20 0 3 0 1294385 3370721280 51123 "
    "18446744073709551615 1 1 0 0 0 0 0 16781312 16898 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


@pytest.fixture(autouse=True)
def hundred_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "TICK_S", 0.01)


def test_cores_are_read_one_by_one() -> None:
    times = core_times_in(STAT)
    assert list(times) == [0, 1]
    assert times[0].busy == pytest.approx(5778.88)
    assert times[0].stolen == pytest.approx(16.97)
    assert times[0].total == pytest.approx(5778.88 + 16.97 + 6466.69 + 24.19)


def test_kernel_without_steal_has_none_stolen() -> None:
    (time_of_0,) = core_times_in("cpu0 100 0 0 900\n").values()
    assert time_of_0 == CoreTime(total=10.0, busy=1.0, stolen=0.0)


def test_time_of_a_process_is_read_behind_any_name() -> None:
    assert cpu_s_in(PROCESS) == pytest.approx(13.0)
    assert cpu_s_in("") == 0.0


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_quota_of_version_2_is_the_tightest_on_the_way_up(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/system.slice/docker-1.scope\n")
    root = tmp_path / "cgroup"
    group(root / "system.slice", cpu__max="400000 100000\n", cpu__stat="usage_usec 5\nthrottled_usec 0\n")
    inner = {"cpu__max": "150000 100000\n", "cpu__stat": "nr_periods 7\nthrottled_usec 2500000\n"}
    group(root / "system.slice" / "docker-1.scope", **inner)
    assert quota(root, tmp_path / "own") == Quota(cores=1.5, throttled_s=2.5)


def test_quota_of_version_1_is_read(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("5:memory:/x\n2:cpu,cpuacct:/docker/1\n0::/\n")
    root = tmp_path / "cgroup"
    group(root / "cpu,cpuacct", cpu__cfs_quota_us="-1\n", cpu__cfs_period_us="100000\n", cpu__stat="throttled_time 0\n")
    inner = {"cpu__cfs_quota_us": "200000\n", "cpu__cfs_period_us": "100000\n"}
    group(root / "cpu,cpuacct" / "docker" / "1", **inner, cpu__stat="nr_throttled 3\nthrottled_time 1500000000\n")
    assert quota(root, tmp_path / "own") == Quota(cores=2.0, throttled_s=1.5)


@pytest.mark.parametrize("limit", ["max 100000\n", ""])
def test_group_without_a_limit_has_no_quota(tmp_path: Path, limit: str) -> None:
    (tmp_path / "own").write_text("0::/\n")
    group(tmp_path / "cgroup", cpu__max=limit)
    assert quota(tmp_path / "cgroup", tmp_path / "own") == Quota()


def test_machine_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert quota(tmp_path / "nothing", tmp_path / "none") == Quota()


BURN = "import time\nprint(flush=True)\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


def test_work_of_others_on_the_cores_is_distinguished_from_our_own() -> None:
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        os.sched_setaffinity(child.pid, [core])
        child.stdout.readline()
        foreign, own = Watch([core]), Watch([core])
        with foreign.attentive([]), own.attentive([child.pid]):
            time.sleep(0.5)
        child.kill()
    other = foreign.machine_state(cores=[core], why_not_pinned="", gpu=None).others
    # Neighbours of this test may have used the core too, and the child only what they left of it.
    assert other > 0.5
    assert own.machine_state(cores=[core], why_not_pinned="", gpu=None).others < other - 0.03


def test_time_outside_of_attention_does_not_count() -> None:
    watch = Watch([])
    machine_state = watch.machine_state(cores=[], why_not_pinned="no reason", gpu=None)
    assert (machine_state.others, machine_state.stolen, machine_state.cores, machine_state.why_not_pinned) == (
        0.0,
        0.0,
        (),
        "no reason",
    )


def test_time_of_inattention_is_left_out_and_costs_nothing_outside_of_attention() -> None:
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        os.sched_setaffinity(child.pid, [core])
        child.stdout.readline()
        always, partly = Watch([core]), Watch([core])
        with always.attentive([]), partly.attentive([]):
            with partly.inattentive([]):
                time.sleep(0.4)
        with partly.inattentive([]):
            time.sleep(0.1)
        child.kill()
    assert always._seen.busy > 0.2
    assert partly._seen.total < 0.25 * always._seen.total


def test_process_that_has_gone_used_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    watch = Watch([])
    with watch.attentive([child.pid]):
        pass
    assert watch.machine_state(cores=[], why_not_pinned="", gpu=None).others <= 1.0
