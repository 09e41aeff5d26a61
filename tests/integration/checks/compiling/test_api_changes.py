"""What the gate says of LibTorch's interface, against real headers, and a whole check of a source that uses it."""

from pathlib import Path

import pytest
from packaging.version import Version

from harness.apps.compile_check.compile_check import API_INCLUDES, compile_check
from harness.checks.compiling.api_changes import change_of, known_changes
from harness.core.compiling import ApiChange, CompileOutcome
from harness.project import Project
from tests.integration.conftest import LATEST, NEW, OLD

pytestmark = [pytest.mark.integration, pytest.mark.slow]
CHANGES = list({change.api: change for change in known_changes().values()}.values())


def _folder(python: str) -> str:
    return str(next(Path(python).parents[1].glob("lib/python*/site-packages/torch")))


def _outcome(source: str, python: str, folder: Path) -> CompileOutcome:
    """Return what becomes of a source whose build has no headers of its own."""
    file = folder / f"{abs(hash(source))}.cpp"
    file.write_text(source)
    return compile_check(Project(folder=folder), [file], new=_folder(python)).outcomes[str(file)]


@pytest.mark.parametrize("change", CHANGES, ids=[change.api for change in CHANGES])
def test_what_is_said_to_be_written_compiles_everywhere_and_what_was_does_not_any_more(
    change: ApiChange,
    old_python: str,
    new_python: str,
    latest_python: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(tmp_path / "cache"))
    for release, python in ((OLD, old_python), (NEW, new_python), (LATEST, latest_python)):
        assert _outcome(change.example, python, tmp_path) is CompileOutcome.COMPILES, release
        outcome = _outcome(change.before, python, tmp_path)
        # In 2.15.0 the headers ask for C++20, whose std::string_view has starts_with.
        again = release == LATEST and change.api.endswith("s_with")
        assert (outcome is CompileOutcome.COMPILES) is (again or Version(release) < Version(change.since)), release


def test_a_server_that_uses_what_is_gone_gets_what_to_write(old_python: str, new_python: str, tmp_path: Path) -> None:
    server = tmp_path / "server.cpp"
    server.write_text(next(change.before for change in CHANGES if change.api == "*::allocate"))
    include = Path(_folder(old_python)) / "include"
    flags = f"-I{include} -I{include / API_INCLUDES}"
    checked = compile_check(Project(folder=tmp_path), [server], new=_folder(new_python), flags=flags)
    assert checked.outcomes[str(server)] is CompileOutcome.BREAKS
    told = {one.change.api: one.verified for one in checked.broken if one.change is not None}
    assert told == {"*::allocate": True}
    assert change_of("torch::jit::load") is None
