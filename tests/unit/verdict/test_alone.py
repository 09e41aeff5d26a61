"""One verdict on an artifact alone, for the upgrade, the rollback and the matrix; one sentence for what was not made."""

import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.verdict.alone import judge_one, not_made, with_damage
from harness.core.models import GivenArtifact
from harness.core.outcome import Outcome, Status
from harness.core.probe import Failure
from harness.core.verdict import Finding
from harness.probing.facts import OldAnswers, Export
from tests.unit.builders.verdicts import call, compared, tensor, verdict as judged
from tests.unit.builders.stages import FINGERPRINTS, artifact, declared, effects, probed, result


@pytest.mark.parametrize(("precision", "told"), [("high", True), ("highest", False)])
def test_another_setting_that_changes_numbers_is_reported_with_the_difference(precision: str, *, told: bool) -> None:
    verdict = judge_one(
        "m/alone",
        export=Export(declaration=declared(), outcome=Outcome.COMPLETED, artifact=artifact()),
        baseline=OldAnswers(results=(result(), result()), numerics={"matmul_precision": "highest"}),
        probe=probed(result(), data={"numerics": {"matmul_precision": precision}}),
        comparison=compared(call(tensor())),
        names=("torch 2.1.2", "torch 2.6.0"),
        fingerprints=FINGERPRINTS,
        effects=effects(),
    )
    assert verdict.status is Status.FAIL
    (finding,) = verdict.findings
    assert any("matmul_precision" in text for _, text in finding.story) is told
    assert finding.evidence == "probes/k"


FAILED = Failure(type="RuntimeError", message="The following operation failed:\nRuntimeError: no room", phase="save")


@pytest.mark.parametrize(
    ("given", "failure", "words"),
    [
        (None, FAILED, "could not be exported in torch 2.1.2: RuntimeError: no room"),
        (GivenArtifact(path="/m.pt"), FAILED, "could not be taken over in torch 2.1.2: RuntimeError: no room"),
        (None, None, "could not be exported in torch 2.1.2: out of memory"),
        (
            None,
            Failure(type="KeyError", message="7", phase="construct"),
            "could not be exported in torch 2.1.2: fixtures/m.py:1 raises KeyError: 7",
        ),
    ],
)
def test_what_was_not_made_is_said_alike_everywhere(
    given: GivenArtifact | None, failure: Failure | None, words: str
) -> None:
    export = Export(declaration=declared(given=given), outcome=Outcome.OUT_OF_MEMORY, failure=failure)
    assert not_made(export, "torch 2.1.2") == words
    assert not_made(export) == words.replace(" in torch 2.1.2", "")


EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "models"
REFUSED = Finding(kind="load_error", message="does not load", error="RuntimeError: PytorchStreamReader failed")


def cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def without(path: Path, ending: str) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if not name.endswith(ending):
                archive.writestr(name, content)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: cut(path, 0.6), "truncated"),
        (lambda path: cut(path, 0.0), "empty"),
        (lambda path: without(path, "data/0"), "data/0"),
        (lambda path: without(path, "data.pkl"), "zip archive without a model"),
        (lambda path: without(path, "constants.pkl"), "pickled module"),
        (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "git lfs pull"),
    ],
)
def test_a_damaged_file_that_loads_in_neither_release_is_not_judged(
    tmp_path: Path, damage: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "ranker.pt"
    shutil.copy(EXAMPLES / "ranker.pt", path)
    same = judged(Status.SAME_FAIL, REFUSED)
    assert with_damage(same, str(path)) == same  # which fails otherwise: there, and here
    damage(path)
    found = with_damage(same, str(path))
    assert (found.status, found.kinds, found.decides) == (Status.INCONCLUSIVE, ("damaged_file",), True)
    assert found.findings[0].message.startswith("not judged: the file is ")
    assert words in f"{found.findings[0].message}; {found.findings[0].advice}" and found.findings[0].advice
    for other in (judged(Status.FAIL, REFUSED), judged(Status.SAME_FAIL, replace(REFUSED, kind="call_error"))):
        assert with_damage(other, str(path)) == other
