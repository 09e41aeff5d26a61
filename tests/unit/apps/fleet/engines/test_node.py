"""What a node does with an order: a call of our own command, of which nothing is left but what it found."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.apps.fleet.engines import node
from harness.apps.fleet.engines.node import Answer, Order

PROJECT = Path(__file__).resolve().parents[5]
ORDER = Order(fleet="f00", name="call-1", plan=b"{}", project="/nowhere", config=b"[tool.compat]\n", limit_s=60.0)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))  # as on a node where the package is installed
    yield tmp_path


def test_what_a_node_refuses_is_answered_with_its_words_and_nothing_is_left(own_folder: Path) -> None:
    answer = node.do(ORDER)
    assert (answer.code, answer.files) == (2, {})
    assert "is no plan of a fleet of this version" in answer.said
    assert list(own_folder.iterdir()) == []


def test_a_call_that_takes_too_long_is_ended_and_says_so(own_folder: Path) -> None:
    answer = node.do(replace(ORDER, limit_s=0.01))
    assert (answer.code, answer.said) == (124, "it took longer than 0 s")
    assert list(own_folder.iterdir()) == []


def test_what_a_killed_call_left_goes_and_what_is_at_work_stays(own_folder: Path) -> None:
    left, busy, other = (own_folder / f"torchscript-fleet-{name}" for name in ("f00-a-1", "f00-b-1", "f01-a-1"))
    for folder in (left, busy, other):
        (folder / "fleet").mkdir(parents=True)
        (folder / node.LOCK).touch()
    with node._locked(busy / node.LOCK):
        node.forget("f00")
    assert sorted(path.name for path in own_folder.iterdir()) == [busy.name, other.name]


def test_files_of_an_answer_are_written_where_they_are_taken_over(tmp_path: Path) -> None:
    node.unpack(Answer(code=0, said="", files={"store.json": b"{}", "results/ab/abc.json": b"1"}), tmp_path / "to")
    assert (tmp_path / "to" / "results" / "ab" / "abc.json").read_bytes() == b"1"
