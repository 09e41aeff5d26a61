"""The README's first command says of the example files what they were made for."""

from pathlib import Path

from harness.core.outcome import Decision, Status
from tests.integration.gate import PROJECT, compat

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
