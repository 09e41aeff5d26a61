"""What the table of wheels says of releases."""

import pytest

from harness.doctor.wheels import LAST_LINE, SOURCE, WHEELS, cuda_of_suffix, wheel_of
from harness.environments.pythons import LAST_KNOWN_RELEASE


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
