"""The page of `attach` has every state, every setting that it prints, and no other exit code."""

import re

from harness.checks.attach.cures import CURES
from harness.core.attach import HUNG, ProcessState
from harness.verdict.attach import HEALTHY
from tests.docs.pages import PROJECT

PAGE = (PROJECT / "docs" / "guide" / "attach.md").read_text(encoding="utf-8")


def test_every_state_stands_there_with_its_exit_code() -> None:
    rows = re.findall(r"^\| (`[^|]+) \| .* \| (\d) \|$", PAGE, re.MULTILINE)
    codes = {state: int(code) for states, code in rows for state in re.findall("`([^`]+)`", states)}
    assert codes == {state.value: 1 if state in HUNG else 0 if state in HEALTHY else 4 for state in ProcessState}


def test_every_setting_stands_there() -> None:
    settings = {
        cell.strip() for cell in re.findall(r"^\| [^|]+ \| ([^|]+) \| [^|]+ \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    }
    named = {name for cell in settings for name in re.split("; ", cell)}
    assert {name for cure in CURES.values() for name in cure.settings} <= named
