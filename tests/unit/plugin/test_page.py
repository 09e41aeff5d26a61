"""The page about pytest names what there is."""

import inspect
import re
from pathlib import Path

import torchscript_gate_plugin
from harness.cli.parser import parser
from harness.plugin.fixture import Checker

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "in-pytest.md").read_text(encoding="utf-8")


def test_the_signature_on_the_page_is_that_of_the_fixture() -> None:
    (named,) = re.findall(r"`check\((.*)\)` is one run", PAGE)
    bare = inspect.signature(Checker.check)
    names = [item.replace(annotation=item.empty) for name, item in bare.parameters.items() if name != "self"]
    assert f"({named})" == str(inspect.Signature(names))


def test_every_option_on_the_page_is_one_of_the_plugin() -> None:
    source = Path(torchscript_gate_plugin.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r"--torchscript-[a-z-]+", PAGE))
    assert named == {"--torchscript-compat", "--torchscript-compat-options"}
    assert source.count('f"--{NAME}') == len(named)
    assert torchscript_gate_plugin.WORDS in PAGE


def test_what_the_page_tells_pytest_to_pass_on_is_understood_by_compat() -> None:
    (words,) = re.findall(r"^torchscript_compat_options = (\[.*\])$", PAGE, re.MULTILINE)
    parser().parse_args(["compat", *re.findall(r'"([^"]*)"', words)])
