"""Real artifacts asked twice: what has not changed is not asked again, and what has changed is never taken for it."""

import shutil
import uuid
from pathlib import Path

import pytest

from harness.probing.kept_answers import SIZE_VARIABLE
from tests.integration.gate import PROJECT, Run, compat
from tests.programs import cli

pytestmark = [pytest.mark.integration, pytest.mark.slow]
EXAMPLES = PROJECT / "examples" / "models"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model of a name that nobody had before, in a cache that all tests share."""
    monkeypatch.setenv(SIZE_VARIABLE, "1")
    folder = tmp_path / "models"
    folder.mkdir()
    put("ranker", folder / f"m{uuid.uuid4().hex}")
    return folder


def put(example: str, place: Path) -> None:
    for suffix in (".pt", ".inputs.py"):
        shutil.copyfile(EXAMPLES / f"{example}{suffix}", place.with_suffix(suffix))


def earlier(run: Run) -> int:
    return sum(run.report.earlier_answers.values())


def test_only_what_is_unchanged_is_not_asked_again(
    models: Path, old_python: str, new_python: str, tmp_path: Path
) -> None:
    def asked(name: str, *words: str) -> Run:
        sides = ("--env", f"old={old_python}", "--env", f"new={new_python}", "--scenario", "alone", "--latency", "off")
        return compat(tmp_path / name, "--artifacts", str(models), *sides, *words, all_planted=False)

    (place,) = (path.with_suffix("") for path in models.glob("*.pt"))
    first, again, fresh = asked("first"), asked("again"), asked("fresh", "--fresh")
    assert (earlier(first), earlier(again), earlier(fresh)) == (0, 2, 0)
    judged = [cli.judgement_of(cli.read_report(run.folder)) for run in (first, again, fresh)]
    assert judged[0] == judged[1] == judged[2]
    assert earlier(asked("calls", "--set", "calls=5")) == 0
    assert earlier(asked("switch", "--set", "serving.switches.profiling=false")) == 0
    place.with_suffix(".inputs.py").write_text((EXAMPLES / "ranker.inputs.py").read_text() + "\n# the same requests\n")
    assert earlier(asked("inputs")) == 2
    put("two_tower", place)
    assert earlier(asked("other")) == 0
