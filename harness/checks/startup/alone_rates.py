"""Asks how often each model that fails alone does so in either release."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.checks.startup.rates import rates_of
from harness.core.diagnosis import Answer, Attribution, FailureRates, SearchAnswer
from harness.core.outcome import UNCLEAR, Outcome, Status
from harness.core.probe import ModelResult
from harness.core.verdict import CellVerdict
from harness.machine import pool
from harness.probing.alone import patient
from harness.probing.facts import Effects, Judged, profile_of

# Kinds of findings that one run shows by its outcome alone; a wrong answer has its own chain of rules.
SHOWN_BY_OUTCOME: Mapping[str, frozenset[Outcome]] = {
    "hang": frozenset({Outcome.HANG}),
    "crash": frozenset({Outcome.CRASH}),
    "exit_crash": frozenset({Outcome.CRASH}),
    "concurrent_error": frozenset({Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR}),
    "out_of_memory": frozenset({Outcome.OUT_OF_MEMORY}),
}
# A cell of a model alone that rates may change; what is waived or let pass is not asked about.
ASKED_ALONE = (Status.FAIL, Status.SAME_FAIL, Status.INCONCLUSIVE)


def rates_alone(facts: Judged, effects: Effects, late: Callable[[], bool]) -> Mapping[tuple[str, str], Attribution]:
    """Return how often each model that fails alone does so in either release; ``late``: see ``rates_of``.

    Runs of the old release that were made whatever the new one did count; those that raised the question do not.
    """
    failing = {name: failure for name in facts.verdicts if (failure := _failing_alone(name, facts)) is not None}
    if not failing or "old" not in effects.environments:
        return {}
    effects.progress.stage("how often does it fail in either release?", len(failing))

    def rates(name: str) -> FailureRates | None:
        failed, input_set, of_new = failing[name]

        def ask(side: str, repeat: int) -> SearchAnswer:
            artifact, deadline = facts.artifact(name), patient(name, facts)
            request = facts.requests.run(
                side, [artifact], deadline, profile=profile_of(side, facts.plan), repeat=repeat
            )
            return answer_of(effects.runner(replace(request, look=False)).models[0])

        def answer_of(result: ModelResult) -> SearchAnswer:
            return _answer_of(result.of_request(input_set) if input_set else result)

        known = [answer_of(result) for result in facts.baselines[name].results] if of_new else []
        measured = rates_of(
            ask,
            {failed.outcome.value},
            {failed.place} if of_new else (),
            late=late,
            known=known,
        )
        effects.progress.step(name)
        return replace(measured, input_set=input_set) if measured.new.runs + measured.old.runs > len(known) else None

    asked = zip(failing, pool.each(rates, failing, jobs=facts.plan.settings.jobs), strict=True)
    return {(name, "alone"): by_itself(name, 1, failure) for name, failure in asked if failure is not None}


def _failing_alone(name: str, facts: Judged) -> tuple[ModelResult, str, bool] | None:
    """Return how a model fails alone, in which request, and whether in the new release; None if it does not.

    Else it fails now and then in the old one. Of several requests it is the first that fails otherwise than before.
    """
    cell = cell_of(name, "alone", facts)
    if cell is None or name not in facts.alone or cell.status not in ASKED_ALONE:
        return None
    new, old = facts.alone[name].models[0], facts.baselines[name].results
    shown = frozenset[Outcome]().union(*SHOWN_BY_OUTCOME.values())
    if any(result.outcome not in {Outcome.COMPLETED, *shown, *UNCLEAR} for result in old):
        return None  # such as what is not supported there: a run more says the same
    if new.outcome in shown:
        failed = [(new.of_request(item.input_set), item.input_set) for item in new.failed_requests]
        failed = [(result, input_set) for result, input_set in failed if result.outcome in shown]
        failed.sort(key=lambda item: any(item[0].fails_like(before.of_request(item[1])) for before in old))
        return (*next(iter(failed), (new, "")), True)
    completed = new.outcome is Outcome.COMPLETED and any(result.outcome is Outcome.COMPLETED for result in old)
    before = next((result for result in old if completed and result.outcome in shown), None)
    if before is None:
        return None
    input_set = next((item.input_set for item in before.failed_requests if item.outcome is before.outcome), "")
    return before.of_request(input_set) if input_set else before, input_set, False


def _answer_of(result: ModelResult) -> SearchAnswer:
    if not result.failed:
        return SearchAnswer(answer=Answer.PASS)
    answer = Answer.UNRESOLVED if result.outcome in UNCLEAR else Answer.FAIL
    return SearchAnswer(answer=answer, outcome=result.outcome.value, place=result.place)


def by_itself(name: str, threads: int, rates: FailureRates) -> Attribution:
    """Return what is known of a model of which only its rates alone were asked."""
    attribution = Attribution(models=(name,), threads=threads, rates=rates)
    if not rates.new.fails:
        return attribution
    return replace(
        attribution,
        reproduced=True,
        whole=rates.new,
        minimal_models=(name,),
        minimal_threads=threads,
        one_model_suffices=True,
        runs=rates.new,
    )


def cell_of(name: str, scenario: str, facts: Judged) -> CellVerdict | None:
    return next((cell for cell in facts.verdicts.get(name, ()) if cell.scenario == scenario), None)
