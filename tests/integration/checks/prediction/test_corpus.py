"""Artifacts of libraries that nobody here wrote: the gate's words against plain torch, a process for each load."""

from pathlib import Path
from typing import Any

import pytest

from harness.environments.builder import default_environment_root
from tests.corpus.grading import judged, predictions
from tests.corpus.keeping import unpacked
from tests.corpus.lane import Lane, drawn, examine, make_chunk, release_of
from tests.corpus.releases import RELEASES, Release

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[4]
Records = list[dict[str, Any]]


@pytest.fixture(scope="module", params=["eleven", pytest.param("twenty", marks=pytest.mark.slow)])
def committed(
    request: pytest.FixtureRequest, old_python: str, new_python: str, tmp_path_factory: pytest.TempPathFactory
) -> Records:
    """What both releases of CI make of the committed artifacts, which five releases have written.

    Eleven are each second and one that calls an operator of torchvision, which is not there.
    """
    folder = tmp_path_factory.mktemp("corpus")
    pythons = {"2.1.2": old_python, "2.6.0": new_python}
    lane = Lane(folder, niceness=0, pythons=pythons, registries=default_environment_root(PROJECT))
    files = unpacked(folder / "twenty")
    assert len(files) == 20
    if request.param == "eleven":
        files = sorted({*files[::2], *(path for path in files if "ssdlite" in path.name)})
        assert len(files) == 11
    records: Records = [{"name": file.stem, "bytes": file.stat().st_size} for file in files]
    both = [release_of("2.1.2"), release_of("2.6.0")]
    examine(lane, {file.stem: file for file in files}, records, both, [("2.1.2", "2.6.0")], libraries=())
    return records


def test_committed_artifacts_are_predicted_as_plain_torch_loads_them(committed: Records) -> None:
    asked = list(predictions(committed))
    assert [(p.record["name"], p.loader, p.predicted, p.why, p.error) for p in asked if p.grade != "right"] == []
    assert len(asked) == 2 * len(committed)
    assert {p.error == "" for p in asked} == {True, False}  # some do not load: a library's operators, a newer release's


def test_committed_artifacts_have_the_statuses_that_plain_torch_gives_them(committed: Records) -> None:
    asked = list(judged(committed))
    assert [(j.record["name"], j.status, j.reason, j.expected, j.truth) for j in asked if j.grade != "right"] == []
    small = [record for record in committed if record["bytes"] <= Lane.judged_bytes]  # predicted only, where larger
    assert [j.record["name"] for j in asked] == [record["name"] for record in small]
    assert len(small) == len(committed) - 1


@pytest.mark.slow
@pytest.mark.parametrize("exporter", RELEASES, ids=lambda release: release.torch)
def test_a_drawn_fifth_is_as_plain_torch_has_it(exporter: Release, tmp_path: Path) -> None:
    lane = Lane(tmp_path, niceness=0)
    fifth = drawn(lane, exporter)[::5]
    parts = [fifth[start : start + lane.chunk] for start in range(0, len(fifth), lane.chunk)]
    records = [record for part in parts for record in make_chunk(lane, exporter, part)]
    asked, statuses = list(predictions(records)), list(judged(records))
    assert [(p.record["name"], p.loader, p.predicted, p.why, p.error) for p in asked if p.grade != "right"] == []
    assert [(j.record["name"], j.pair, j.status, j.reason, j.truth) for j in statuses if j.grade != "right"] == []
    assert len(asked) > 200
