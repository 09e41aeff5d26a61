"""``fleet report``: every kept result of a plan as one judged run, its causes over the whole fleet, and the waves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import __version__
from harness.apps.fleet.answer.renaming import renamed
from harness.apps.fleet.answer.timing import FleetTiming, over_fleet
from harness.apps.fleet.answer.waves import Judged, waves_of
from harness.apps.fleet.faults import LABELS
from harness.apps.fleet.plan import STORE, PlannedFleet, options_again
from harness.apps.fleet.results import FleetResults, KeptResults
from harness.apps.fleet.units import family_of, is_of
from harness.checks.migration.readiness import owned
from harness.config.command_words import OTHER_SIDE
from harness.config.policy import IN_CONFIG, Tagged, policy_of
from harness.core.errors import ExitCode
from harness.core.findings import Severity, weight
from harness.core.fleet import Examination, Fault, FleetArtifact, FleetCause, FleetReport, FleetResult, FleetRow
from harness.core.outcome import Decision, Status
from harness.core.report import RunReport, SideReport
from harness.core.text import counted, joined, prose
from harness.core.verdict import Cause, Judgement, RowVerdict
from harness.machine import clock
from harness.project import Project, own_command
from harness.report.documents.fleet import unjudged_words
from harness.verdict.causes import with_causes
from harness.verdict.counting import counts_of, is_over, row_word
from harness.verdict.enforce import WaiverContext
from harness.verdict.exit_codes import exit_code
from harness.verdict.regate import regate
from harness.verdict.waivers.uses import ran_by

FLEET = "fleet"
NOT_RUN = "not run yet"
GREEN = (Decision.UPGRADE_OK, Decision.OK_WITH_MITIGATION)


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """A fleet's results as one run's report, which every format of a run takes, and the answer made of it."""

    report: RunReport | None
    answer: FleetReport


def merge(planned: PlannedFleet, options: Project, others: Sequence[str] = ()) -> tuple[Merged, int]:
    """Return the answer over a plan's store as far as results are known, judged by the policy and waivers of today.

    First the results in the folders ``others``, of the same fleet on other machines, are taken over; their number is
    the second value. Raises ``RunDirError``: a folder holds no results.
    """
    absorbed = 0
    if others:
        own = FleetResults(planned.folder / STORE)
        for folder in map(Path, others):
            absorbed += own.absorb(folder / STORE if (folder / STORE).is_dir() else folder)
    results = KeptResults(planned.folder / STORE)
    planned_of = {artifact.key: artifact for artifact in planned.plan.artifacts if artifact.key}
    read = {key: result for key in sorted(planned_of) if (result := results.read(key)) is not None}
    results_of = {key: result for key, result in read.items() if is_of(result.content, planned_of[key], planned.plan)}
    frames = {item.frame: frame for item in results_of.values() if (frame := results.frame(item.frame)) is not None}
    faults = {
        key: fault for key in sorted(planned_of.keys() - results_of.keys()) if (fault := results.fault(key)) is not None
    }
    again = replace(options_again(planned.plan, options), policy_file=options.policy_file)
    return merged(
        planned, results_of, frames, faults, lambda report: _judged(report, again), project=options.folder
    ), absorbed


def merged(
    planned: PlannedFleet,
    results: Mapping[str, FleetResult],
    frames: Mapping[str, RunReport],
    faults: Mapping[str, Fault],
    judge: Callable[[RunReport], RunReport],
    *,
    project: Path,
) -> Merged:
    """Return the answer that results under their keys give.

    ``frames``: digest -> report of a run without its models; ``faults``: key -> why there is no result.
    """
    plan = planned.plan
    artifacts = {item.name: item for item in plan.artifacts}
    standing = _standing(plan.artifacts, results)
    whole = {
        item.name: _whole(item, results[item.key], standing.get(family_of(item)))
        for item in plan.artifacts
        if item.key in results
    }
    report, timing = None, FleetTiming()
    if whole:
        families = {item.name: " ".join(family_of(item)) for item in plan.artifacts}
        together, timing = over_fleet(_report(whole, artifacts, frames), families)
        report = judge(together)
    verdicts = {row.model: row for row in report.judgement.rows} if report is not None else {}
    causes = report.causes if report is not None else ()
    cause_of = {cell: cause.id for cause in reversed(causes) for cell in cause.cells}
    guesses = {model.model: model.guessed for model in report.models} if report is not None else {}
    judged = [
        _row(
            item,
            verdicts.get(item.name),
            cause_of,
            faults,
            standing.get(family_of(item)),
            guessed=guesses.get(item.name, ""),
        )
        for item in plan.artifacts
    ]
    rows = [item.row for item in judged]
    missing = [row for row in rows if row.status is None]
    decision, reason, code = _decision(report, missing, unjudged_words(plan.unjudged))
    notes = [*plan.notes, *filter(None, [timing.words])]
    cpus = tuple(sorted({frame.new.fingerprint.cpu or "" for frame in frames.values() if frame.new.fingerprint}))
    if len(cpus) > 1:
        notes.append(f"results are from {len(cpus)} kinds of CPU: numbers may differ among them")
    answer = FleetReport(
        harness_version=__version__,
        store=plan.store,
        old=_called(report.old if report is not None else None, plan.old),
        new=_called(report.new if report is not None else None, plan.new),
        device=plan.device,
        decision=decision,
        reason=reason,
        exit_code=int(code),
        rows=tuple(rows),
        causes=tuple(_fleet_cause(cause, artifacts, planned, project) for cause in causes),
        waves=waves_of(judged, causes, plan.tiers),
        faults=tuple(faults[key] for key in sorted(faults)),
        machines=cpus,
        notes=tuple(notes),
        unjudged=plan.unjudged,
        counts=counts_of([item.verdict for item in judged if item.row.status is not None]),
        exceeded=report.judgement.exceeded if report is not None else (),
    )
    return Merged(report=report, answer=answer)


def _called(side: SideReport | None, planned: str) -> str:
    """Return what an answer calls a side: as its runs do; of one that they call old or new, what was planned."""
    if side is None:
        return planned
    return f"torch {planned}" if side.name in OTHER_SIDE else side.name


def _standing(
    artifacts: Sequence[FleetArtifact], results: Mapping[str, FleetResult]
) -> dict[tuple[str, str, str], tuple[str, FleetResult | None]]:
    """Return what artifacts share -> the artifact that was examined in full for it, with its result if it has one."""
    return {
        family_of(item): (item.name, results.get(item.key))
        for item in reversed(artifacts)
        if item.key and item.examination is Examination.FULL
    }


def _whole(artifact: FleetArtifact, own: FleetResult, stands: tuple[str, FleetResult | None] | None) -> FleetResult:
    own = renamed(own, artifact.name)
    name, full = stands or ("", None)
    if own.examination is Examination.FULL or full is None:
        return own
    other = renamed(full, artifact.name)
    judged = {cell.scenario for cell in own.row.cells}
    note = f"seen on {name}, which has the same program"
    more = [replace(cell, note=joined(cell.note, note)) for cell in other.row.cells if cell.scenario not in judged]
    cells = {cell.cell for cell in more}
    row = replace(
        own.row,
        cells=(*own.row.cells, *more),
        mitigations=(*own.row.mitigations, *(item for item in other.row.mitigations if item.cell in cells)),
    )
    facts = replace(own.facts, latency=other.facts.latency, timed=other.facts.timed, concurrent=other.facts.concurrent)
    explained = (*own.explained, *(item for item in other.explained if item.cell in cells))
    return replace(own, row=row, facts=facts, explained=explained)


def _report(
    whole: Mapping[str, FleetResult], artifacts: Mapping[str, FleetArtifact], frames: Mapping[str, RunReport]
) -> RunReport:
    ordered = [whole[name] for name in sorted(whole)]
    frame = frames[min(frames)]
    judgements = [other.judgement for other in frames.values()]
    planted = {defect.name: defect for other in judgements for defect in other.planted_defects}
    vacuous = next((other.vacuous for other in judgements if other.vacuous), "")
    judgement = replace(
        frame.judgement,
        rows=tuple(item.row for item in ordered),
        planted_defects=tuple(planted[name] for name in sorted(planted)),
        vacuous=vacuous,
    )
    models = []
    for item in ordered:  # rules of a policy may call an artifact by what its manifest says, beside its own tags
        artifact = artifacts[item.name]
        words = (*item.facts.tags, *artifact.tags, artifact.owner, artifact.tier)
        models.append(replace(item.facts, tags=tuple(dict.fromkeys(filter(None, words)))))
    return replace(
        frame,
        run=FLEET,
        judgement=judgement,
        models=tuple(models),
        scenarios=tuple(scenario for item in ordered for scenario in item.scenarios),
        explained=tuple(search for item in ordered for search in item.explained),
    )


def _judged(report: RunReport, options: Project) -> RunReport:
    settings = options.settings
    source = settings.policy_file or IN_CONFIG
    models = [Tagged(model.model, model.tags) for model in report.models]
    context = WaiverContext(waivers=options.waivers(settings), ran=ran_by(report), today=clock.today())
    policies = {model.name: policy_of(settings.policy, model, source=source) for model in models}
    return with_causes(regate(report, settings.policy, policies, context, source=source))


def _row(
    artifact: FleetArtifact,
    verdict: RowVerdict | None,
    cause_of: Mapping[str, str],
    faults: Mapping[str, Fault],
    stands: tuple[str, FleetResult | None] | None,
    *,
    guessed: str,
) -> Judged:
    is_itself = stands is None or stands[0] == artifact.name or artifact.examination is Examination.FULL
    status = verdict.status if verdict is not None else None
    unknown_for, reason = (
        ("", verdict.reason or _beside(verdict)) if verdict is not None else _why_none(artifact, faults)
    )
    if stands is not None and not is_itself and stands[1] is None and status in (Status.PASS, Status.XFAIL):
        status, unknown_for = None, "its program was not examined in full"
        reason = f"{unknown_for}: {stands[0]} has no result"
    cause = ""
    if verdict is not None and status is not None:
        cause = next(
            (cause_of[cell.cell] for cell in verdict.cells if cell.status is status and cell.cell in cause_of), ""
        )
    row = FleetRow(
        name=artifact.name,
        path=artifact.path,
        owner=artifact.owner,
        tier=artifact.tier,
        tags=artifact.tags,
        program=artifact.program[:12],
        status=status,
        reason=reason,
        cause=cause,
        content=artifact.key[:12],
        guessed=guessed,
        member=artifact.member,
        word=row_word(verdict) if status is not None else "",
    )
    return Judged(artifact, row, verdict, unknown_for)


def _beside(verdict: RowVerdict) -> str:
    """Return what is to be known of an artifact that passes."""
    told = (Severity.INCONCLUSIVE, Severity.NAMED, Severity.WARN)
    found = [
        prose(finding.message)
        for cell in verdict.cells
        for finding in cell.findings
        if weight(cell, finding.kind) in told or is_over(cell, finding)
    ]
    return joined(*dict.fromkeys(found))


def _why_none(artifact: FleetArtifact, faults: Mapping[str, Fault]) -> tuple[str, str]:
    """Return why an artifact has no result: what it shares with others, and in full."""
    if artifact.left_out:
        return (artifact.left_out_for or artifact.left_out, artifact.left_out)
    fault = faults.get(artifact.key)
    if fault is not None:
        return (fault.label, f"{fault.label}: {LABELS.get(fault.label, '')} ({fault.text})")
    prediction = artifact.predictions.get("new")
    return (NOT_RUN, joined(NOT_RUN, f"reading predicts: {prediction.value}" if prediction is not None else ""))


def _decision(report: RunReport | None, missing: Sequence[FleetRow], unjudged: str) -> tuple[Decision, str, ExitCode]:
    """Return the decision, why, and the exit code; a green one says what it does not speak of."""
    if report is None:
        return Decision.NOTHING_TESTED, "no result is known yet", exit_code(Decision.NOTHING_TESTED)
    judgement: Judgement = report.judgement
    without = f"{counted(len(missing), 'artifact')} without a result"
    if missing and judgement.decision in GREEN:
        return Decision.INCONCLUSIVE, without, exit_code(Decision.INCONCLUSIVE)
    reason = joined(judgement.reason, without if missing else "", unjudged if judgement.decision in GREEN else "")
    return judgement.decision, reason, exit_code(judgement)


def _fleet_cause(
    cause: Cause, artifacts: Mapping[str, FleetArtifact], planned: PlannedFleet, project: Path
) -> FleetCause:
    """Return a cause with whose artifacts it is of; its command repeats and explains the clearest of them."""
    own = [artifacts[name] for name in cause.models]
    command = own_command(project, "fleet", "explain", str(planned.folder), own[0].name) if own else ""
    cause = replace(cause, commands=(("explain", command),) if own else ())
    return FleetCause(cause=cause, owners=owned(own), programs=len({item.program for item in own}))
