"""The one place where what a command came to becomes its exit code; pure.

What ends a command before it comes to anything is an error with a code of its own, see ``harness.core.errors``.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from harness.core.compiling import CompileCheck, CompileOutcome
from harness.core.diagnosis import BisectAnswer, Bisection, MitigationAnswer, MitigationResult
from harness.core.errors import ExitCode
from harness.core.outcome import Decision, Status
from harness.core.prediction import Inspection, Prediction
from harness.core.verdict import Judgement
from harness.verdict.compiling import all_compile
from harness.verdict.interference import is_well
from harness.verdict.linking import is_enough

if TYPE_CHECKING:
    from harness.core.golden import RecordChange

GREEN, RED, OPEN = ExitCode.COMPATIBLE, ExitCode.INCOMPATIBLE, ExitCode.INCONCLUSIVE
DECISIONS: Final[Mapping[Decision, ExitCode]] = {
    Decision.UPGRADE_OK: GREEN,
    Decision.CELL_OK: GREEN,
    Decision.OK_WITH_MITIGATION: RED,  # unless policy accepts it, see ``decide``
    Decision.BLOCKED: RED,
    Decision.INCONCLUSIVE: OPEN,
    Decision.NOTHING_TESTED: OPEN,
}
STATUSES: Final[Mapping[Status, ExitCode]] = {Status.PASS: GREEN, Status.FAIL: RED, Status.INCONCLUSIVE: OPEN}


def exit_code(result: object) -> ExitCode:
    """Return a command's exit code; None: done as told. What a search was for (culprit, mitigation) is red as well."""
    match result:
        case None:
            return GREEN
        case Decision():
            return DECISIONS[result]
        case Status():
            return STATUSES[result]
        case Judgement():
            return ExitCode(result.exit_code)  # as the policy of the run decided it
        case MitigationResult():
            return {MitigationAnswer.FOUND: RED, MitigationAnswer.NOTHING: GREEN}.get(result.answer, OPEN)
        case Bisection():
            return GREEN if result.answer is BisectAnswer.NOTHING else RED if _has_culprit(result) else OPEN
        case Inspection():
            return _of_files(result)
        case _:
            return _of_many_models(result)


def _of_many_models(result: object) -> ExitCode:
    """Return the exit code of what is about more than a run or a few files: types that no other command imports."""
    from harness.core.attach import Attachment
    from harness.verdict.attach import hung, well

    if isinstance(result, Attachment):  # a probe is asked often, and imports nothing else
        if hung(result):
            return RED
        return GREEN if result.probe or well(result) else OPEN
    from harness.core.fleet import FleetReport
    from harness.core.golden import GoldenStatus, Packing, Review
    from harness.core.interference import Interference
    from harness.core.linking import LinkCheck, LinkOutcome
    from harness.core.machine import Checkup
    from harness.core.migration import Migrated, Migration
    from harness.core.releases import Ending, FirstBad
    from harness.core.shadow import Shadow

    match result:
        case FleetReport():
            return ExitCode(result.exit_code)
        case FirstBad():
            return {Ending.FOUND: RED, Ending.NOT_BAD: GREEN}.get(result.conclusion.ending, OPEN)
        case CompileCheck():
            units = set(result.outcomes.values())
            return RED if CompileOutcome.BREAKS in units else GREEN if all_compile(units) else OPEN
        case LinkCheck():
            links = set(result.outcomes.values())
            if links & {LinkOutcome.RECOMPILE, LinkOutcome.CHANGE_SOURCE} or any(note.stops for note in result.notes):
                return RED
            enough = all(is_enough(binary, result) for binary in result.binaries)
            return GREEN if links == {LinkOutcome.LINKS} and enough and not result.unread else OPEN
        case Shadow():
            return DECISIONS[Decision(result.decision)]
        case Interference():
            return RED if result.culprits else GREEN if is_well(result) else OPEN
        case Migration():
            outcomes = set(result.counts)
            if outcomes - {Migrated.READY, Migrated.UNDECIDED}:
                return RED
            return GREEN if outcomes == {Migrated.READY} else OPEN  # which is also where there is no artifact
        case Checkup():
            return ExitCode.ENVIRONMENT if result.blocked else GREEN
        case Packing():
            return GREEN if result.complete else OPEN
        case Review():
            return _of_changes({diff.change for diff in result.diffs})
        case GoldenStatus():
            return ExitCode.CONFIGURATION if result.problems else GREEN
        case _:
            raise TypeError(type(result))


def _has_culprit(result: Bisection) -> bool:
    reduced = result.reduction is not None and bool(result.reduction.culprits)
    culprit = {
        BisectAnswer.OPERATOR: result.divergence is not None and bool(result.divergence.culprits),
        BisectAnswer.LOADING: bool(result.refusals),
        BisectAnswer.EXECUTOR: reduced or any(tried.mitigates for tried in result.mitigations),
        BisectAnswer.NODES: reduced,
    }
    return culprit.get(result.answer, False)


def _of_changes(changes: "Collection[RecordChange]") -> ExitCode:
    from harness.core.golden import RecordChange

    if {*changes} - {RecordChange.SAME, RecordChange.WITHIN, RecordChange.UNKNOWN}:
        return RED
    return GREEN if changes and RecordChange.UNKNOWN not in changes else OPEN


def _of_files(result: Inspection) -> ExitCode:
    predictions = {verdict.prediction for file in result.files for verdict in file.verdicts.values()}
    unjudged = any(file.facts is None or not file.facts.is_judged for file in result.files)
    if Prediction.FAILS in predictions:
        return RED
    return OPEN if unjudged or Prediction.UNKNOWN in predictions else GREEN
