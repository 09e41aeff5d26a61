"""Which cells need a reader, and the commands that repeat them and look for what is to blame."""

import contextlib
import shlex
from collections.abc import Collection
from dataclasses import replace
from itertools import chain

from harness.core.models import ArtifactKind
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict

RED = (Status.FAIL, Status.XPASS, Status.INCONCLUSIVE)
FINDABLE = (
    *("call_error", "crash", "dtype", "hang", "late_divergence", "latency", "load_error", "nan_placement", "structure"),
    "values",
)
"""Findings of one model alone that operators cause: ``bisect`` can name the operator."""
FINDABLE_BESIDE = ("concurrent_error", "crash", "hang")
"""The same for a model that fails only while a server starts."""

PLACEHOLDERS = {"--owner": "NAME", "--reason": "TEXT"}
"""What stands in the command that waives, in place of what only its reader knows."""
# Enough for a dozen models of served size to have a few looks more.
MORE = "10min"


def is_red(cell: CellVerdict) -> bool:
    return cell.status in RED and cell.decides


def rerun_command(report: RunReport, cell: str) -> str:
    """Return the command that repeats just ``cell``; made from the run's name where the report has none."""
    return report.rerun.get(cell) or shlex.join(_made(report, cell))


def rerun_of_cause(report: RunReport, cause: str, cell: str) -> str:
    """Return the command that repeats every cell of a cause, as the one of its clearest cell is written."""
    program, run, options = _rerun_words(report, cell)
    return shlex.join([*program, "rerun", run, "--cause", cause, *options])


def more_command(report: RunReport) -> str:
    """Return the command that goes on timing, else empty: not for reruns, nor under another policy than the run's."""
    open_ = (cell for cell in report.judgement.cells if any(item.kind == "latency_undecided" for item in cell.findings))
    cell = next(open_, None)
    regated = report.policy.regated is not None
    if cell is None or regated or report.arguments[:1] == ("rerun",):
        return ""
    program, run, _ = _rerun_words(report, cell.cell)
    return shlex.join([*program, "compat", "--resume", run, "--more", MORE])


def waive_command(report: RunReport, cause: str, cell: str, models: Collection[str]) -> str:
    """Return the command that waives a cause of ``models``, once NAME and TEXT are what they stand for.

    Where all its models have one owner, that is the NAME.
    """
    program, run, _ = _rerun_words(report, cell)
    owners = {item.owner for item in report.models if item.model in models}
    said = PLACEHOLDERS | ({"--owner": owners.pop()} if len(owners) == 1 and all(owners) else {})
    return shlex.join([*program, "waivers", "add", run, "--cause", cause, *chain.from_iterable(said.items())])


def prune_command(report: RunReport, cell: str) -> str:
    """Return the command that takes out every waiver that the run did not need."""
    program, run, _ = _rerun_words(report, cell)
    return shlex.join([*program, "waivers", "prune", run, "--yes"])


def bisect_command(report: RunReport, cell: CellVerdict) -> str:
    """Return the command that looks for the operator; empty where there is none to find, or no old release to ask."""
    kinds = FINDABLE if cell.scenario in ("alone", "latency") else FINDABLE_BESIDE
    findable = any(finding.kind in kinds for finding in cell.findings)
    if cell.status is not Status.FAIL or report.old.golden or not findable or not _has_graph(report, cell):
        return ""
    program, run, _ = _rerun_words(report, cell.cell)  # its options are of rerun
    return shlex.join([*program, "bisect", run, cell.cell])


def anyway_command(report: RunReport, cell: CellVerdict) -> str:
    """Return the command that looks for what mitigates a hang or crash of both releases; empty for anything else."""
    ends = any(finding.kind in ("hang", "crash") for finding in cell.findings)
    if cell.status is not Status.SAME_FAIL or report.old.golden or not ends or not _has_graph(report, cell):
        return ""
    program, run, _ = _rerun_words(report, cell.cell)
    return shlex.join([*program, "mitigate", run, cell.cell, "--anyway"])


def _has_graph(report: RunReport, cell: CellVerdict) -> bool:
    return all(model.kind is ArtifactKind.TORCHSCRIPT for model in report.models if model.model == cell.model)


def _rerun_words(report: RunReport, cell: str) -> tuple[list[str], str, list[str]]:
    """Return what starts the program, the run, and the options, of the command that repeats ``cell``."""
    words = _made(report, cell)
    with contextlib.suppress(ValueError):  # a report may hold any text
        written = shlex.split(report.rerun.get(cell, ""))
        words = written if written.index(cell) >= 2 else words
    at = words.index(cell)
    return words[: at - 2], words[at - 1], words[at + 1 :]


def _made(report: RunReport, cell: str) -> list[str]:
    return [*program_of(report), "rerun", report.folder or report.run, cell]


def program_of(report: RunReport) -> list[str]:
    try:
        return shlex.split(report.program)
    except ValueError:  # a report may hold any text
        return [report.program]


def report_command(report: RunReport, directory: str, *options: str) -> str:
    """Return the command that shows a run again; ``directory`` is where it lies, of a report that does not say so."""
    return shlex.join([*program_of(report), "report", report.folder or directory, *options])


def inspect_command(report: RunReport, path: str) -> str:
    return shlex.join([*program_of(report), "inspect", path, *_interpreters(report), "--format", "json"])


def price_command(report: RunReport) -> str:
    """Return the command that measures the price of a rewrite, once ORIGINAL.pt is what it stands for."""
    prints = [(side, item.fingerprint) for side, item in (("old", report.old), ("new", report.new))]
    releases = [
        word for side, known in prints if known is not None for word in (f"--{side}", known.torch.partition("+")[0])
    ]
    sides = _interpreters(report) if "--env" in report.arguments else releases
    return shlex.join([*program_of(report), "bisect", "--artifact", "ORIGINAL.pt", *sides])


def _interpreters(report: RunReport) -> list[str]:
    sides = [("old", report.old.interpreter), ("new", report.new.interpreter)]
    return [word for side, python in sides if python for word in ("--env", f"{side}={python}")]


def at_home(report: RunReport, *, program: str, folder: str) -> RunReport:
    """Return the report with commands as they run here, begun with ``program``: where it was made may be gone."""
    here = replace(report, program=program or report.program, folder=folder)
    known = {cell: _rerun_words(report, cell)[2] for cell in report.rerun}
    rerun = {cell: shlex.join([*program_of(here), "rerun", folder, cell, *options]) for cell, options in known.items()}
    rollback, migration = report.rollback, report.migration
    if rollback is not None:
        models = tuple(replace(item, command=_begun(item.command, report, here)) for item in rollback.models)
        rollback = replace(rollback, models=models)
    if migration is not None:
        migration = replace(migration, command=_begun(migration.command, report, here))
    return replace(here, rerun=rerun, rollback=rollback, migration=migration)


def _begun(command: str, was: RunReport, now: RunReport) -> str:
    """Return a command that begins with the program of a report with that of another."""
    rest = command.removeprefix(f"{was.program} ")
    return f"{now.program} {rest}" if was.program and rest != command else command
