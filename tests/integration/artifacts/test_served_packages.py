"""Packages of AOTInductor below Triton: bound by their own call specification, and answering so in both workers."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.core.models import Artifact, ArtifactKind, InputSet
from harness.core.outcome import Outcome
from harness.core.probe import ModelRun
from tests.integration.artifacts.test_adopting import Place, inputs_of
from tests.integration.artifacts.test_served_requests import numbers, served, shapes, taken
from tests.worker.transcripts import replay

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROW = ("float32", [2, 4])


@pytest.fixture(scope="module")
def place(packages: Path, new_python: str) -> Iterator[Place]:
    """Not below /tmp, where 2.6.0 unpacks packages."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="served-") as folder:
        with replay.both_workers(new_python, Path(folder)) as runner:
            yield Place(runner, packages, ArtifactKind.PACKAGE)


def test_nested_and_keyword_arguments_are_bound_by_their_places_in_both_workers(place: Place) -> None:
    names = ("KWARGS[scale]", "ARGS[1][pair][1]", "ARGS[0]", "INPUT__1")
    config = "".join(taken(name, "FP32", "1" if name.startswith("K") else "2, 4") for name in names)
    result = served(place, "nested", f'platform: "torch_aoti"\n{config}')
    adopted = result.data["adopted"]
    assert adopted["inputs_note"] == (
        "guessed from config.pbtxt: forward(ARGS[0]=float32[2, 4], ARGS[1]={'pair': (float32[2, 4], float32[2, 4])},"
        " KWARGS={'scale': float32[1]})"
    )
    method, arguments = inputs_of(result)["example"]
    assert method == "forward(**)"
    assert shapes(arguments) == [ROW, {"pair": [ROW, ROW]}, {"scale": ("float32", [1])}]
    artifact = Artifact(
        model="nested",
        path=str(place.folder / "nested.pt2"),
        digest="nested",
        size_bytes=1,
        operators=(),
        inputs_dir=str(Path(result.directory) / "inputs"),
        input_sets=(InputSet(name="example", method=method),),
        kind=ArtifactKind.PACKAGE,
    )
    runs = (ModelRun(artifact=artifact, schedule=(("example", 2),)),)
    answers = [place.runner(replay.asked("run", worker, runs=runs)) for worker in replay.WORKERS]
    assert [answer.models[0].outcome for answer in answers] == [Outcome.COMPLETED] * 2, answers
    python, native = (replay.outputs(Path(answer.directory)) for answer in answers)
    assert python == native and len(python) == 2


def test_numbers_cover_what_the_package_takes(place: Place) -> None:
    config = taken("INPUT__0", "INT64", "2") + taken("ARGS[1]", "FP32", "2, 4")
    result = served(place, "scorer", f'platform: "torch_aoti"\n{config}')
    assert [name for name, _ in result.data["adopted"]["input_sets"]] == ["example", "range"]
    drawn = numbers(result, "range")
    assert drawn.max() == 299, result.data["adopted"]
    assert "ARGS[0] from" in result.data["adopted"]["inputs_note"]
    assert np.isfinite(numbers(result, "range", 1)).all()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (taken("ids", "INT64", "2") + taken("ARGS[1]", "FP32", "2, 4"), "ids is no input of the package, which takes"),
        (taken("ARGS[0]", "INT64", "2"), "forward(ARGS[0], ARGS[1]): the configuration has no input for ARGS[1]"),
        (taken("ARGS[0]", "INT64", "-1") + taken("ARGS[1]", "FP32", "2, 4"), "the size of ARGS[0] is open"),
    ],
)
def test_what_the_backend_would_not_serve_is_loaded_and_not_called(place: Place, config: str, why: str) -> None:
    adopted = served(place, "scorer", f'platform: "torch_aoti"\n{config}').data["adopted"]
    assert adopted["input_sets"] == [] and why in adopted["inputs_note"]
