"""Judges one model's part in the initialization of its server group."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.checks.hang.story import failure_finding, meaning_of
from harness.checks.outputs.findings import output_findings
from harness.checks.startup.rates import Change
from harness.core.comparison import OutputComparison
from harness.core.diagnosis import Attribution
from harness.core.findings import SEVERITY, WORST_FIRST, Severity, status_of
from harness.core.hang import Evidence
from harness.core.measurement import signed_percent
from harness.core.outcome import Outcome, Status
from harness.core.plan import INITIALIZATION_FLOOR_S
from harness.core.probe import ModelResult
from harness.core.quantities import INITIALIZATION
from harness.core.text import amount, error_words, joined, times_of
from harness.core.verdict import CellVerdict, Finding
from harness.search.attribution import attribution_words, change_of, change_words
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


def judge_initialization(
    cell: str,
    *,
    scenario: str,
    words: str,
    alone: CellVerdict,
    new: InitializationResult,
    old: InitializationResult | None,
    comparison: OutputComparison | None,
    more_often: bool = False,
    found: Attribution | None = None,
    draws: bool = False,
    shared: bool = False,
    larger: bool = False,
    new_name: str,
    old_differs: bool = False,
    exit_detail: str = "",
    evidence: str = "",
    seen: Evidence | None = None,
    old_alone: Sequence[ModelResult] = (),
) -> CellVerdict:
    """Return the verdict on a model initialized beside the others of its server group.

    Args:
        words: what a reader calls the scenario.
        new, old: how the model came through; ``old`` is None where no old environment can be asked.
        comparison: its outputs there, of the copy that differs if one does, against the golden; against what it
            answers alone where that is not the golden.
        draws: whether the model draws random numbers, in a process whose other threads may seed or draw too.
        shared: whether state of the module shows there: all threads use one, or its answers change from call to call.
        larger: whether requests of sizes are made that were not recorded: those that are served after the warm-up.
        more_often: whether it fails clearly more often than in the old release, by the rounds of both.
        found: what it needs in order to fail and how often it does in either release, which decides in place of the
            rounds; None where nobody asked.
        old_differs: whether the old release, too, answers otherwise there than alone.
        old_alone: how the model did alone in the old release.
    """

    def verdict(status: Status, findings: Sequence[Finding], note: str = "") -> CellVerdict:
        return CellVerdict(
            cell=cell,
            model=alone.model,
            scenario=scenario,
            status=status,
            findings=tuple(findings),
            note=note,
            decides=status is not Status.SAME_FAIL or any(finding.kind not in HOW_TO_SERVE for finding in findings),
        )

    if new.result.outcome is not Outcome.COMPLETED:
        finding = failure_finding(
            new.result,
            new_name,
            stage=f"in {words}",
            exit_detail=exit_detail,
            evidence=evidence,
            seen=seen,
            old=old_alone,
        )
        note = f"in {times_of(new.failed_rounds, new.rounds)}" if new.rounds > 1 and new.failed_rounds else ""
        finding = _of_its_own_kind(finding, new.result, alone)
        if found is not None and SEVERITY[finding.kind] is Severity.FAIL:
            finding = replace(finding, story=(("needs", attribution_words(found, scenario)), *finding.story))
            if found.rates is not None and new.result.outcome.value in found.rates.outcomes:
                note = joined(note, change_words(found.rates))
                return verdict(STATUS_OF_CHANGE[change_of(found.rates)], [finding], note)
        if old is not None and old.result.outcome is not Outcome.COMPLETED and SEVERITY[finding.kind] is Severity.FAIL:
            before = f" ({times_of(old.failed_rounds, old.rounds)})" if old.rounds > 1 else ""
            alike = old.result.way == new.result.way
            if alike and larger and not more_often and new.result.way == (Outcome.RUNTIME_ERROR, wire.SERVE):
                why = f": {error_words(new.result.failure)}" if new.result.failure else ""
                message = f"refuses requests of other sizes in both releases: not covered by {scenario}{why}"
                return verdict(Status.SAME_FAIL, [replace(finding, kind=SIZES_REFUSED, message=message)], note)
            if alike and not more_often:
                return verdict(Status.SAME_FAIL, [finding], joined(note, f"{BEFORE_TOO}{before}", meaning_of(finding)))
            how = "less often" if alike else "otherwise"
            note = joined(note, f"fails {how} in the old release{before}")
        return verdict(status_of([finding]), [finding], note)
    judged = [_judge_replay(new, old, evidence), _judge_served(new, old, evidence) if not draws else None]
    if comparison is not None:
        judged.append(_judge_answers(comparison, evidence, draws=draws, shared=shared, old_differs=old_differs))
    said = [verdict(*item) for item in judged if item is not None]
    return together(said) if said else verdict(Status.PASS, ())


def slow_start(old_s: float, new_s: float, limit: float, *, group: str, words: str) -> Finding | None:
    """Return the finding where a server group takes clearly longer to get ready than it did; it only warns.

    Args:
        old_s, new_s: first load to last warm-up call.
        limit: ratio new/old that is still accepted; less than a second more is none either.
        words: what a reader calls the scenario.
    """
    if new_s <= limit * old_s or new_s - old_s < INITIALIZATION_FLOOR_S:
        return None
    change = f"{signed_percent(new_s / old_s)} %" if old_s > 0 else "from nothing"
    message = (
        f"{words}: server group {group} gets ready in {amount(new_s, 's')}, {amount(old_s, 's')} before ({change}, "
        f"limit {signed_percent(limit)} %)"
    )
    size = new_s / old_s if old_s > 0 else None
    return Finding(
        kind="initialization_time",
        message=message,
        size=size,
        detail={"group": group},
        quantity=INITIALIZATION,
        limit=limit,
    )


def together(found: Sequence[CellVerdict]) -> CellVerdict:
    """Return the worst of the verdicts on one cell, with whatever else fails it or leaves it open.

    Who waives one way to fail, or lets it pass, has not heard of the others.
    """
    worst, *others = sorted(found, key=lambda cell: WORST_FIRST.index(cell.status))
    if worst.status not in WEIGHING:
        return worst
    more = [
        replace(finding, message=f"{finding.message} ({cell.note})") if cell.note else finding
        for cell in others
        if cell.status in WEIGHING
        for finding in cell.findings
    ]
    return replace(worst, findings=(*worst.findings, *more))


Judged = tuple[Status, Sequence[Finding], str]


def _judge_replay(new: InitializationResult, old: InitializationResult | None, evidence: str) -> Judged | None:
    finding = _graph_finding(new.graph, evidence)
    if finding is None:
        return None
    same = old is not None and _graph_finding(old.graph, evidence) is not None
    return Status.SAME_FAIL if same else Status.FAIL, [finding], BEFORE_TOO if same else ""


def _judge_served(new: InitializationResult, old: InitializationResult | None, evidence: str) -> Judged | None:
    if new.served_otherwise is None:
        return None
    same = old is not None and old.served_otherwise is not None
    finding = _served_finding(new.served_otherwise, evidence)
    return Status.SAME_FAIL if same else Status.FAIL, [finding], BEFORE_TOO if same else ""


def _judge_answers(
    comparison: OutputComparison, evidence: str, *, draws: bool, shared: bool, old_differs: bool
) -> Judged:
    differences = [finding for finding in output_findings(comparison) if SEVERITY[finding.kind] is Severity.FAIL]
    findings = [
        replace(finding, kind="race", message=f"answers otherwise than alone: {finding.message}", evidence=evidence)
        for finding in differences
    ]
    if findings and draws and all(map(_may_be_by_chance, differences)):
        # All threads of a process share torch's one generator; seeding it in one thread moves it in the others.
        message = "draws from the generator that all threads share: its values and shapes are not compared there"
        return Status.PASS, [replace(findings[0], kind="shared_generator", message=message)], ""
    if findings and old_differs and shared:
        message = f"keeps state in both releases: must not be shared by threads: {findings[0].message}"
        return Status.SAME_FAIL, [replace(findings[0], kind=SHARED_STATE, message=message)], ""
    if findings and old_differs:
        return Status.SAME_FAIL, findings, "the old release answers otherwise there too"
    return status_of(findings), findings, ""


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
    """Return the finding where the replay of a captured graph answers otherwise than the plain call did."""
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
