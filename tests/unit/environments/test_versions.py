"""Which releases lie between two: from what installers print, and from what a user names."""

import pytest

from harness.core.errors import ConfigError
from harness.environments.versions import between, in_order, requirement, resolved


def test_requirement_is_between_both_ends_whichever_is_older_and_without_what_is_known() -> None:
    assert requirement("2.1.2", "2.6.0") == requirement("2.6.0", "2.1.2") == "torch>=2.1.2,<=2.6.0"
    assert requirement("2.1.2+cpu", "2.6.0", ["2.6.0", "2.5.1"]) == "torch>=2.1.2,<=2.6.0,!=2.6.0,!=2.5.1"


@pytest.mark.parametrize(
    ("output", "release"),
    [
        ("torch==2.6.0\n", "2.6.0"),
        ("# made by uv\ntorch==2.13.0+cpu\n", "2.13.0"),
        ("", None),
        ("torchvision==1\n", None),
    ],
)
def test_what_a_resolver_printed(output: str, release: str | None) -> None:
    assert resolved(output) == release


def test_patch_releases_count_and_candidates_do_not() -> None:
    found = ("2.6.0", "2.10.0", "2.5.1", "2.6.0rc1", "2.5.0", "2.4.1", "2.5.0.dev1", "2.2")
    assert between(found, "2.1.2", "2.6.0") == ("2.1.2", "2.2.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0")


def test_the_rollback_goes_from_the_newer_to_the_older() -> None:
    assert between(("2.5.0", "2.3.1", "2.4.0"), "2.6.0", "2.3.0") == ("2.6.0", "2.5.0", "2.4.0", "2.3.1", "2.3.0")


def test_ends_stay_as_they_were_written_even_where_the_index_lacks_them() -> None:
    assert between(("2.5.0",), "2.4.0+cpu", "2.6.0+cpu") == ("2.4.0+cpu", "2.5.0", "2.6.0+cpu")


def test_named_releases_are_put_in_order_of_the_way() -> None:
    assert in_order(["2.5.1", "2.10.0", "2.2.2"], "2.1.2", "2.15.0") == ("2.1.2", "2.2.2", "2.5.1", "2.10.0", "2.15.0")
    assert in_order(["2.2.2", "2.5.1"], "2.6.0", "2.1.2") == ("2.6.0", "2.5.1", "2.2.2", "2.1.2")


def test_names_of_interpreters_keep_the_order_in_which_they_were_typed() -> None:
    assert in_order(["nightly", "2.6.0"], "prod", "next") == ("prod", "nightly", "2.6.0", "next")


def test_the_ends_may_be_named_among_the_others() -> None:
    assert in_order(["2.1.2", "2.3.1", "2.6.0"], "2.1.2", "2.6.0") == ("2.1.2", "2.3.1", "2.6.0")


@pytest.mark.parametrize(
    ("named", "old", "new", "message"),
    [
        (["2.7.0"], "2.1.2", "2.6.0", "2.7.0 does not lie between 2.1.2 and 2.6.0"),
        (["2.0.1"], "2.6.0", "2.1.2", "2.0.1 does not lie between 2.6.0 and 2.1.2"),
        (["2.3.1", "2.3.1"], "2.1.2", "2.6.0", "2.3.1 is named twice"),
        ([], "2.6.0", "2.6.0", "both ends are 2.6.0"),
    ],
)
def test_nonsense_is_refused(named: list[str], old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        in_order(named, old, new)
