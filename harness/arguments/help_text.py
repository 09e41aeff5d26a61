"""The texts of ``--help``: what a command is for, examples to copy, its exit codes, and the page that has more.

``%(prog)s`` is the command as typed, so that both ``python -m harness`` and ``torchscript-gate`` show their own.
"""

import re
import textwrap
from collections.abc import Mapping
from typing import NamedTuple

WIDTH = 80
ALWAYS = "2 configuration, 5 a bug of the gate, 130 interrupted"


class CommandHelp(NamedTuple):
    """What the help of one command says besides its options.

    Attributes:
        examples: (arguments after the command, what they do).
        codes: the exit codes that are not the same for every command, and what they mean.
        page: the page in ``docs`` that has more.
    """

    what: str
    examples: tuple[tuple[str, str], ...]
    codes: str
    page: str


TOP = """\
where to begin:
  doctor                    can this machine run the gate? installs nothing
  compat                    judge the upgrade: one decision, one exit code
  report last               show the last run again, or in another format
  rerun last CELL_ID        repeat one red cell with fresh probes
  bisect --cell CELL_ID     find the operator that causes it, and a cure
  mitigate --cell CELL_ID   find the settings that cure it, with their cost

exit codes: 0 compatible, 1 incompatible, 2 configuration,
            3 environment not provisioned, 4 inconclusive or nothing tested,
            5 a bug of the gate, 130 interrupted; 125 untestable (returned
            by reproducers, for git bisect run)

COMMAND --help shows examples and the exit codes of that command.
"""
COMMAND_HELP: Mapping[str, CommandHelp] = {
    "compat": CommandHelp(
        "Judge the upgrade: export each model in the old release, load and call it in the new one, compare answers, "
        "initialization and latency. The last line is the decision.",
        (
            ("--old 2.1.2 --new 2.6.0", "the configured models, from one release to another"),
            ("--artifacts models/", "your own TorchScript files"),
            ("--list", "list the models; runs nothing"),
            ('-k "dlrm or bert" --latency off', "some of them, without timing: the quickest check"),
            ("--explain", "search for the cause of each red cell, two minutes in all"),
            ("--resume last", "go on with an interrupted run"),
        ),
        "0 compatible, 1 incompatible, 3 environment not provisioned, 4 inconclusive or nothing tested",
        "guide/getting-started.md",
    ),
    "env": CommandHelp(
        "Build the environments of torch releases, or say where they are. A run does this automatically.",
        (("2.1.2 2.6.0", "both; one that exists already takes no time"),),
        "0 all exist, 3 one could not be provisioned",
        "guide/environments.md",
    ),
    "doctor": CommandHelp(
        "Say whether this machine can run the gate: disk, memory, cores, debuggers, GPU and driver, each with what "
        "it means and what to do. Builds and installs nothing.",
        (
            ("2.1.2 2.6.0", "for these releases"),
            ("--env old=/opt/torch21/bin/python --new 2.6.0", "with a ready-made interpreter"),
        ),
        "0 ready, 3 an environment cannot be provisioned here",
        "guide/doctor.md",
    ),
    "report": CommandHelp(
        "Show a finished run again, or in another format. Nothing is judged anew: the exit code is that of the run.",
        (
            ("last", "the newest run that has a report"),
            ("last --format markdown", "for a pull request"),
            ("last --format html", "the page, to standard output"),
        ),
        "0 compatible, 1 incompatible, 4 inconclusive or nothing tested",
        "guide/reading-the-report.md",
    ),
    "rerun": CommandHelp(
        "Repeat one cell of a run with fresh probes. The result is about that cell only, never about the upgrade.",
        (("last dlrm/backward/alone/cpu/default/all", "a cell's id is at the end of its rerun line"),),
        "0 the cell passes, 1 it fails, 3 environment not provisioned, 4 not decided",
        "guide/before-an-upgrade.md",
    ),
    "bisect": CommandHelp(
        "Find what causes a red cell: the operator and its source line, or the smallest set of nodes that shows it, "
        "and what cures it. With --over: the release or the dependency that brought it.",
        (
            ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "which operator causes it, and what cures it"),
            ("--cell CELL_ID", "the same for a red cell of the last run"),
            ("--cell CELL_ID --over releases", "since which torch release"),
            ("--cell CELL_ID --over dependencies", "is it a dependency rather than torch?"),
            ("--cell CELL_ID --over numpy", "since which version of that dependency"),
        ),
        "0 nothing to find, 1 found, 3 an end of the range or the index is unavailable, 4 not found or not decided",
        "guide/bisecting-a-difference.md",
    ),
    "first-bad": CommandHelp(
        "Find the first torch release that breaks a model: the same as bisect --over releases.",
        (
            ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "for a file"),
            ("--model dlrm --old 2.1.2 --new 2.6.0 --builds 8", "test more releases between the ends at once"),
        ),
        "0 the newest release is not bad, 1 found, 3 an end of the range or the index is unavailable, 4 undecided",
        "guide/first-bad-release.md",
    ),
    "mitigate": CommandHelp(
        "Find the smallest sets of settings that cure a red cell, what each costs against the old release, and "
        "the lines to paste for Python, C++, Triton or the environment.",
        (
            ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "what cures it, what it costs, and lines to paste"),
            ("--cell CELL_ID", "the same for a red cell of the last run"),
        ),
        "0 nothing to cure, 1 a cure was found, 4 none was found",
        "guide/curing.md",
    ),
    "inspect": CommandHelp(
        "Say what kind of file each is and which release will load it, from its bytes alone: nothing is loaded or run.",
        (
            ("models", "what the files of a folder contain"),
            ("models --old 2.1.2 --new 2.6.0", "and which of the two releases will load them"),
            ('"models/**/*.pt" --new 2.15.0 --format sarif', "for code scanning on GitHub or GitLab"),
        ),
        "0 all will load, 1 one will not, 4 one could not be read or judged",
        "guide/own-models.md",
    ),
    "pack": CommandHelp(
        "Write a golden bundle per model: artifact, requests and the old release's answers in one file. With it "
        "another team can judge a new release without the old one.",
        (("--old 2.1.2 --artifacts models --into bundles", "answered by torch 2.1.2"),),
        "0 every model has its bundle, 3 environment not provisioned, 4 some have none: the output says why",
        "guide/own-models.md",
    ),
    "matrix": CommandHelp(
        "Load what every release exports in every other one, and show which upgrades and which rollbacks are safe. "
        "What is known already is not measured again.",
        (
            ("--releases 2.1.2 2.6.0 --artifacts models", "your files in both"),
            ("--releases 2.1.2 2.6.0 2.15.0", "the configured models, in every pair of three"),
        ),
        "0 every pair is green, 1 an upgrade breaks something, 4 not decided",
        "guide/own-models.md",
    ),
    "golden": CommandHelp(
        "Keep the old release's answers in git, so that later runs need no old environment. Proposed from a run, then "
        "accepted with a reason; no run changes them.",
        (
            ("status", "accepted records and waiting proposals"),
            ('propose last -k "dlrm or bert"', "the answers of the last run"),
            ("diff", "how much the proposals would change"),
            ('accept dlrm --reason "answers of torch 2.1.2"', "later runs are judged by this"),
        ),
        "0 done, 2 a record or the journal differs from what was accepted, or configuration",
        "guide/golden-records.md",
    ),
    "gate": CommandHelp(
        "Judge a finished run again, by another policy or other waivers, without torch or environments; it may be a "
        "folder downloaded from CI. Shows what changed against the run's own decision.",
        (
            ("last", "by the policy and the waivers that are configured now"),
            ("last --policy policy.toml", "by those of a file"),
        ),
        "0 compatible, 1 incompatible, 4 inconclusive or nothing tested",
        "guide/policy.md",
    ),
    "waivers": CommandHelp(
        "Waive a known finding: a waiver has an owner, a reason and an expiry, and a bound, so that "
        "nothing worse hides behind it. They live in golden/waivers.toml.",
        (
            ('add last CELL_ID --owner ads --reason "agreed"', "from a red cell of the last run"),
            ("list", "what each waives, until when, and whether it is too broad"),
            ("prune last", "which expired or were not needed in the last run; --yes removes them"),
        ),
        "0 done",
        "guide/waivers.md",
    ),
    "completion": CommandHelp(
        "Write the script that teaches a shell to complete torchscript-gate.",
        (("bash", "to standard output; the page says where each shell looks for it"),),
        "0 written",
        "guide/getting-started.md",
    ),
}


def description(verb: str) -> str:
    """Return the text above the options."""
    return textwrap.fill(COMMAND_HELP[verb].what, WIDTH - 2, break_on_hyphens=False)


def top(docs: str) -> str:
    """Return the text below the commands; ``docs`` is the folder of the pages."""
    return f"{TOP}\nmore: {docs}/index.md\n"


def epilog(verb: str, docs: str) -> str:
    """Return the text below the options: examples, exit codes, and the page of ``docs`` that has more."""
    command_help = COMMAND_HELP[verb]
    lines = ["examples:"]
    for arguments, what in command_help.examples:
        lines += [f"  %(prog)s {arguments}", f"      {what}"]
    lines += ["", "exit codes:"]
    lines += [
        f"  {code:>3}  {words}" for code, words in sorted({**_codes(ALWAYS), **_codes(command_help.codes)}.items())
    ]
    return "\n".join([*lines, "", f"more: {docs}/{command_help.page}"])


def _codes(text: str) -> dict[int, str]:
    """Return what each code means, of ``0 done, 4 undecided``."""
    return {int(code): words for code, _, words in (part.partition(" ") for part in re.split(r", (?=\d)", text))}
