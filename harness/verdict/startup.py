"""Judges one model's part in the initialization of its server group."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.checks.hang.story import failure_finding, meaning_of
from harness.checks.outputs.findings import output_findings
from harness.checks.startup.attribution_words import attribution_words, change_words
from harness.checks.startup.rates import Change, change_of, more_often
from harness.core.comparison import OutputComparison
from harness.core.diagnosis import Attribution
from harness.core.findings import SEVERITY, WORST_FIRST, Severity, status_of
from harness.core.hang import Evidence
from harness.core.outcome import Outcome, Status
from harness.core.probe import ModelResult
from harness.core.text import error_words, joined, times_of
from harness.core.verdict import CellVerdict, Finding
from harness.serving.scenarios import Scenario
from harness.worker import wire

# float32's share of the largest magnitude (DESIGN.md, numerics): replay and call run the same kernels.
SCALED_TOLERANCE = 1e-5
SHARED_STATE, SIZES_REFUSED = "shared_state", "sizes_refused"
# Where the old release has these too, they say how a model may be served, and nothing of other scenarios.
HOW_TO_SERVE = (SHARED_STATE, SIZES_REFUSED, "exit_crash")
BEFORE_TOO = "fails before the upgrade too"
WEIGHING = (Status.FAIL, Status.INCONCLUSIVE)
STATUS_OF_CHANGE = {
    Change.MORE_OFTEN: Status.FAIL,
    Change.IN_BOTH: Status.SAME_FAIL,
    Change.UNDECIDED: Status.INCONCLUSIVE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class InitializationResult:
    """What happened to a model in one scenario and release.

    Attributes:
        result: its first failure, else a completed round.
        graph: what the worker measured of its captured graph, of the worst round; None without one.
        served_otherwise: where it answered otherwise while it served than before: how many calls, and the first.
    """

    result: ModelResult
    rounds: int = 1
    failed_rounds: int = 0
    graph: Mapping[str, Any] | None = None
    served_otherwise: Mapping[str, Any] | None = None
    exit_detail: str = ""
    evidence: str = ""
    seen: Evidence | None = None

    @property
    def failed(self) -> bool:
        return self.result.outcome is not Outcome.COMPLETED


@dataclass(frozen=True, kw_only=True, slots=True)
class Initialization:
    """What is known of one way in which a model came through the initialization of its server group.

    Attributes:
        alone: the verdict on the model alone; ``old_alone``: how it did alone in the old release.
        old: None where no old environment can be asked.
        comparison: its outputs there, of the copy that differs if one does, against the golden; against what it
            answers alone where that is not the golden.
        old_differs: whether the old release, too, answers otherwise there than alone.
        draws: whether the model draws random numbers, in a process whose other threads may seed or draw too.
        keeps_state: whether its answers change from call to call.
        attribution: what it needs in order to fail and how often it does in either release, which decides in place of
            the rounds; None where nobody asked.
    """

    cell: str
    scenario: Scenario
    alone: CellVerdict
    old_alone: Sequence[ModelResult] = ()
    new: InitializationResult
    old: InitializationResult | None = None
    new_name: str
    comparison: OutputComparison | None = None
    old_differs: bool = False
    draws: bool = False
    keeps_state: bool = False
    attribution: Attribution | None = None

    @property
    def failed_alike(self) -> bool:
        """Whether the old release fails in the same way, and by the rounds of both not clearly less often."""
        new, old = self.new, self.old
        return (
            old is not None
            and old.failed
            and old.result.way == new.result.way
            and not more_often(new.failed_rounds, new.rounds, old.failed_rounds, old.rounds)
        )

    def verdict(self, status: Status, findings: Sequence[Finding], note: str = "") -> CellVerdict:
        return CellVerdict(
            cell=self.cell,
            model=self.alone.model,
            scenario=self.scenario.name,
            status=status,
            findings=tuple(findings),
            note=note,
            decides=status is not Status.SAME_FAIL or any(finding.kind not in HOW_TO_SERVE for finding in findings),
        )


def judge_initialization(item: Initialization) -> CellVerdict:
    if item.new.failed:
        return _judge_failure(item)
    judged = [_judge_replay(item), _judge_served(item), _judge_answers(item)]
    verdicts = [verdict for verdict in judged if verdict is not None]
    return together(verdicts) if verdicts else item.verdict(Status.PASS, ())


def _judge_failure(item: Initialization) -> CellVerdict:
    new, attribution = item.new, item.attribution
    finding = failure_finding(
        new.result,
        item.new_name,
        stage=f"in {item.scenario.words}",
        exit_detail=new.exit_detail,
        evidence=new.evidence,
        seen=new.seen,
        old=item.old_alone,
    )
    note = f"in {times_of(new.failed_rounds, new.rounds)}" if new.rounds > 1 and new.failed_rounds else ""
    finding = _of_its_own_kind(finding, new.result, item.alone)
    if SEVERITY[finding.kind] is not Severity.FAIL:
        return item.verdict(status_of([finding]), [finding], note)
    if attribution is not None:
        finding = replace(
            finding, story=(("needs", attribution_words(attribution, item.scenario.name)), *finding.story)
        )
        rates = attribution.rates
        if rates is not None and new.result.outcome.value in rates.outcomes:
            return item.verdict(STATUS_OF_CHANGE[change_of(rates)], [finding], joined(note, change_words(rates)))
    if item.old is not None and item.old.failed:
        return _judge_failure_before(item, item.old, finding, note)
    return item.verdict(status_of([finding]), [finding], note)


def _judge_failure_before(item: Initialization, old: InitializationResult, finding: Finding, note: str) -> CellVerdict:
    result = item.new.result
    before = f" ({times_of(old.failed_rounds, old.rounds)})" if old.rounds > 1 else ""
    if item.failed_alike and item.scenario.larger_inputs and result.way == (Outcome.RUNTIME_ERROR, wire.SERVE):
        why = f": {error_words(result.failure)}" if result.failure else ""
        message = f"refuses requests of other sizes in both releases: not covered by {item.scenario.name}{why}"
        return item.verdict(Status.SAME_FAIL, [replace(finding, kind=SIZES_REFUSED, message=message)], note)
    if item.failed_alike:
        return item.verdict(Status.SAME_FAIL, [finding], joined(note, f"{BEFORE_TOO}{before}", meaning_of(finding)))
    how = "less often" if old.result.way == result.way else "otherwise"
    return item.verdict(status_of([finding]), [finding], joined(note, f"fails {how} in the old release{before}"))


def _judge_replay(item: Initialization) -> CellVerdict | None:
    finding = _graph_finding(item.new.graph, item.new.evidence)
    if finding is None:
        return None
    return _as_before(item, finding, before=item.old is not None and _graph_finding(item.old.graph, "") is not None)


def _judge_served(item: Initialization) -> CellVerdict | None:
    if item.draws or item.new.served_otherwise is None:
        return None
    finding = _served_finding(item.new.served_otherwise, item.new.evidence)
    return _as_before(item, finding, before=item.old is not None and item.old.served_otherwise is not None)


def _as_before(item: Initialization, finding: Finding, *, before: bool) -> CellVerdict:
    return item.verdict(Status.SAME_FAIL if before else Status.FAIL, [finding], BEFORE_TOO if before else "")


def _judge_answers(item: Initialization) -> CellVerdict | None:
    if item.comparison is None:
        return None
    differences = [finding for finding in output_findings(item.comparison) if SEVERITY[finding.kind] is Severity.FAIL]
    findings = [
        replace(
            finding,
            kind="race",
            message=f"answers otherwise than alone: {finding.message}",
            evidence=item.new.evidence,
        )
        for finding in differences
    ]
    if findings and item.draws and all(map(_may_be_by_chance, differences)):
        # All threads of a process share torch's one generator; seeding it in one thread moves it in the others.
        message = "draws from the generator that all threads share: its values and shapes are not compared there"
        return item.verdict(Status.PASS, [replace(findings[0], kind="shared_generator", message=message)])
    if findings and item.old_differs and (item.scenario.stateless or item.keeps_state):
        message = f"keeps state in both releases: must not be shared by threads: {findings[0].message}"
        return item.verdict(Status.SAME_FAIL, [replace(findings[0], kind=SHARED_STATE, message=message)])
    if findings and item.old_differs:
        return item.verdict(Status.SAME_FAIL, findings, "the old release answers otherwise there too")
    return item.verdict(status_of(findings), findings)


def together(verdicts: Sequence[CellVerdict]) -> CellVerdict:
    """Return the worst verdict on a cell with all else that is open: a waiver of one failure covers no other."""
    worst, *others = sorted(verdicts, key=lambda cell: WORST_FIRST.index(cell.status))
    if worst.status not in WEIGHING:
        return worst
    more = [
        replace(finding, message=f"{finding.message} ({cell.note})") if cell.note else finding
        for cell in others
        if cell.status in WEIGHING
        for finding in cell.findings
    ]
    return replace(worst, findings=(*worst.findings, *more))


def _may_be_by_chance(finding: Finding) -> bool:
    """Whether what is drawn can decide on it: on values, shapes and lengths, not on whether there is an answer."""
    kind = finding.detail.get("was", finding.kind)
    return kind == "values" or (kind == "structure" and bool(finding.where))


def _of_its_own_kind(finding: Finding, result: ModelResult, alone: CellVerdict) -> Finding:
    """Return the finding under the name of what only an initialization shows."""
    if result.failure is not None and result.failure.phase in (wire.CAPTURE, wire.REPLAY):
        return replace(finding, kind="capture_error")
    if result.outcome in (Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR) and alone.status is Status.PASS:
        return replace(finding, kind="concurrent_error", message=f"only beside others: {finding.message}")
    return finding


def _graph_finding(graph: Mapping[str, Any] | None, evidence: str) -> Finding | None:
    if graph is None:
        return None
    difference, scale = float(graph["max_abs_difference"]), float(graph["scale"])
    if difference <= SCALED_TOLERANCE * scale:  # False for NaN
        return None
    off = f"the replay of its graph ({graph['mode']} mode) is off by {difference:.3g} of {scale:.3g}"
    return Finding(
        kind="graph_replay",
        message=f"{off}{_rebound(graph)}",
        rule="scaled tolerance",
        evidence=evidence,
        size=difference / scale if scale else math.inf,
    )


def _rebound(graph: Mapping[str, Any]) -> str:
    """Return why a replay of a model whose call binds buffers anew goes on from elsewhere; empty of any other model."""
    names = ", ".join(f"`{name}`" for name in graph.get("rebound", ()))
    why = "its call binds {} anew, and a replay goes on with the memory of the capture: write in place (copy_) there"
    return f"; {why.format(names)}" if names else ""


def _served_finding(served: Mapping[str, Any], evidence: str) -> Finding:
    """Return the finding for answers that changed while it served; the worker says how many of how many."""
    return Finding(
        kind="race",
        message=f"answers otherwise while it serves: {served.get('different', 'some')} of {served['calls']} "
        f"served calls, from call {served['first']} on",
        evidence=evidence,
    )
