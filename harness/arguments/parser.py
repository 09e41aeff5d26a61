"""The parser of the command line: every verb, what it is for, and who adds its options."""

import argparse
from pathlib import Path

from harness import __version__
from harness.arguments import help_text
from harness.arguments.files import add_inspect, add_pack
from harness.arguments.gates import add_gate
from harness.arguments.machines import add_doctor, add_matrix
from harness.arguments.records import add_golden
from harness.arguments.runs import add_compat, add_env, add_report, add_rerun
from harness.arguments.searches import add_bisect, add_mitigate
from harness.arguments.shells import add_completion
from harness.arguments.typos import Parser
from harness.arguments.waivers import add_waivers

HARNESS = Path(__file__).resolve().parents[1]


def parser(program: str = "python -m harness") -> argparse.ArgumentParser:
    """Return the parser of the command line, as ``program`` is called by who types it."""
    docs = _pages()
    top = Parser(
        prog=program,
        description="Will my TorchScript models survive the next torch upgrade?",
        epilog=help_text.top(docs),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"torchscript-upgrade-gate {__version__}")
    top.add_argument("--project", type=Path, default=Path.cwd(), help="folder with pyproject.toml (default: here)")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    add_compat(verbs.add_parser("compat", help="judge the upgrade from one release to another"))
    add_env(verbs.add_parser("env", help="build environments, one per torch release"))
    add_doctor(verbs.add_parser("doctor", help="say whether this machine can run the gate; installs nothing"))
    add_report(verbs.add_parser("report", help="render a finished run again"))
    add_gate(verbs.add_parser("gate", help="judge a finished run again, by another policy; needs no torch"))
    add_waivers(verbs.add_parser("waivers", help="waive red cells for a while, with owner and bound; list and prune"))
    add_rerun(verbs.add_parser("rerun", help="repeat one cell of a run"))
    add_bisect(verbs.add_parser("bisect", help="find whose doing a red cell is, and what cures it"))
    add_mitigate(verbs.add_parser("mitigate", help="find the settings that cure a red cell, and their price"))
    add_inspect(verbs.add_parser("inspect", help="say what files are and which release will load them; runs nothing"))
    add_pack(verbs.add_parser("pack", help="write a golden bundle per model, for another team to judge by"))
    add_matrix(verbs.add_parser("matrix", help="load what every release exports in every other one"))
    add_bisect(verbs.add_parser("first-bad", help="find the first torch release that breaks a model"), over="releases")
    add_golden(verbs.add_parser("golden", help="propose, accept and list golden records"))
    add_completion(verbs.add_parser("completion", help="write what a shell needs to complete torchscript-gate"))
    for name, verb in verbs.choices.items():
        verb.formatter_class = argparse.RawDescriptionHelpFormatter
        verb.description, verb.epilog = help_text.description(name), help_text.epilog(name, docs)
    return top


def _pages() -> str:
    """Return where the pages lie that help names: in a wheel inside of the package, else beside it."""
    shipped = HARNESS / "shipped" / "docs"
    if shipped.is_dir():
        return str(shipped)
    return "docs" if Path.cwd() == HARNESS.parent else str(HARNESS.parent / "docs")
