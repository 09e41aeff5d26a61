"""A given archive is loaded and saved again, in a process, with a stub of torch."""

import zipfile
from dataclasses import replace
from pathlib import Path

from harness.hang import watchdog
from harness.domain.models import GivenArtifact, ModelDeclaration
from harness.domain.outcome import Outcome
from harness.domain.probe import ProbeRequest, ProbeResult
from harness.models.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from tests.programs import stub

MODEL = """
import torch
from fixtures.declare import Sample, model


@model("plain")
def make():
    return Sample(torch.nn.Module(answer=[7]), example=(1,))
"""


def asked(verb: str, declaration: ModelDeclaration) -> ProbeRequest:
    return ProbeRequest(verb=verb, side="new", environment="stub", deadline=stub.PATIENT, declaration=declaration)


def program(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".json"))
        return archive.read(name)


def test_what_is_saved_again_is_the_same_program_and_what_does_not_load_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "one.py").write_text(MODEL)
    (declaration,) = read_fixtures(tmp_path / "models")
    runner = ZygoteRunner({"new": stub.make_environment(tmp_path / "env")}, tmp_path / "probes", watchdog)

    def resave(path: Path) -> ProbeResult:
        return runner(asked("resave", replace(declaration, given=GivenArtifact(path=str(path)))))

    try:
        first = Path(runner(asked("export", declaration)).directory, "plain.pt")
        again = resave(first)
        refused = resave(tmp_path / "nowhere.pt")
    finally:
        runner.close()
    saved = Path(again.directory, "plain.pt")
    assert again.models[0].outcome is Outcome.COMPLETED and saved != first
    assert program(saved) == program(first)
    assert refused.models[0].outcome is Outcome.LOAD_ERROR
    assert not Path(refused.directory, "plain.pt").exists()
