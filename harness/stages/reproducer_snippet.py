"""Writes a reproducer's case as a few lines that need no file, and keeps them only if they show it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.policy.reproducing import confirms
from harness.render.snippet import operator_snippet, snippet
from harness.runtime import pool
from harness.runtime.reproducer_files import Tensors
from harness.runtime.snippet_run import run_snippet
from harness.stages.facts import Effects, Facts
from harness.stages.requests import worker_limits

SNIPPET = "snippet.py"


def snippet_that_shows(
    case: Mapping[str, Any],
    folder: Path,
    facts: Facts,
    effects: Effects,
    *,
    code: str,
    tensors: Tensors,
    wait_s: float,
) -> str:
    """Return ``snippet.py``, which now lies in ``folder`` and was seen to show the symptom; empty where there is none.

    Args:
        code: of the archive; nothing for an operator.
        wait_s: how long it may be silent.
    """
    what = case["symptom"]["what"]
    if "operator" in case:
        text = operator_snippet(case, tensors.data)
    else:
        text = snippet(code, case, tensors.data) if code and what in ("hang", "crash", "error", "values") else ""
    if not text:
        return ""
    program = effects.run_dir.write(f"{folder.relative_to(effects.run_dir.path)}/{SNIPPET}", text.encode())
    limits = worker_limits(facts.plan.settings.limits, "run")

    def run(side: str) -> tuple[str, str]:
        return run_snippet(program, effects.environments[side].interpreter, limits=limits, wait_s=wait_s)

    # Numbers are wrong only beside the right ones.
    sides = ["new", "old"] if what in ("values", "any") else ["new"]
    ended = dict(zip(sides, pool.each(run, sides, jobs=facts.plan.settings.jobs), strict=True))
    how, said = ended["new"]
    old_how, old = ended.get("old", ("", ""))
    if not confirms(case["symptom"], {"how": how, "said": said, "old_how": old_how, "old": old}):
        program.unlink()
        return ""
    return text
