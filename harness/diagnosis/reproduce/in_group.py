"""Makes a Python program of what fails only while a server is brought up, and keeps it only if it shows that."""

from dataclasses import replace

from harness.diagnosis.reduce.judging import way_of
from harness.diagnosis.reproduce.folder import Concurrency
from harness.diagnosis.reproduce.program import reproduce_program, reproduce_whole
from harness.domain.diagnosis import Attribution, Bisection, Symptom
from harness.domain.outcome import Outcome
from harness.probing.facts import Attributed, Effects
from harness.scenarios import Scenario
from harness.search.repeated import repeats_needed

# torch.jit.load holds Python's lock, so a race shows more rarely than in C++.
RACY_RUNS = 5
NO_REPRODUCER = "no reproducer"


def with_reproducer_beside(
    found: Bisection, symptom: Symptom, facts: Attributed, effects: Effects, *, scenario: Scenario, needs: Attribution
) -> Bisection:
    """Return an answer with a program that shows it in both releases as it was found, else with a note why not."""
    why = no_way(found.model, scenario, needs)
    if why:
        return replace(found, notes=(*found.notes, f"{NO_REPRODUCER}: {why}"))
    concurrency = concurrency_of(found.model, scenario, needs, facts)
    effects.progress.stage("reproducers", 1)
    culprits = found.reduction.culprits if found.reduction is not None else ()
    if culprits:
        made = reproduce_program(
            culprits[0], symptom, facts, effects, index=0, model=found.model, cures=found.cures, concurrency=concurrency
        )
    else:
        made = reproduce_whole(found.model, facts, effects, symptom=symptom, cures=found.cures, concurrency=concurrency)
    if made.folder:
        return replace(found, reproducers=(made,))
    many = f"{concurrency.threads} threads" if concurrency.threads > 1 else "one thread"
    return replace(found, notes=(*found.notes, f"{NO_REPRODUCER}: a Python program with {many} did not show it"))


def no_way(model: str, scenario: Scenario, needs: Attribution) -> str:
    """Return why no program of one model in one process can be made; empty where one can be tried."""
    if scenario.processes or scenario.gpu_only:
        return f"{scenario.words}: the program does not do that"
    beside = [name for name in needs.minimal_models if name != model]
    if beside:
        return f"it shows beside {', '.join(beside)} only, and the program has one model"
    if scenario.native_only and scenario.pools is None:
        return "only C++ can make calls in the inter-op pool"
    return ""


def concurrency_of(model: str, scenario: Scenario, needs: Attribution, facts: Attributed) -> Concurrency:
    """Return as what the program has to bring the model up."""
    result = facts.initialized[model, scenario.name].new.result
    threads = max(1, needs.minimal_threads)
    runs = repeats_needed(fails=needs.runs.fails, judged=needs.runs.judged) if needs.runs.fails else 1
    failed = result.outcome is not Outcome.COMPLETED
    how = f"{scenario.words} in {threads} threads" if threads > 1 else f"{scenario.words} in one thread"
    return Concurrency(
        threads=threads,
        shared=scenario.name == "shared",
        pools=scenario.pools,
        words=f"{way_of(result)}, {how}" if failed else how,
        failure=result.failure if failed else None,
        runs=max(runs, RACY_RUNS) if threads > 1 else runs,
    )
