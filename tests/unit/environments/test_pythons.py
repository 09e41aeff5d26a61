"""The table of wheels, release syntax, and the choice of one Python for a pair of releases."""

import pytest

from harness.environments.pythons import choose_python, parse_release, python_range
from harness.core.errors import ConfigError, EnvironmentUnavailable

INSTALLED = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


@pytest.mark.parametrize(
    ("release", "oldest", "newest"),
    [
        ("1.12.1", (3, 8), (3, 10)),
        ("1.13.0", (3, 8), (3, 11)),
        ("1.13.1", (3, 8), (3, 11)),
        ("2.1.2", (3, 8), (3, 11)),
        ("2.2.0", (3, 8), (3, 12)),
        ("2.4.1", (3, 8), (3, 12)),
        ("2.5.0", (3, 9), (3, 13)),
        ("2.6", (3, 9), (3, 13)),
        ("2.6.0+cpu", (3, 9), (3, 13)),
        ("2.8.0", (3, 9), (3, 13)),
        ("2.9.0", (3, 10), (3, 13)),
        ("2.14.1", (3, 10), (3, 13)),
        ("2.15.0", (3, 11), (3, 13)),
    ],
)
def test_range_follows_the_index(release: str, oldest: tuple[int, int], newest: tuple[int, int]) -> None:
    assert python_range(release) == (oldest, newest)


@pytest.mark.parametrize("release", ["2.16.0", "2.99.1", "3.0.0"])
def test_release_beyond_the_table_is_like_the_last_known(release: str) -> None:
    assert python_range(release) == python_range("2.15.0")


def test_release_older_than_every_usable_wheel_is_refused() -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"torch 1\.3\.0 has no wheel"):
        python_range("1.3.0")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("2.6.0", "2.6.0"),
        ("2.6", "2.6.0"),
        (" v2.6.0 ", "2.6.0"),
        ("2.6.0+cpu", "2.6.0+cpu"),
        ("2.6+cu124", "2.6.0+cu124"),
        ("2.7.0rc1", "2.7.0rc1"),
        ("2.7.0.dev20250101+cu128", "2.7.0.dev20250101+cu128"),
    ],
)
def test_release_is_written_in_full(text: str, release: str) -> None:
    assert parse_release(text) == release


@pytest.mark.parametrize("text", ["2.six", "", "latest", "torch==2.6.0", "2", "1!2.6.0", "2.6.0.1", ">=2.6"])
def test_nonsense_for_a_release_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_release(text)
    assert repr(text) in caught.value.message
    assert "2.6.0" in caught.value.hint


def test_preferred_python_wins_when_it_suits_both() -> None:
    assert choose_python(["2.1.2", "2.6.0"], INSTALLED, preferred="3.9") == "3.9"


def test_newest_suitable_python_is_taken_when_the_preferred_one_does_not_suit() -> None:
    assert choose_python(["2.1.2", "2.6.0"], INSTALLED, preferred="3.13") == "3.11"
    assert choose_python(["2.6.0"], INSTALLED, preferred="3.8") == "3.13"


def test_preferred_python_that_is_not_installed_is_not_taken() -> None:
    assert choose_python(["2.6.0"], ["3.10", "3.9.18"], preferred="3.12") == "3.10"


def test_python_3_14_is_never_chosen() -> None:
    assert choose_python(["2.15.0"], INSTALLED, preferred="3.14") == "3.13"


def test_missing_python_names_ranges_installed_ones_and_the_advice() -> None:
    with pytest.raises(EnvironmentUnavailable) as caught:
        choose_python(["2.1.2", "2.15.0"], ["3.12", "3.9"])
    assert "torch 2.1.2 needs Python 3.8 to 3.11" in caught.value.message
    assert "torch 2.15.0 needs Python 3.11 to 3.13" in caught.value.message
    assert "installed: 3.9, 3.12" in caught.value.message
    assert "install Python 3.11" in caught.value.hint
    assert "--env NAME=PYTHON" in caught.value.hint


def test_releases_without_a_common_python_are_said_to_have_none() -> None:
    with pytest.raises(EnvironmentUnavailable) as caught:
        choose_python(["1.12.1", "2.15.0"], INSTALLED)
    assert "no single Python" in caught.value.hint


def test_no_installed_python_is_said_plainly() -> None:
    with pytest.raises(EnvironmentUnavailable, match="installed: none"):
        choose_python(["2.6.0"], [])


def test_choosing_for_no_release_is_refused() -> None:
    with pytest.raises(ConfigError):
        choose_python([], INSTALLED)


def test_nonsense_for_a_python_is_refused() -> None:
    with pytest.raises(ConfigError, match="'three' is not a Python version"):
        choose_python(["2.6.0"], ["three"])
