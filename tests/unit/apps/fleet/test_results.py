"""Results are files that never change; another version or a damaged file is never believed."""

import errno
import math
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.fleet import Examination, Fault, FleetResult
from harness.core.errors import RunDirError
from harness.apps.fleet.plan import known_in
from harness.apps.fleet.results import FleetResults, KeptResults
from harness.apps.fleet.units import FULL_S
from harness.store import codec
from tests.unit.builders.pages import comparison, tensor
from tests.unit.builders.reports import latency, ratio
from tests.unit.apps.fleet.answers import FRAME, artifact, plan_of, result_of

PLANNED = plan_of(artifact("a"), artifact("b"), artifact("c", program="Q"))
FOUND = {name: result_of(PLANNED, name) for name in "abc"}
KEYS = [item.key for item in FOUND.values()]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    results = FleetResults(tmp_path / "store")
    for item in FOUND.values():
        results.save(item, FRAME)
    return tmp_path / "store"


def test_what_is_kept_is_known_and_reads_back(kept: Path) -> None:
    results = FleetResults(kept)
    assert results.known([*KEYS, "0" * 64]) == set(KEYS)
    assert results.read(KEYS[0]) == FOUND["a"]
    assert results.frame(FOUND["a"].frame) == FRAME


def test_a_result_with_more_rounds_counts_and_the_first_one_stays(kept: Path, tmp_path: Path) -> None:
    first = FOUND["a"]

    def timed(rounds: int) -> FleetResult:
        made = latency("a", ratio(1.02))
        return replace(first, facts=replace(first.facts, latency=replace(made, samples=made.samples[:1] * rounds)))

    results = FleetResults(kept)
    others = FleetResults(tmp_path / "other")
    others.save(first, FRAME)
    others.save(timed(30), FRAME, replaces=True)
    results.save(timed(7), FRAME, replaces=True)
    assert results.read(first.key) == timed(7)
    assert results.absorb(tmp_path / "other") == 1
    assert results.read(first.key) == timed(30) and results.status().results == 3
    for path in kept.rglob("*.rounds-*"):
        path.write_bytes(b"{")
    assert results.read(first.key) == first
    assert list(kept.rglob("*.rounds-*")) == []


def test_numbers_that_json_does_not_have_and_names_that_are_no_text_are_kept_as_they_are(tmp_path: Path) -> None:
    """An error relative to a zero is infinite, and such a result was once written and never found again."""
    odd = comparison(tensor(max_rel=math.inf, rel_l2=math.nan, path="output.\udcff"))
    made = replace(FOUND["a"], facts=replace(FOUND["a"].facts, comparisons=(odd,)))
    results = FleetResults(tmp_path / "store")
    results.save(made, FRAME)
    found = results.read(made.key)
    assert found is not None
    (read,) = found.facts.comparisons
    first = read.calls[0].tensors[0]
    assert first.max_rel == math.inf and first.rel_l2 is not None and math.isnan(first.rel_l2)
    assert first.path == r"output.\udcff"


def test_a_result_is_never_changed(kept: Path) -> None:
    results = FleetResults(kept)
    before = results.path(KEYS[0]).read_bytes()
    results.save(result_of(PLANNED, "a"), FRAME)
    assert results.path(KEYS[0]).read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[1]"])
def test_a_damaged_result_is_made_anew(kept: Path, content: bytes) -> None:
    results = FleetResults(kept)
    results.path(KEYS[0]).write_bytes(content)
    assert results.read(KEYS[0]) is None
    assert results.known(KEYS) == {*KEYS[1:]}


def test_a_result_under_another_key_is_not_believed(kept: Path) -> None:
    results = FleetResults(kept)
    results.path(KEYS[0]).write_bytes(results.path(KEYS[1]).read_bytes())
    assert results.read(KEYS[0]) is None


def edit(path: Path, was: bytes, now: bytes) -> None:
    before = path.read_bytes()
    assert was in before
    path.write_bytes(before.replace(was, now))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b'"status":"PASS"', b'"status":"FAIL"'),
        (b'"seconds":2.0', b'"seconds":3.0'),
        (b'"program":"P"', b'"program":"Q"'),
        (b'"seal":"', b'"seal":"0'),
    ],
)
def test_a_result_that_was_edited_is_not_believed_in_one_s_own_folder_or_in_another_one(
    kept: Path, tmp_path: Path, was: bytes, now: bytes
) -> None:
    results = FleetResults(kept)
    edit(results.path(KEYS[0]), was, now)
    mine = FleetResults(tmp_path / "mine")
    assert mine.absorb(kept) == 2
    assert mine.known(KEYS) == {*KEYS[1:]}
    results = FleetResults(kept)
    assert results.known(KEYS) == {*KEYS[1:]}
    results.save(FOUND["a"], FRAME)
    assert results.read(KEYS[0]) == FOUND["a"]


def test_a_result_of_other_content_than_its_key_says_is_not_believed(kept: Path) -> None:
    other = replace(FOUND["a"], content={**FOUND["a"].content, "weights": "others"})
    results = FleetResults(kept)
    results.path(KEYS[0]).unlink()
    results.save(other, FRAME)
    assert results.read(KEYS[0]) is None


def test_a_frame_that_was_edited_is_none(kept: Path) -> None:
    frame = kept / "frames" / f"{FOUND['a'].frame}.json"
    edit(frame, b'"device":"cpu"', b'"device":"gpu"')
    results = FleetResults(kept)
    assert results.known(KEYS) == set()
    results.save(FOUND["a"], FRAME)
    assert results.frame(FOUND["a"].frame) == FRAME


def test_a_frame_under_another_name_is_none(kept: Path) -> None:
    place = kept / "frames" / f"{FOUND['a'].frame}.json"
    place.rename(place.with_name(f"{'0' * 64}.json"))
    results = FleetResults(kept)
    assert results.frame("0" * 64) is None and results.known(KEYS) == set()


def test_a_whole_number_where_a_fraction_may_be_is_no_damage(tmp_path: Path) -> None:
    """TOML has them apart and types have not: read back it is 2.0, and other bytes than were kept."""
    frame = replace(FRAME, limits={"steady": 2})
    made = replace(FOUND["a"], frame=codec.digest(frame), seconds=3)
    results = FleetResults(tmp_path)
    results.save(made, frame)
    assert results.read(made.key) == made and results.frame(made.frame) == frame


def test_an_empty_result_of_a_neighbour_is_not_known(kept: Path, tmp_path: Path) -> None:
    """Its name alone counted, so that nobody ever ran what it should be of."""
    fleet = kept.parent
    results = KeptResults(kept)
    assert known_in(PLANNED.plan, fleet, tmp_path / "nothing", kept) == set(KEYS)
    results.path(KEYS[0]).write_bytes(b"")
    results.path(KEYS[1]).unlink()
    os.mkfifo(results.path(KEYS[1]))
    assert known_in(PLANNED.plan, fleet) == {KEYS[2]}
    assert results.path(KEYS[0]).exists()
    (kept / "store.json").write_text('{"version": 99}')
    assert known_in(PLANNED.plan, fleet) == set()


@pytest.mark.parametrize("part", ["results", "frames", "faults"])
def test_a_folder_in_place_of_a_file_costs_its_own_result_and_is_put_aside(kept: Path, part: str) -> None:
    results = FleetResults(kept)
    path = {
        "results": results.path(KEYS[0]),
        "frames": kept / "frames" / f"{FOUND['a'].frame}.json",
        "faults": kept / "faults" / f"{KEYS[0]}.json",
    }[part]
    path.unlink(missing_ok=True)
    (path / "inside").mkdir(parents=True)
    results = FleetResults(kept)
    assert results.known(KEYS) == {"results": {*KEYS[1:]}, "frames": set(), "faults": set(KEYS)}[part]
    results.add_fault(Fault(key=KEYS[0], label="spurious-memory", text="no memory"))
    results.save(FOUND["a"], FRAME)
    assert results.read(KEYS[0]) == FOUND["a"]
    assert (path.with_name(f"{path.name}.set-aside") / "inside").is_dir()


def test_what_is_kept_is_on_the_disk_before_it_has_its_name(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        done.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    results = FleetResults(kept)
    results.path(KEYS[0]).unlink()
    results.save(FOUND["a"], FRAME)
    assert done == ["file", "rename", "folder"]


def test_a_folder_that_cannot_be_written_is_one_line_without_options_that_a_command_may_not_have(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_path: Path, _data: bytes) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    results = FleetResults(kept)
    results.path(KEYS[0]).unlink()
    monkeypatch.setattr(Path, "write_bytes", refused)
    with pytest.raises(RunDirError, match="Read-only file system; free space, or make the folder writable") as error:
        results.save(FOUND["a"], FRAME)
    assert "--out" not in str(error.value)


def test_a_folder_of_another_version_is_refused_and_left_as_it_is(kept: Path) -> None:
    (kept / "store.json").write_text('{"version": 99}')
    with pytest.raises(RunDirError, match=r"another version of the gate \(99"):
        FleetResults(kept)
    assert len(list(kept.glob("results/*/*.json"))) == 3


def test_another_machine_s_results_are_taken_over_once(kept: Path, tmp_path: Path) -> None:
    mine = FleetResults(tmp_path / "mine")
    mine.save(FOUND["a"], FRAME)
    assert mine.absorb(kept) == 2
    assert mine.absorb(kept) == 0
    assert mine.known(KEYS) == set(KEYS)


def test_what_is_no_folder_of_results_is_refused(tmp_path: Path) -> None:
    mine = FleetResults(tmp_path / "mine")
    with pytest.raises(RunDirError, match="holds no results"):
        mine.absorb(tmp_path)


def test_faults_count_tries_and_end_with_a_result(tmp_path: Path) -> None:
    results = FleetResults(tmp_path)
    fault = Fault(key=KEYS[0], label="spurious-memory", text="no memory")
    assert [results.add_fault(fault).tries for _ in range(3)] == [1, 2, 3]
    results.save(FOUND["a"], FRAME)
    assert results.fault(KEYS[0]) is None


def test_costs_follow_from_what_was_kept(kept: Path, tmp_path: Path) -> None:
    results = FleetResults(tmp_path / "empty")
    assert results.costs().measured == 0
    assert results.costs().seconds[Examination.FULL] == FULL_S
    results = FleetResults(kept)
    assert results.costs().measured == 3
    assert results.costs().seconds == {Examination.FULL: 2.0, Examination.WEIGHTS: 2.0}


def test_what_was_not_used_goes_but_for_what_the_plan_needs(kept: Path) -> None:
    results = FleetResults(kept)
    assert results.collect(30, keep=(), remove=True) == (0, 0)
    for path, _ in results.files():
        os.utime(path, (0, 0))
    assert results.collect(30, keep={KEYS[0]}, remove=False)[0] == 2
    assert results.known(KEYS[:1]) == {KEYS[0]} and results.path(KEYS[1]).exists()
    assert results.collect(30, keep={KEYS[0]}, remove=True)[0] == 2
    assert results.known(KEYS) == {KEYS[0]}
    assert results.frame(FRAME_KEY := FOUND["a"].frame) is not None and FRAME_KEY
