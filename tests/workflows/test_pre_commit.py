"""The hook for pre-commit: what it starts, and on which files."""

import re
from ruamel.yaml import YAML

from harness.artifacts.files import SUFFIXES
from harness.cli import main
from tests.workflows.steps import PROJECT

(HOOK,) = YAML(typ="safe").load((PROJECT / ".pre-commit-hooks.yaml").read_text())


def test_hook_is_the_console_script_of_the_package_on_all_files_that_the_gate_reads() -> None:
    assert 'scripts = { torchscript-gate = "harness.__main__:main" }' in (PROJECT / "pyproject.toml").read_text()
    assert HOOK["language"] == "python" and HOOK["entry"].split() == ["torchscript-gate", "inspect"]
    read = SUFFIXES - {".gate", ".ptl"}  # a bundle is judged by a run, a mobile file by no server
    assert {suffix for suffix in read if re.search(HOOK["files"], f"models/m{suffix}")} == read
    assert not re.search(HOOK["files"], "models/ranker.inputs.py")


def test_hook_refuses_what_will_not_load_and_lets_the_rest_pass() -> None:
    models = PROJECT / "examples" / "models"
    words = [*HOOK["entry"].split()[1:], *HOOK["args"]]
    assert main([*words, str(models / "ranker.pt"), str(models / "two_tower.pt")]) == 0
    assert main([*words, str(models / "ranker.pt"), str(models / "projection.pt")]) == 1
