"""What lies in the cache and what is removed: by name, by age, and never what somebody uses."""

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.cache import CacheCleaning, CacheEntry, CacheKind, CacheState
from harness.core.environment import EnvSpec
from harness.core.errors import SelectionError
from harness.environments.builder import EnvironmentBuilder
from harness.environments.cache import Chosen, clean, read_cache
from harness.environments.pythons import OWN_PYTHON
from tests.programs.installers import fake_uv

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)  # use is noted by the clock of the machine
WORKER, STACKS = "native/torch-2.6.0+cu124-0123456789ab", "native/stacks-0123456789ab"
OPERATORS, INDEX = "registries/torch-2.6.0-0123456789ab.json", "releases/0123456789ab.json"
ANSWERS = "answers/torch-2.6.0+cu124-0123456789ab"


class Root:
    """A cache with an environment of each of two releases, and what lies beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "envs"
        self.calls = folder / "calls"
        self.uv = str(fake_uv(folder / "uv", calls=self.calls, body='touch "$site/large"'))
        environments = self.builder().build_all([spec("2.1.2"), spec("2.6.0")])
        self.old, self.new = (Path(each.interpreter).parents[1].name for each in environments)
        for name in (f"{WORKER}/worker", f"{WORKER}/.lock", f"{STACKS}/libstacks.so", OPERATORS, INDEX):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text("x" * 5000)

    def builder(self) -> EnvironmentBuilder:
        return EnvironmentBuilder(self.folder, progress=lambda *_: None, uv=self.uv, deadline_s=30.0, free_disk_bytes=0)

    def used(self, name: str, days_ago: float) -> None:
        moment = (NOW - dt.timedelta(days=days_ago)).timestamp()
        place = self.folder / name
        for path in (place.with_name(f"{place.name}.use"), place / ".lock", place):
            if path.exists():
                os.utime(path, (moment, moment))

    def all_used(self, days_ago: float) -> None:
        for name in (self.old, self.new, WORKER, STACKS, OPERATORS, INDEX):
            self.used(name, days_ago)

    def clean(self, *names: str, days: float | None = None, dry_run: bool = False) -> CacheCleaning:
        since = NOW - dt.timedelta(days=days) if days is not None else None
        return clean(self.folder, Chosen(names=names, unused_since=since), NOW, lambda _: None, dry_run=dry_run)

    def entries(self) -> dict[str, CacheEntry]:
        return {entry.name: entry for entry in read_cache(self.folder, NOW, lambda _: None).entries}


def test_a_release_is_all_of_its_builds(root: Root) -> None:
    environment = root.builder().build(spec("2.6.0+cpu"))
    built = Path(environment.interpreter).parents[1].name
    assert built.startswith("torch-2.6.0+cpu-")
    assert root.entries()[built].release == "2.6.0"
    assert {root.new, built} <= names(root.clean("2.6.0").removed)
    assert root.old in root.entries()


def spec(release: str) -> EnvSpec:
    return EnvSpec(name=f"torch {release}", release=release, python=OWN_PYTHON)


def names(entries: tuple[CacheEntry, ...]) -> set[str]:
    return {entry.name for entry in entries}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path)


def test_it_tells_what_lies_there_of_which_release_how_large_and_when_it_was_used(root: Root) -> None:
    root.all_used(days_ago=3)
    entries = root.entries()
    kinds = {name: (entry.kind, entry.release) for name, entry in entries.items()}
    assert kinds == {
        root.old: (CacheKind.ENVIRONMENT, "2.1.2"),
        root.new: (CacheKind.ENVIRONMENT, "2.6.0"),
        WORKER: (CacheKind.COMPILED, "2.6.0"),
        STACKS: (CacheKind.COMPILED, ""),
        OPERATORS: (CacheKind.OPERATORS, "2.6.0"),
        INDEX: (CacheKind.RELEASES, ""),
    }
    assert {entry.used for entry in entries.values()} == {(NOW - dt.timedelta(days=3)).isoformat()}
    assert {entry.state for entry in entries.values()} == {CacheState.READY}
    assert all(entry.size_bytes >= 5000 for name, entry in entries.items() if "/" in name)


def test_answers_of_a_release_go_with_it(root: Root) -> None:
    place = root.folder / ANSWERS / "key" / "answer.json"
    place.parent.mkdir(parents=True)
    place.write_text("x" * 5000)
    entry = root.entries()[ANSWERS]
    assert (entry.kind, entry.release, entry.size_bytes >= 5000) == (CacheKind.ANSWERS, "2.6.0", True)
    assert ANSWERS not in names(root.clean("2.1.2").removed)
    assert ANSWERS in names(root.clean("2.6.0").removed)
    assert not place.exists()


def test_what_is_not_ours_in_the_root_is_neither_shown_nor_removed(root: Root, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (root.folder / "torch-2.6.0-cp311-deadbeef").symlink_to(tmp_path / "real")
    for name in ("torch-notes", "native/mine", "releases/2027.json", "src"):
        (root.folder / name).mkdir(parents=True)
    root.all_used(days_ago=400)
    assert len(root.entries()) == 6
    assert len(root.clean(days=0).removed) == 6
    assert (tmp_path / "real").is_dir() and (root.folder / "torch-2.6.0-cp311-deadbeef").is_symlink()
    assert all((root.folder / name).is_dir() for name in ("torch-notes", "native/mine", "releases/2027.json", "src"))


def test_what_was_not_used_for_so_long_is_removed_and_the_rest_stays(root: Root) -> None:
    root.all_used(days_ago=1)
    root.used(root.old, 31)
    root.used(STACKS, 31)
    cleaning = root.clean(days=30)
    assert names(cleaning.removed) == {root.old, STACKS}
    assert cleaning.freed_bytes == sum(entry.size_bytes for entry in cleaning.removed) > 0
    assert set(root.entries()) == {root.new, WORKER, OPERATORS, INDEX}
    assert not list(root.folder.glob(f"{root.old}*"))


def test_use_makes_an_environment_young_again(root: Root) -> None:
    root.all_used(days_ago=31)
    root.builder().build(spec("2.1.2"))
    assert root.new in names(root.clean(days=30).removed)
    assert set(root.entries()) == {root.old}


def test_an_environment_that_no_gate_has_used_since_is_as_old_as_it_is(root: Root) -> None:
    root.all_used(days_ago=1)
    (root.folder / f"{root.old}.use").unlink()
    moment = (NOW - dt.timedelta(days=31)).timestamp()
    os.utime(root.folder / root.old / "environment.json", (moment, moment))
    assert names(root.clean(days=30, dry_run=True).removed) == {root.old}
    assert names(root.clean(days=30).removed) == {root.old}


@pytest.mark.parametrize("release", [True, False])
def test_a_name_is_a_release_or_one_entry(root: Root, release: bool) -> None:
    removed = names(root.clean("2.6.0" if release else root.new).removed)
    assert removed == ({root.new, WORKER, OPERATORS} if release else {root.new})


def test_a_name_that_is_not_there_removes_nothing_and_names_what_is(root: Root) -> None:
    with pytest.raises(SelectionError) as caught:
        root.clean("2.6.0", "2.7.0")
    assert "no 2.7.0" in str(caught.value) and "2.1.2" in str(caught.value)
    with pytest.raises(SelectionError):
        root.clean("../envs")
    assert len(root.entries()) == 6


def test_a_dry_run_says_the_same_and_removes_nothing(root: Root) -> None:
    root.all_used(days_ago=31)
    would = root.clean(days=30, dry_run=True)
    assert len(root.entries()) == 6
    assert would.removed == root.clean(days=30).removed
    assert root.entries() == {}


def test_what_a_gate_uses_stays_until_that_gate_has_ended(root: Root) -> None:
    root.all_used(days_ago=31)
    gate = root.builder()
    gate.build(spec("2.6.0"))
    root.all_used(days_ago=31)  # it has run for long
    assert root.entries()[root.new].state is CacheState.IN_USE
    cleaning = root.clean(days=30)
    assert names(cleaning.removed) == {root.old}
    assert names(cleaning.kept) == {root.new, WORKER, STACKS, OPERATORS, INDEX}
    assert {entry.state for entry in cleaning.kept} == {CacheState.IN_USE}
    del gate
    assert names(root.clean(days=30).removed) == {root.new, WORKER, STACKS, OPERATORS, INDEX}


def test_a_removal_that_is_interrupted_leaves_nothing_that_is_used(root: Root) -> None:
    def interrupted() -> Callable[[str], None]:
        def tick(name: str) -> None:
            if name == f"{root.new}/lib":
                raise KeyboardInterrupt

        return tick

    with pytest.raises(KeyboardInterrupt):
        clean(root.folder, Chosen(names=("2.6.0",)), NOW, interrupted(), dry_run=False)
    assert (root.folder / root.new / "lib").is_dir() and not (root.folder / root.new / "bin").exists()
    assert root.entries()[root.new].state is CacheState.INCOMPLETE
    before = root.calls.read_text()
    assert Path(root.builder().build(spec("2.6.0")).interpreter).exists()
    assert root.calls.read_text() == before + "venv\npip\n"
    assert root.entries()[root.new].state is CacheState.READY


def test_a_half_that_was_left_is_removed_by_its_name(root: Root) -> None:
    (root.folder / root.new / "environment.json").unlink()
    assert names(root.clean(root.new).removed) == {root.new}


def test_a_gate_that_begins_while_an_environment_is_removed_builds_it_again(root: Root) -> None:
    built: list[str] = []

    def tick(name: str) -> None:
        if name == root.new:
            # at this moment the remover has the lock and the environment is still whole
            builder = EnvironmentBuilder(
                root.folder, progress=lambda *_: None, uv=root.uv, deadline_s=0.2, free_disk_bytes=0
            )
            with pytest.raises(Exception, match="not built within"):
                builder.build(spec("2.6.0"))
            built.append(name)

    clean(root.folder, Chosen(names=(root.new,)), NOW, tick, dry_run=False)
    assert built == [root.new] and root.new not in root.entries()


def test_what_others_link_to_is_not_counted_as_freed(root: Root, tmp_path: Path) -> None:
    large = root.folder / root.new / "shared"
    large.write_bytes(bytes(1 << 20))
    os.link(large, root.folder / root.new / "twice")
    whole = root.entries()[root.new]
    assert whole.freed_bytes == whole.size_bytes
    os.link(large, tmp_path / "cache of uv")
    shared = root.entries()[root.new]
    assert shared.size_bytes == whole.size_bytes
    assert whole.freed_bytes - shared.freed_bytes >= 1 << 20


def test_an_empty_cache_and_one_that_is_not_there_have_no_entries(tmp_path: Path) -> None:
    assert read_cache(tmp_path / "none", NOW, lambda _: None).entries == ()
    assert not (tmp_path / "none").exists()
    assert clean(tmp_path / "none", Chosen(), NOW, lambda _: None, dry_run=False).removed == ()
