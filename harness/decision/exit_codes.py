"""The one place where what a command came to becomes its exit code; pure.

What ends a command before it comes to anything is an error with a code of its own, see ``harness.errors``.
"""

from collections.abc import Mapping
from functools import singledispatch
from typing import Final

from harness.domain.diagnosis import BisectAnswer, Bisection, CureAnswer, Curing
from harness.domain.fleet import FleetReport
from harness.domain.golden import GoldenStatus, Packing
from harness.domain.machine import Checkup
from harness.domain.migration import Migrated, Migration
from harness.domain.outcome import Status
from harness.domain.prediction import Inspection, Prediction
from harness.domain.releases import Ending, FirstBad
from harness.domain.outcome import Decision
from harness.domain.verdict import Judgement
from harness.errors import ExitCode

DECISIONS: Final[Mapping[Decision, ExitCode]] = {
    Decision.UPGRADE_OK: ExitCode.COMPATIBLE,
    Decision.CELL_OK: ExitCode.COMPATIBLE,
    Decision.OK_WITH_MITIGATION: ExitCode.INCOMPATIBLE,  # unless policy accepts it, see ``decide``
    Decision.BLOCKED: ExitCode.INCOMPATIBLE,
    Decision.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Decision.NOTHING_TESTED: ExitCode.INCONCLUSIVE,
}
STATUSES: Final[Mapping[Status, ExitCode]] = {
    Status.PASS: ExitCode.COMPATIBLE,
    Status.FAIL: ExitCode.INCOMPATIBLE,
    Status.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}
ENDINGS: Final[Mapping[Ending, ExitCode]] = {
    Ending.FOUND: ExitCode.INCOMPATIBLE,
    Ending.NOT_BAD: ExitCode.COMPATIBLE,
    Ending.ONE_OF: ExitCode.INCONCLUSIVE,
    Ending.OLD_NOT_GOOD: ExitCode.INCONCLUSIVE,
    Ending.END_UNTESTABLE: ExitCode.INCONCLUSIVE,
}


@singledispatch
def exit_code(result: object) -> ExitCode:
    """Return the exit code of a command that came to ``result``; None is a command that has done what it was told."""
    raise TypeError(type(result))


@exit_code.register
def _done(result: None) -> ExitCode:
    del result
    return ExitCode.COMPATIBLE


@exit_code.register
def _judged(result: Judgement | FleetReport) -> ExitCode:
    return ExitCode(result.exit_code)  # stored with the run, whose policy decided it


@exit_code.register
def _decided(result: Decision) -> ExitCode:
    return DECISIONS[result]


@exit_code.register
def _summed_up(result: Status) -> ExitCode:
    return STATUSES[result]


@exit_code.register
def _bisected(result: Bisection) -> ExitCode:
    """Return 0 for nothing to find, 1 for a culprit, 4 where none was found."""
    if result.answer is BisectAnswer.NOTHING:
        return ExitCode.COMPATIBLE
    reduced = result.reduction is not None and bool(result.reduction.culprits)
    culprit = {
        BisectAnswer.OPERATOR: result.divergence is not None and bool(result.divergence.culprits),
        BisectAnswer.LOADING: bool(result.refusals),
        BisectAnswer.EXECUTOR: reduced or any(tried.cures for tried in result.cures),
        BisectAnswer.NODES: reduced,
    }
    return ExitCode.INCOMPATIBLE if culprit.get(result.answer, False) else ExitCode.INCONCLUSIVE


@exit_code.register
def _searched(result: FirstBad) -> ExitCode:
    """Return 1 where the first bad release is known, 0 where the new end is not bad, 4 where it is undecided."""
    return ENDINGS[result.conclusion.ending]


@exit_code.register
def _cured(result: Curing) -> ExitCode:
    """Return 0 for nothing to cure, 1 where something cures (red until that is set), 4 where nothing was found."""
    if result.answer is CureAnswer.NOTHING:
        return ExitCode.COMPATIBLE
    return ExitCode.INCOMPATIBLE if result.answer is CureAnswer.CURED else ExitCode.INCONCLUSIVE


@exit_code.register
def _inspected(result: Inspection) -> ExitCode:
    """Return 1 if a file will not load somewhere, else 4 if one could not be read or judged, else 0."""
    predictions = {verdict.prediction for file in result.files for verdict in file.verdicts.values()}
    if Prediction.FAILS in predictions:
        return ExitCode.INCOMPATIBLE
    unjudged = any(file.facts is None or not file.facts.is_judged for file in result.files)
    return ExitCode.INCONCLUSIVE if unjudged or Prediction.UNKNOWN in predictions else ExitCode.COMPATIBLE


@exit_code.register
def _migrated(result: Migration) -> ExitCode:
    """Return 0 where every model is ready, 1 where one is not, 4 where one is undecided or there is none."""
    counts = result.counts
    if set(counts) - {Migrated.READY, Migrated.UNDECIDED}:
        return ExitCode.INCOMPATIBLE
    return ExitCode.COMPATIBLE if set(counts) == {Migrated.READY} else ExitCode.INCONCLUSIVE


@exit_code.register
def _examined(result: Checkup) -> ExitCode:
    """Return 3 where an environment cannot be provisioned here, else 0; warnings change nothing."""
    return ExitCode.ENVIRONMENT if result.blocked else ExitCode.COMPATIBLE


@exit_code.register
def _packed(result: Packing) -> ExitCode:
    return ExitCode.COMPATIBLE if result.complete else ExitCode.INCONCLUSIVE


@exit_code.register
def _verified(result: GoldenStatus) -> ExitCode:
    return ExitCode.CONFIGURATION if result.problems else ExitCode.COMPATIBLE
