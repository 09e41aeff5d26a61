"""How much memory a worker may have by default."""

from pathlib import Path

import pytest

from harness.machine import control_groups, memory

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 GiB whose control groups lie below the returned folder."""
    (tmp_path / "meminfo").write_text(f"MemFree: 1 kB\nMemTotal: {16 * GIB // 1024} kB\n")
    (tmp_path / "own").write_text("0::/a/b\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(control_groups, "OWN", tmp_path / "own")
    monkeypatch.setattr(control_groups, "MOUNT", tmp_path / "groups")
    (tmp_path / "groups" / "a" / "b").mkdir(parents=True)
    (tmp_path / "groups" / "memory" / "c").mkdir(parents=True)
    return tmp_path / "groups"


def test_without_groups_it_is_the_machines(machine: Path) -> None:
    assert memory.usable_bytes() == 16 * GIB
    assert memory.share_gb() == round(0.9 * 16 * GIB / 1e9, 1)
    (machine / "a" / "b" / "memory.max").write_text("max\n")
    assert memory.usable_bytes() == 16 * GIB


def test_the_tightest_group_on_the_way_up_counts(machine: Path) -> None:
    (machine / "a" / "b" / "memory.max").write_text(f"{8 * GIB}\n")
    (machine / "a" / "memory.max").write_text(f"{4 * GIB}\n")
    assert memory.usable_bytes() == 4 * GIB


def test_groups_of_version_1_are_read_too(machine: Path) -> None:
    control_groups.OWN.write_text("3:cpu,memory:/ignored\n2:memory:/c\n1:cpu:/a\n")
    (machine / "memory" / "c" / "memory.limit_in_bytes").write_text(f"{2 * GIB}\n")
    assert memory.usable_bytes() == 2 * GIB


def test_where_nobody_tells_there_is_no_limit(machine: Path) -> None:
    memory.MEMINFO.unlink()
    assert memory.usable_bytes() is None
    assert memory.share_gb() is None
