"""What ``--help`` teaches: what a verb is for, commands to copy, what its exit codes say, and where more is told.

``%(prog)s`` is the command as it was typed, so that both ``python -m harness`` and ``torchscript-gate`` show their own.
"""

import re
import textwrap
from collections.abc import Mapping
from typing import NamedTuple

WIDTH = 80
ALWAYS = "2 configuration, 5 our own bug, 130 interrupted"


class CommandHelp(NamedTuple):
    """What the help of one verb says beside its options.

    Attributes:
        examples: (arguments after the verb, what they do).
        codes: what the verb's own exit codes mean, in place of those that every verb has.
        page: of ``docs``.
    """

    what: str
    examples: tuple[tuple[str, str], ...]
    codes: str
    page: str


TOP = """\
where to begin:
  doctor                    whether this machine can; installs nothing
  compat                    the upgrade, judged: one decision, one exit code
  report last               what the last run said, again or in another format
  rerun last CELL_ID        one red cell again, with fresh probes
  bisect --cell CELL_ID     whose doing it is, and what cures it
  mitigate --cell CELL_ID   every setting that cures it, with its price

exit codes: 0 compatible, 1 incompatible, 2 configuration,
            3 environment not provisioned, 4 inconclusive or nothing tested,
            5 our own bug, 130 interrupted; 125 untestable (of a reproducer,
            for git bisect run)

COMMAND --help has examples and the exit codes of each.
"""
COMMAND_HELP: Mapping[str, CommandHelp] = {
    "compat": CommandHelp(
        "Judge the upgrade: export each model in the old release, load and call it in the new one, compare answers, "
        "initialization and latency. The last line is the decision.",
        (
            ("--old 2.1.2 --new 2.6.0", "the configured models, from one release to another"),
            ("--artifacts models/", "your own TorchScript files"),
            ("--list", "which models there are; runs nothing"),
            ('-k "dlrm or bert" --latency off', "some of them, without timing: the quickest look"),
            ("--explain", "search for the cause of each red cell, two minutes in all"),
            ("--resume last", "go on with an interrupted run"),
        ),
        "0 compatible, 1 incompatible, 3 environment not provisioned, 4 inconclusive or nothing tested",
        "guide/getting-started.md",
    ),
    "env": CommandHelp(
        "Build the environments of torch releases, or say where they are; a run does so by itself.",
        (("2.1.2 2.6.0", "both; one that is there already takes no time"),),
        "0 all are there, 3 one could not be provisioned",
        "guide/environments.md",
    ),
    "doctor": CommandHelp(
        "Say whether this machine can run the gate: disk, memory, cores, debuggers, GPU and driver, each with what it "
        "means and what to do. Builds and installs nothing.",
        (
            ("2.1.2 2.6.0", "for these releases"),
            ("--env old=/opt/torch21/bin/python --new 2.6.0", "with a ready-made interpreter"),
        ),
        "0 ready, 3 an environment cannot be provisioned here",
        "guide/doctor.md",
    ),
    "report": CommandHelp(
        "Show a finished run again, also in another format. Nothing is judged anew: its exit code is that of the run.",
        (
            ("last", "the newest run that has a report"),
            ("last --format markdown", "for a pull request"),
            ("last --format html", "the page, to standard output"),
        ),
        "0 compatible, 1 incompatible, 4 inconclusive or nothing tested",
        "guide/reading-the-report.md",
    ),
    "rerun": CommandHelp(
        "Repeat one cell of a run with fresh probes. The answer is about that cell, never about the upgrade.",
        (("last dlrm/backward/alone/cpu/default/all", "a cell's id stands at the end of its rerun line"),),
        "0 the cell passes, 1 it fails, 3 environment not provisioned, 4 not decided",
        "guide/before-an-upgrade.md",
    ),
    "bisect": CommandHelp(
        "Find whose doing a red cell is: the operator and its line, or the few nodes that show it together, and what "
        "cures it. With --over: since which release, or which dependency.",
        (
            ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "whose doing it is, and what cures it"),
            ("--cell CELL_ID", "the same of a red cell of the last run"),
            ("--cell CELL_ID --over releases", "since which release of torch"),
            ("--cell CELL_ID --over dependencies", "or is it something that changed beside torch"),
            ("--cell CELL_ID --over numpy", "since which version of one of these"),
        ),
        "0 nothing to find, 1 found, 3 an end of --over or the index cannot be had, 4 not found or not decided",
        "guide/bisecting-a-difference.md",
    ),
    "first-bad": CommandHelp(
        "Find the first torch release that breaks a model: the same as bisect --over releases.",
        (
            ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "of a file"),
            ("--model dlrm --old 2.1.2 --new 2.6.0 --builds 8", "build more environments at once between the ends"),
        ),
        "0 the new end is not bad, 1 found, 3 an end or the index cannot be had, 4 undecided",
        "guide/first-bad-release.md",
    ),
    "mitigate": CommandHelp(
        "Find the settings that cure a red cell, the smallest sets of them, their price against the old release, and "
        "the lines to paste for Python, C++, Triton or the environment.",
        (
            ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "what cures it, its price, and lines to paste"),
            ("--cell CELL_ID", "the same of a red cell of the last run"),
        ),
        "0 nothing to cure, 1 something cures it, 4 nothing was found that does",
        "guide/curing.md",
    ),
    "inspect": CommandHelp(
        "Say what files are and which release will load them, from their bytes alone: nothing is loaded or run.",
        (
            ("models", "what is in the files of a folder"),
            ("models --old 2.1.2 --new 2.6.0", "and which of both releases will load them"),
            ('"models/**/*.pt" --new 2.15.0 --format sarif', "for the code scanning of a forge"),
        ),
        "0 all will load, 1 one will not, 4 one could not be read or judged",
        "guide/own-models.md",
    ),
    "pack": CommandHelp(
        "Write a golden bundle per model: artifact, requests and the old release's answers in one file. With it "
        "another team can judge a new release without the old one.",
        (("--old 2.1.2 --artifacts models --into bundles", "answered by torch 2.1.2"),),
        "0 every model has its bundle, 3 environment not provisioned, 4 some have none: the answer says why",
        "guide/own-models.md",
    ),
    "matrix": CommandHelp(
        "Load what every release exports in every other one, and draw the map: which upgrades and which rollbacks are "
        "safe. What is known already is not asked again.",
        (
            ("--releases 2.1.2 2.6.0 --artifacts models", "your files in both"),
            ("--releases 2.1.2 2.6.0 2.15.0", "the configured models, in every pair of three"),
        ),
        "0 every pair is green, 1 an upgrade breaks something, 4 not decided",
        "guide/own-models.md",
    ),
    "golden": CommandHelp(
        "Keep the old release's answers in git, so that later runs need no old environment. Proposed from a run, then "
        "accepted with a reason; no run refreshes them by itself.",
        (
            ("status", "accepted records and waiting proposals"),
            ('propose last -k "dlrm or bert"', "the answers of the last run"),
            ("diff", "what the proposals would change, in numbers"),
            ('accept dlrm --reason "answers of torch 2.1.2"', "what later runs are judged by"),
        ),
        "0 done, 2 a record or the journal is not as it was accepted, or configuration",
        "guide/golden-records.md",
    ),
    "gate": CommandHelp(
        "Judge a finished run again, by another policy or other waivers, without torch or environments; also a folder "
        "that was downloaded from CI. Says what changed against the run's own decision.",
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
            ("list", "what each waives, until when, and which are too broad"),
            ("prune last", "which are over, or were not needed in the last run; --yes takes them out"),
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
    """Return what stands above the options."""
    return textwrap.fill(COMMAND_HELP[verb].what, WIDTH - 2, break_on_hyphens=False)


def top(docs: str) -> str:
    """Return what stands below the commands; the pages lie in the folder ``docs``."""
    return f"{TOP}\nmore: {docs}/index.md\n"


def epilog(verb: str, docs: str) -> str:
    """Return what stands below the options: examples, exit codes, and the page with more in the folder ``docs``."""
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
