"""A second torch travels in parts: joined there when the last one has come, and refused where one is damaged."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("carry.sh")
WHEEL = "torch-2.12.0-cp312-cp312-linux_x86_64.whl"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script in a tree of its own, beside a wheel of 100 KB that does not compress."""
    here = tmp_path / "tree" / "tests" / "gpu"
    here.mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as wheel:
        wheel.writestr("torch/__init__.py", "__version__ = '2.12.0'\n")
        wheel.writestr("torch/lib/libtorch.so", os.urandom(100_000))
    return Path(shutil.copy(SCRIPT, here))


def carry(script: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "CARRY_PART_BYTES": "40000"}
    return subprocess.run([script, *words], capture_output=True, text=True, timeout=60, check=False, env=env)


def test_parts_that_come_one_by_one_make_an_interpreter_with_that_torch(script: Path, tmp_path: Path) -> None:
    packed = carry(script, "torch", str(tmp_path / WHEEL))
    assert packed.returncode == 0, packed.stderr
    folder, there = script.parents[2] / ".carry" / "torch", tmp_path / "there"
    parts = sorted(folder.glob("*.part-*"))
    assert [part.stat().st_size for part in parts[:-1]] == [40_000, 40_000]
    for number, part in enumerate(parts, 1):
        for other in parts:
            other.rename(other.with_name(f"away-{other.name}")) if other.exists() else None
        part.with_name(f"away-{part.name}").rename(part)
        said = carry(script, "unpack", str(there))
        assert said.returncode == 0, said.stderr
        assert f"{number} of 3 parts" in said.stdout
    shown = subprocess.run(
        [there / "torch" / "bin" / "python", "-I", "-c", "import torch, pytest; print(torch.__version__)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shown.stdout == "2.12.0\n"  # and what stood beside the Python that has unpacked it


def test_a_damaged_part_is_refused(script: Path, tmp_path: Path) -> None:
    carry(script, "torch", str(tmp_path / WHEEL))
    last = sorted((script.parents[2] / ".carry" / "torch").glob("*.part-*"))[-1]
    last.write_bytes(b"?" + last.read_bytes()[1:])
    said = carry(script, "unpack", str(tmp_path / "there"))
    assert said.returncode == 2
    assert "is damaged: carry its parts again" in said.stderr
    assert not (tmp_path / "there" / "torch").exists()


def test_wrong_words_are_answered_with_the_right_ones(script: Path) -> None:
    said = carry(script, "pack")
    assert said.returncode == 2
    assert "wheels | torch TORCH | unpack FOLDER" in said.stderr
