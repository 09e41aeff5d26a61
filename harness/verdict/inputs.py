"""What a verdict is worth without given inputs, or of a rewritten file: guessed inputs, none, none for a method."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness.checks.prediction.semantics import SemanticChange, can_show, changes_between
from harness.core.archive import ArchiveFacts, Reach
from harness.core.findings import Severity, status_of, weight
from harness.core.models import Artifact
from harness.core.outcome import Status
from harness.core.text import counted, first_few, joined
from harness.core.verdict import CellVerdict, Finding, Provenance, RowVerdict
from harness.verdict.mitigation import provenance_words

GUESSED: Final = "guessed from the graph: "
"""How the note of an adoption begins that made inputs up."""
NAMED: Final = 3
NO_VALUE: Final = "no value was compared: it answers its requests with NaN, infinity or nothing"
GIVE: Final = "give it requests: a file NAME.inputs.py or NAME.inputs.pt beside NAME.pt"
UNTESTED_METHOD: Final = "untested_method"
UNTESTED_BRANCH: Final = "untested_branch"
UNSHOWN: Final = "its inputs are guesses, which may not show it: give requests"
SHOWN_ONLY: Final = "the latency of guessed inputs is shown and decides nothing"


def guess_of(artifact: Artifact | None) -> str:
    if artifact is None or not artifact.input_sets:
        return ""
    return artifact.inputs_note.removeprefix(GUESSED)


def inputs_words(artifact: Artifact) -> str:
    never = [f"not called: {why}" for why in artifact.uncalled] if artifact.input_sets else []
    return joined(artifact.inputs_note, *never)


def guess_notes(artifacts: Mapping[str, Artifact | None]) -> tuple[str, ...]:
    """Return the note on models without given inputs; ``artifacts`` has all models of the run, None without."""
    guesses = {name: guess for name, artifact in artifacts.items() if (guess := guess_of(artifact))}
    if not guesses:
        return ()
    models = f"{len(guesses)} of {len(artifacts)} model{'s' if len(artifacts) > 1 else ''}"
    named = first_few([f"{name} ({guess})" for name, guess in guesses.items()], NAMED)
    return (f"inputs of {models} were guessed: {named}",)


def with_what_requests_miss(
    verdict: CellVerdict, artifact: Artifact, facts: ArchiveFacts | None, changes: Sequence[SemanticChange]
) -> CellVerdict:
    """Return the verdict on a model that passes with what its requests leave open, by reading it.

    That is methods that no request reaches, and operators known to answer otherwise (``changes``, of this model) that
    stand in branches only: a request need not take them, and of guesses a warning says so of every such operator.
    """
    if verdict.status is not Status.PASS or facts is None or not artifact.input_sets:
        return verdict
    findings = list(verdict.findings)
    if methods := _unasked({name: facts.calls.get(name, ()) for name in facts.methods}, artifact):
        subject, do = ", ".join(methods), "give a request for each, by its name"
        message = f"no request reaches {subject}: not tested"
        findings.append(Finding(kind=UNTESTED_METHOD, message=message, subject=subject, advice=do))
    taken = {use.name for use in facts.operators if use.reach is Reach.STRAIGHT}
    branched = {use.name for use in facts.operators if use.reach is Reach.BRANCH} - taken
    open_ = [change for change in changes if change.operator in branched and not guess_of(artifact)]
    findings += (
        Finding(
            kind=UNTESTED_BRANCH,
            message=f"{change.operator}: {change.what} ({change.source}); it stands in a branch, and nothing shows "
            "that a request takes that",
            subject=change.operator,
            advice="give a request that takes the branch",
        )
        for change in open_
    )
    return replace(verdict, findings=tuple(findings))


def draw_notes(models: Sequence[str]) -> tuple[str, ...]:
    """Return the note on models of which a call draws random numbers; none where there is none."""
    if not models:
        return ()
    draw = "draws" if len(models) == 1 else "draw"
    question = "is that meant, or was it traced in training mode (a dropout)?"
    return (f"{first_few(models, NAMED)} {draw} random numbers in a call, compared from one seed: {question}",)


def stride_notes(cells: Iterable[CellVerdict]) -> tuple[str, ...]:
    """Return the note on outputs that have other strides than before, which fails no cell; none where there is none."""
    strides = {cell.model: finding for cell in cells for finding in cell.findings if finding.kind == "stride"}
    if not strides:
        return ()
    named = first_few([f"{name} ({finding.message})" for name, finding in strides.items()], NAMED)
    return (f"outputs of {counted(len(strides), 'model')} have other strides: {named}",)


def _unasked(methods: Mapping[str, Sequence[str]], artifact: Artifact) -> list[str]:
    pending = [*(item.method for item in artifact.input_sets), artifact.reset or ""]
    reached: set[str] = set()
    while pending:
        name = pending.pop()
        pending += set(methods.get(name, ())) - {*reached, name}
        reached.add(name)
    return [name for name in methods if name not in reached and not name.startswith("_")] if artifact.input_sets else []


def with_requests(verdict: CellVerdict) -> CellVerdict:
    """Return the verdict on a given artifact; a request that raises in both releases may well be the one at fault."""
    raised = next((item for item in verdict.findings if item.kind == "call_error"), None)
    if verdict.status is not Status.SAME_FAIL or raised is None:
        return verdict
    finding = Finding(
        kind="request_fails",
        message=f"its request fails in the release that it comes from too: {raised.message}",
        where=raised.where,
        error=raised.error,
        advice="mend the request, or leave the model out",
    )
    return replace(verdict, status=Status.INCONCLUSIVE, findings=(finding, *verdict.findings))


def with_inputs(verdict: CellVerdict, artifact: Artifact, *, answered: bool = True, evidence: str = "") -> CellVerdict:
    """Return the verdict on a model alone with how its inputs were come by; PASS needs a call of every method named.

    ``answered``: whether the old release's answers hold a value to compare; ``evidence``: where the inputs lie.
    """
    if not artifact.input_sets:
        return _never(verdict, artifact)
    doubts = [
        Finding(
            kind="not_called", message=f"a method that was named is not called: {why}", evidence=evidence, advice=GIVE
        )
        for why in artifact.uncalled
    ]
    notes = []
    if guess_of(artifact):
        notes.append(
            Finding(
                kind="guessed_inputs", message=f"its inputs were {artifact.inputs_note}", evidence=evidence, advice=GIVE
            )
        )
    if not answered and verdict.status is Status.PASS:
        kind = "not_decidable" if guess_of(artifact) else "no_value"
        doubts.append(Finding(kind=kind, message=NO_VALUE, evidence=evidence, advice=f"{GIVE}, answered with numbers"))
    if verdict.status is not Status.PASS:
        return replace(verdict, findings=(*verdict.findings, *doubts, *notes))
    findings = (*doubts, *verdict.findings, *notes)
    return replace(verdict, status=status_of(doubts), findings=findings)


def with_changed_operators(
    verdict: CellVerdict, artifact: Artifact, pair: tuple[str, str], *, draws: bool
) -> CellVerdict:
    """Return the verdict with a warning for each operator that is known to answer otherwise, where inputs are guesses.

    What is known to have changed may need values or shapes that nobody guesses. ``draws``: whether a call of the model
    drew random numbers: some changes are about these alone.
    """
    if verdict.status is not Status.PASS or not guess_of(artifact):
        return verdict
    return replace(verdict, findings=(*changed_operators(artifact, pair, draws=draws), *verdict.findings))


def changed_operators(artifact: Artifact, pair: tuple[str, str], *, draws: bool) -> tuple[Finding, ...]:
    """Return a warning for each operator of an artifact with guessed inputs that is known to answer otherwise."""
    return tuple(
        Finding(
            kind="changed_operator",
            message=f"{change.operator}: {change.what} ({change.source}); {UNSHOWN}",
            subject=change.operator,
            advice=GIVE,
        )
        for change in changed(artifact, pair, draws=draws)
    )


def changed(artifact: Artifact, pair: tuple[str, str], *, draws: bool) -> tuple[SemanticChange, ...]:
    """Return what is known to answer otherwise between two releases, of the operators of an artifact."""
    return tuple(
        change
        for change, _ in changes_between(*pair)
        if change.operator in artifact.operators and (draws or not change.drawn)
    )


def with_subjects(
    verdict: CellVerdict, pair: tuple[str, str], changes: Sequence[SemanticChange], refused: Sequence[str]
) -> CellVerdict:
    """Return the verdict with the operators that its failures are of, so that a waiver of one covers no other.

    ``changes``: of the model's operators; ``refused``: those for which it will not load.
    """

    def operators(finding: Finding) -> Sequence[str]:
        if finding.kind == "load_error":
            return refused
        return [item.operator for item in changes if not finding.error and can_show(item, finding, *pair)]

    findings = (
        item if item.subject else replace(item, subject=", ".join(sorted(set(operators(item)))))
        for item in verdict.findings
    )
    return replace(verdict, findings=tuple(findings))


def unseen_changes(row: RowVerdict) -> tuple[Finding, ...]:
    """Return the warnings of a row that an operator is known to answer otherwise, which guesses may not have shown."""
    found = [
        (item.subject, item)
        for cell in row.cells
        for item in cell.findings
        if item.kind == "changed_operator" and weight(cell, item.kind) is Severity.WARN
    ]
    return tuple(dict(found).values())


def with_provenance(verdict: CellVerdict, provenance: Provenance) -> CellVerdict:
    """Return the verdict on a file that a search has rewritten: its price is nothing that two releases with it show."""
    note = Finding(kind="rewritten_file", message=f"it is {provenance_words(provenance)}")
    return replace(verdict, findings=(*verdict.findings, note))


def is_rewritten(row: RowVerdict) -> bool:
    return any("rewritten_file" in cell.kinds for cell in row.cells)


def is_guessed(row: RowVerdict) -> bool:
    return any("guessed_inputs" in cell.kinds for cell in row.cells)


def _never(verdict: CellVerdict, artifact: Artifact) -> CellVerdict:
    """Return the verdict on a model that is loaded and never called."""
    if not artifact.inputs_note or {"load_error", "damaged_file"} & {*verdict.kinds}:
        return verdict  # whatever the inputs, it is not called
    message = f"it was not called: {artifact.inputs_note}"
    if verdict.status is not Status.PASS:
        return replace(verdict, note=joined(verdict.note, message))
    not_called = Finding(kind="not_called", message=f"loads, and {message}", advice=GIVE)
    return replace(verdict, status=Status.INCONCLUSIVE, findings=(not_called, *verdict.findings))


def latency_with_inputs(verdict: CellVerdict, guess: str) -> CellVerdict:
    if verdict.status is Status.PASS or not guess:
        return verdict
    return replace(verdict, decides=False, note=joined(verdict.note, SHOWN_ONLY))
