"""The disk of environments that need not be there yet, and uv's cache."""

from pathlib import Path

import pytest

from harness.doctor import host


def test_a_folder_that_is_not_there_is_on_the_disk_of_the_nearest_that_is(tmp_path: Path) -> None:
    found = host.look_at_disk(tmp_path / "a" / "b", tmp_path / "cache" / "uv")
    assert (found.folder, found.writable, found.same_filesystem) == (str(tmp_path), True, True)
    assert (found.free or 0) > 0


def test_proc_is_another_filesystem(tmp_path: Path) -> None:
    assert host.look_at_disk(tmp_path, Path("/proc/self")).same_filesystem is False


def test_without_uv_there_is_no_cache_to_link_from(tmp_path: Path) -> None:
    found = host.look_at_disk(tmp_path, None)
    assert (found.cache, found.same_filesystem) == ("", None)


@pytest.mark.parametrize(
    ("environ", "cache"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/uv"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/big"}, "/big/uv"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/big", "UV_CACHE_DIR": "/fast/uv"}, "/fast/uv"),
    ],
)
def test_the_cache_is_where_uv_has_it(environ: dict[str, str], cache: str) -> None:
    assert str(host.uv_cache(environ)) == cache
