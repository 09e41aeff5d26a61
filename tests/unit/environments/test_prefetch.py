"""Environments built ahead by fake installers, and what becomes of those that nobody needs."""

import threading
from pathlib import Path

import pytest

from harness.environments.prefetch import Prefetch
from harness.core.errors import EnvironmentUnavailable
from tests.programs import stub
from tests.unit.environments.test_builder import Bench, spec


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def waits_for(bench: Bench, *releases: str) -> str:
    """An installer that, for these releases, goes on only once the file ``go`` is there."""
    cases = "|".join(releases)
    return bench.uv(
        f'case "$version" in {cases}) touch "{bench.folder}/$version"; '
        f'while [ ! -e "{bench.folder}/go" ]; do sleep 0.02; done;; esac'
    )


def test_what_was_built_ahead_is_handed_over_and_counted_once(bench: Bench) -> None:
    with Prefetch(bench.builder()) as prefetch:
        prefetch.begin([spec("2.2.0")])
        found = prefetch.environment(spec("2.2.0"))
        assert Path(found.interpreter).exists()
        assert prefetch.environment(spec("2.2.0")).interpreter == found.interpreter
        assert bench.calls == ["venv", "pip"]
        assert list(prefetch.built) == ["torch 2.2.0"]


def test_what_is_there_already_counts_as_found(bench: Bench) -> None:
    bench.builder().build(spec("2.2.0"))
    with Prefetch(bench.builder()) as prefetch:
        assert prefetch.environment(spec("2.2.0")).built_s == 0.0
        assert prefetch.built == {}


def test_an_unneeded_build_is_ended_and_not_waited_for(bench: Bench) -> None:
    with Prefetch(bench.builder(waits_for(bench, "2.2.0"))) as prefetch:
        prefetch.begin([spec("2.2.0"), spec("2.5.0")])
        assert stub.eventually(lambda: (bench.folder / "2.2.0").exists())
        assert prefetch.environment(spec("2.4.0")).spec.release == "2.4.0"  # while the other one still waits
        assert stub.eventually(lambda: not stub.processes_naming(bench.folder / "fake_uv"))
    assert list(prefetch.built) == ["torch 2.4.0"]
    assert len(bench.markers()) == 1


def test_one_is_built_at_a_time_and_the_first_that_is_needed_may_still_wait_its_turn(bench: Bench) -> None:
    with Prefetch(bench.builder(waits_for(bench, "2.2.0"))) as prefetch:
        prefetch.begin([spec("2.2.0"), spec("2.5.0")])
        assert stub.eventually(lambda: (bench.folder / "2.2.0").exists())
        assert bench.calls == ["venv", "pip"]
        assert prefetch.environment(spec("2.5.0")).spec.release == "2.5.0"
    assert list(prefetch.built) == ["torch 2.5.0"]


def test_leaving_ends_what_is_being_built(bench: Bench) -> None:
    with pytest.raises(KeyboardInterrupt), Prefetch(bench.builder(waits_for(bench, "2.2.0"))) as prefetch:
        prefetch.begin([spec("2.2.0")])
        assert stub.eventually(lambda: (bench.folder / "2.2.0").exists())
        raise KeyboardInterrupt
    assert not stub.processes_naming(bench.folder / "fake_uv")
    assert not bench.markers()
    assert "prefetch" not in {thread.name for thread in threading.enumerate()}


def test_a_build_that_fails_ahead_fails_for_whoever_asks_for_it(bench: Bench) -> None:
    with Prefetch(bench.builder(bench.uv("exit 1"))) as prefetch:
        prefetch.begin([spec("2.2.0")])
        with pytest.raises(EnvironmentUnavailable, match="torch 2.2.0"):
            prefetch.environment(spec("2.2.0"))
        assert prefetch.built == {}
