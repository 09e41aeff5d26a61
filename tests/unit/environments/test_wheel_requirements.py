"""What the table of wheels says of releases."""

import pytest
from harness.environments.wheel_requirements import LAST_LINE, SOURCE, WHEELS, cuda_of_suffix, wheel_of
from harness.environments.pythons import LAST_KNOWN_RELEASE
from pathlib import Path
from harness.environments import wheel_requirements
from harness.environments.candidate_facts import Wheel


@pytest.mark.parametrize(
    ("release", "cuda", "glibc"),
    [
        ("1.13.1", "11.7", "2.17"),
        ("2.0.1", "11.7", "2.17"),
        ("2.1.2", "12.1", "2.17"),
        ("2.4.1", "12.1", "2.17"),
        ("2.6.0", "12.4", "2.17"),
        ("2.7.1", "12.6", "2.28"),
        ("2.10.0", "12.8", "2.28"),
        ("2.14.1", "13.0", "2.28"),
        ("2.15.0", "13.2", "2.28"),
        ("2.6.0+cpu", None, "2.17"),
        ("2.6.0+cu118", "11.8", "2.17"),
    ],
)
def test_a_release_has_the_cuda_of_its_line(release: str, cuda: str | None, glibc: str) -> None:
    found = wheel_of(release)
    assert found is not None
    assert (found.cuda, found.glibc, found.source) == (cuda, glibc, SOURCE)
    assert bool(found.architectures) is ("+" not in release)


@pytest.mark.parametrize("release", ["1.12.1", "2.16.0", "3.0.0", "prod", "2.6.0+rocm6.2", "2.6.0+cxx11.abi"])
def test_what_the_table_does_not_know_is_not_guessed(release: str) -> None:
    assert wheel_of(release) is None


def test_the_table_is_in_order_and_goes_as_far_as_that_of_the_pythons() -> None:
    assert [row.since for row in WHEELS] == sorted({row.since for row in WHEELS})
    assert LAST_KNOWN_RELEASE.startswith("{}.{}.".format(*LAST_LINE))


@pytest.mark.parametrize(
    ("suffix", "cuda"), [("cu92", "9.2"), ("cu124", "12.4"), ("cpu", None), ("cu", None), ("cu1", None)]
)
def test_suffixes_are_read(suffix: str, cuda: str | None) -> None:
    assert cuda_of_suffix(suffix) == cuda


OLD_VERSION = "__version__ = '2.1.2+cu121'\ndebug = False\ncuda = '12.1'\ngit_version = 'a8e7'\nhip = None\n"
NEW_VERSION = (
    "from typing import Optional\n\n__version__ = '2.15.0+cu132'\ndebug = False\n"
    "cuda: Optional[str] = '13.2'\ngit_version = 'beef'\nhip: Optional[str] = None\n"
)
CPU_VERSION = "__version__ = '2.6.0+cpu'\ncuda: Optional[str] = None\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: bdist_wheel (0.34.2)\nRoot-Is-Purelib: false\nTag: {tag}\n\n"
FLAGS = b"\x7fELF\0sm_junk\0compute capability sm_90 is\0sm_75 sm_80 sm_90 compute_90\0torch\0"


def site(folder: Path, version: str, tag: str, library: bytes | None = FLAGS) -> Path:
    (folder / "torch" / "lib").mkdir(parents=True)
    (folder / "torch" / "version.py").write_text(version)
    (folder / "torch-1.dist-info").mkdir()
    (folder / "torch-1.dist-info" / "WHEEL").write_text(WHEEL.format(tag=tag))
    if library is not None:
        (folder / "torch" / "lib" / "libtorch_python.so").write_bytes(library)
    return folder


def test_an_old_wheel_tells_cuda_and_architectures_and_no_glibc(tmp_path: Path) -> None:
    assert wheel_requirements.look_at_wheel(site(tmp_path, OLD_VERSION, "cp311-cp311-linux_x86_64")) == Wheel(
        cuda="12.1", architectures=("sm_75", "sm_80", "sm_90", "compute_90"), source=wheel_requirements.INSTALLED
    )


def test_a_new_wheel_tells_glibc_by_its_tag(tmp_path: Path) -> None:
    found = wheel_requirements.look_at_wheel(site(tmp_path, NEW_VERSION, "cp311-cp311-manylinux_2_28_x86_64"))
    assert found is not None
    assert (found.cuda, found.glibc) == ("13.2", "2.28")


@pytest.mark.parametrize("library", [None, b"", b"\x7fELF\0nothing here\0"])
def test_a_library_that_does_not_tell_is_no_error(tmp_path: Path, library: bytes | None) -> None:
    found = wheel_requirements.look_at_wheel(site(tmp_path, OLD_VERSION, "cp311-cp311-linux_x86_64", library))
    assert found is not None
    assert found.architectures == ()


def test_a_build_without_cuda_has_no_architectures(tmp_path: Path) -> None:
    found = wheel_requirements.look_at_wheel(site(tmp_path, CPU_VERSION, "cp311-cp311-linux_x86_64"))
    assert found is not None
    assert (found.cuda, found.architectures) == (None, ())


def test_a_folder_without_torch_is_none(tmp_path: Path) -> None:
    assert wheel_requirements.look_at_wheel(tmp_path) is None
    assert wheel_requirements.site_of(tmp_path / "bin" / "python") is None
