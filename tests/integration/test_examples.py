"""The README's first command says of the example files what they were made for."""

import contextlib
import os
import pty
import shlex
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from harness.core.outcome import Decision, Status
from harness.project import own_command
from harness.report.formats import RUN
from tests.integration.gate import PROJECT, compat
from tests.unit.builders.printed import check, commands_in

pytestmark = pytest.mark.integration
EXAMPLES = PROJECT / "examples" / "models"
AS_MADE = {
    "intent_int8": Status.PASS,
    "projection": Status.FAIL,
    "ranker": Status.PASS,
    "thumbnails": Status.FAIL,
    "two_tower": Status.PASS,
    "unpacked": Status.PASS,
}


def test_each_example_file_is_what_it_was_made_for(old_python: str, new_python: str, tmp_path: Path) -> None:
    sides = ("--env", f"old={old_python}", "--env", f"new={new_python}")
    run = compat(tmp_path, "--artifacts", str(EXAMPLES), *sides, "--until", "correctness", all_planted=False)
    assert {row.model: row.status for row in run.report.judgement.rows} == AS_MADE
    assert (run.report.judgement.decision, run.code) == (Decision.BLOCKED, 1)
    assert {"load_error"} <= run.kinds("projection") and "values" in run.kinds("thumbnails")
    assert "prim::is_ort" in run.out and "aten::upsample_bicubic2d" in run.out
    begin = own_command(PROJECT)
    texts = [("console", run.out), *((form, (run.folder / file).read_text()) for form, file in RUN.files.items())]
    printed = {command for form, text in texts if form != "trace" for command in commands_in(form, text, begin)}
    assert {shlex.split(command)[4] for command in printed} >= {"bisect", "compat", "report", "rerun"}
    for command in printed:
        check(command, begin, artifacts=True)


@pytest.mark.slow
def test_a_terminal_sees_a_sign_of_life_every_five_seconds(old_python: str, new_python: str, tmp_path: Path) -> None:
    """Read by the clock of a pseudo-terminal, from the first line to the report, whatever else this machine does."""
    words = (
        "--env",
        f"old={old_python}",
        "--env",
        f"new={new_python}",
        "--until",
        "correctness",
        "--out",
        str(tmp_path),
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "compat", "--artifacts", str(EXAMPLES), *words],
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    ) as gate:
        os.close(theirs)
        seen = [time.monotonic()]
        with contextlib.suppress(OSError):  # what Linux says when the last writer is gone
            while os.read(ours, 65536):
                seen.append(time.monotonic())
        assert gate.wait() == 1
    os.close(ours)
    assert max(after - before for before, after in pairwise(seen)) < 5.0
