"""Runs a trial of a few models in a few threads, and reads from its processes whether a failure shows."""

from collections.abc import Collection, Mapping, Sequence

from harness.checks.startup.launch import REPEATS_OF_A_ROUND, Launcher
from harness.core.diagnosis import Answer, SearchAnswer, Trial
from harness.core.outcome import FINE, UNCLEAR, Outcome
from harness.core.probe import ProbeResult, model_of
from harness.machine import pool

# The hang has been proven already; a repeat only has to be distinguished from a healthy one, which takes milliseconds.
SEARCH_FLOOR_S = 6.0
# The first round of the search: far from those of the scenario and of the mitigations.
FIRST_REPEAT = 1000 * REPEATS_OF_A_ROUND

Failures = Mapping[str, frozenset[Outcome]]
"""Model -> the outcomes by which its failure shows."""


def launched(launcher: Launcher, trial: Trial, *, look: bool = True) -> list[ProbeResult]:
    """Return the probes of a trial: one process, or as many as threads if the scenario is about processes."""
    count = trial.threads if launcher.scenario.processes and trial.concurrent else 1
    floor_s = min(SEARCH_FLOOR_S, launcher.facts.plan.settings.deadlines.floor_s)

    def launch(repeat: int) -> ProbeResult:
        return launcher.probe(
            trial.models, repeat, threads=trial.threads, alone=not trial.concurrent, floor_s=floor_s, look=look
        )

    first = (FIRST_REPEAT + trial.repeat) * count
    return pool.each(launch, range(first, first + count), jobs=count)


def fate_of(probes: Sequence[ProbeResult], failures: Failures, in_the_way: Collection[str]) -> SearchAnswer:
    """Return whether one of the ``failures`` shows, for a rate.

    ``in_the_way``: models that are known to fail by themselves. Who is at work when one of them ends the process alike
    may only be held up, and who was not reached by then was not asked: such a run says nothing.
    """
    models = [item for probe in probes for item in probe.models]
    own = [item for item in models if model_of(item.model) in failures]
    outcomes = [item.outcome for item in probes] + [item.outcome for item in models]
    unclear = next((outcome for outcome in outcomes if outcome in UNCLEAR), None)
    if unclear is not None:
        return SearchAnswer(answer=Answer.UNRESOLVED, outcome=unclear.value)
    other = next((item for item in models if item.failed and model_of(item.model) in in_the_way), None)
    failed = sorted(
        (item for item in own if item.failed), key=lambda item: item.outcome not in failures[model_of(item.model)]
    )
    if failed and (other is None or other.outcome is not failed[0].outcome):
        outcome, phase = failed[0].way
        return SearchAnswer(answer=Answer.FAIL, outcome=outcome.value, place=(phase, None, None))
    end = next((probe.outcome for probe in probes if probe.outcome not in FINE), None)
    if end is None or all(item.outcome is Outcome.COMPLETED for item in own):
        return SearchAnswer(answer=Answer.PASS)
    if any(item.outcome is end for item in models):
        return SearchAnswer(answer=Answer.UNRESOLVED, outcome=end.value)
    return SearchAnswer(answer=Answer.FAIL, outcome=end.value)  # outside of every phase, so that it names nobody


def answer_of(probes: Sequence[ProbeResult], failures: Failures) -> SearchAnswer:
    """Return whether one of the ``failures`` shows again; any other failure is reported with its own outcome."""
    seen = [(model_of(item.model), item.outcome) for probe in probes for item in probe.models]
    own = next((outcome for name, outcome in seen if outcome in failures.get(name, ())), None)
    # A process that ends outside of every phase names nobody.
    ends = [probe.outcome for probe in probes if all(item.outcome is not probe.outcome for item in probe.models)]
    own = own or next((end for end in ends for outcomes in failures.values() if end in outcomes), None)
    if own is not None:
        return SearchAnswer(answer=Answer.FAIL, outcome=own.value)
    unclear = next((outcome for outcome in (*ends, *(outcome for _, outcome in seen)) if outcome in UNCLEAR), None)
    if unclear is not None:
        return SearchAnswer(answer=Answer.UNRESOLVED, outcome=unclear.value)
    other = next(((name, outcome) for name, outcome in seen if outcome not in FINE), None)
    if other is not None:
        return SearchAnswer(answer=Answer.FAIL, outcome=f"{other[1].value} of {other[0]}")
    end = next((end for end in ends if end not in FINE), None)
    if end is None:
        return SearchAnswer(answer=Answer.PASS)
    return SearchAnswer(answer=Answer.FAIL, outcome=f"{end.value} of the process")
