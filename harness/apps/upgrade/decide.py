"""Makes the one decision on a run: demands of the policy, planted defects, rows, and the reason.

Timing takes longer than all that comes before it, so what is known by then is printed first.
"""

from collections.abc import Sequence
from dataclasses import replace

from harness.apps.upgrade.planted_defects import judge_timed_planted_defects
from harness.checks.latency.benchmark import expected_s, untimed
from harness.checks.startup.initialize import scenarios_of, works_alone
from harness.config.policy import idle_rules, model_policy, policy_source
from harness.core.devices import AUTO
from harness.core.errors import ExitCode
from harness.core.outcome import Status
from harness.core.plan import Plan
from harness.core.policy import Demand, PolicyReport
from harness.core.text import first_few
from harness.core.verdict import Finding, PlantedDefectResult, RowVerdict
from harness.machine.progress import rough_duration
from harness.probing.facts import Compared, Complete, Decided, Diagnosed, Effects, Started, WithWorker
from harness.report.text.so_far import RED, render_so_far
from harness.serving.scenarios import INITIALIZATIONS, TIMING, Scenario
from harness.verdict.cells import judge_cells
from harness.verdict.decide import decide, judge_row, unjudged_findings
from harness.verdict.demands import demands, unmet
from harness.verdict.latency import judge_common, why_common_is_open


def run_demands(rows: Sequence[RowVerdict], facts: Complete) -> tuple[Demand, ...]:
    """Return what the policy asks of the whole run, and what the run has of it."""
    policies = {row.model: model_policy(facts.plan, row.model) for row in rows}
    untimed = [model.name for model in facts.plan.models if not model.timed]
    over_budget = {part.scenario for part in facts.not_begun}
    return demands(facts.plan.settings.policy, rows, policies, untimed=untimed, over_budget=over_budget)


def policy_report(facts: Decided) -> PolicyReport:
    """Return the policy that decided a run, and what it made of it."""
    settings, latency = facts.plan.settings.policy, facts.plan.settings.latency
    whole = not facts.judgement.of_cell  # what a run must have is not asked of one that repeats a cell
    return PolicyReport(
        source=policy_source(facts.plan),
        settings=settings,
        steady=1 + latency.limit,
        undecided=latency.undecided_limit,
        floor_s=latency.floor_s,
        common=1 + latency.common_limit,
        demands=run_demands(facts.judgement.rows, facts) if whole else (),
        notes=idle_rules(settings, facts.plan.models) if whole else (),
    )


def decide_run(facts: Complete, effects: Effects) -> Decided:
    """Return the facts with the judgement."""
    planted_defects = (*facts.planted_defects, *judge_timed_planted_defects(facts))
    rows = [judge_row(name, cells, facts.mitigations.get(name, ())) for name, cells in facts.verdicts.items()]
    settings = facts.plan.settings
    common = judge_common(facts.common, settings.latency, settings.policy)
    judgement = decide(
        rows,
        planted_defects,
        vacuous=_vacuous(facts),
        left_out=f"timing ({why})" if (why := why_untimed(facts.plan)) and not facts.interrupted else "",
        planted_defects_required=bool(facts.plan.planted_defects),
        accepted=settings.policy.accepted_mitigations,
        rollback=facts.rollback,
        unmet=unmet(run_demands(rows, facts)),
        findings=(*(() if common is None else (common,)), *_unjudged(facts)),
        severity=settings.policy.severity,
    )
    if facts.interrupted:
        judgement = replace(judgement, interrupted=facts.interrupted, exit_code=int(ExitCode.INTERRUPTED))
    del effects
    return Decided(**Complete.known(replace(facts, planted_defects=planted_defects)), judgement=judgement)


def _unjudged(facts: Complete) -> tuple[Finding, ...]:
    whole = bool(facts.plan.planted_defects)  # one that repeats a cell says nothing of other files
    severity = facts.plan.settings.policy.severity
    return unjudged_findings(facts.plan.unjudged, len(facts.verdicts), severity) if whole else ()


def tell_so_far(facts: Compared, planted_defects: Sequence[PlantedDefectResult], effects: Effects) -> None:
    """Print the loads, hangs and numbers of a run that goes on to time its models; of another one if any are red."""
    judged = judge_cells(untimed(facts), effects)
    rows = [judge_row(name, cells) for name, cells in judged.verdicts.items()]
    red = [row.model for row in rows if row.status in RED]
    effects.progress.judged(red)
    left_s = expected_s(facts, effects)
    undecided = any(row.status is Status.INCONCLUSIVE for row in rows)
    if left_s is None and not red and not undecided:
        return
    missed = [item.name for item in planted_defects if not item.caught]
    then = "" if left_s is None else f"timing takes {rough_duration(left_s)}"
    for line in render_so_far(rows, missed=missed, then=then, width=effects.progress.columns).splitlines():
        effects.progress.note(line)


def _vacuous(facts: Complete) -> str:
    """Why a run can never be green, whatever its rows say; empty if it can."""
    planned = [INITIALIZATIONS[name] for name in facts.plan.scenarios if name in INITIALIZATIONS]
    left_out = [scenario.name for scenario in planned if not facts.can_do(native_only=scenario.native_only)]
    idle = [
        scenario.name
        for scenario in scenarios_of(facts)
        if scenario.variant_of not in facts.plan.scenarios and _tests_nothing(scenario, facts)
    ]
    settings = facts.plan.settings
    open_ = why_common_is_open(facts.common, settings.latency, settings.policy) if facts.plan.repeats_common else ""
    reasons: Sequence[tuple[bool, str]] = (
        (bool(facts.interrupted), interrupted_words(facts)),
        (bool(open_), open_),
        (bool(facts.not_begun), not_begun_words(facts)),
        (bool(idle), f"no model could take part in: {', '.join(idle)}"),
        (bool(left_out), f"asked for and not done, for want of the C++ worker: {', '.join(left_out)}{_why(facts)}"),
        (
            "old" in facts.fingerprints and facts.fingerprints["old"].identity == facts.fingerprints["new"].identity,
            "the same torch on both sides shows this harness's noise and says nothing about an upgrade",
        ),
        (
            facts.plan.settings.device not in (AUTO, facts.plan.device),
            f"{facts.plan.settings.device} was asked for and {facts.plan.device} was used",
        ),
    )
    return next((text for holds, text in reasons if holds), "")


def interrupted_words(facts: Complete) -> str:
    return f"interrupted during {facts.interrupted}: only what ended before is here; --resume goes on with it"


def not_begun_words(facts: Diagnosed) -> str:
    """Return what the budget of the run left out, and how long each of it would have taken; empty: nothing."""
    parts = [
        f"timing ({rough_duration(part.expected_s)} for a first round)"
        if part.scenario == TIMING
        else f"{INITIALIZATIONS[part.scenario].words} of {part.group} ({rough_duration(part.expected_s)})"
        for part in facts.not_begun
    ]
    parts += [f"the search for the cause of {first_few(facts.over_budget, 3)}"] if facts.over_budget else []
    return f"--budget {facts.plan.budget_s:g}s left out: {', '.join(parts)}; --resume goes on with it" if parts else ""


def why_untimed(plan: Plan) -> str:
    """Return why nothing of a plan is timed: an option, or what its models say; empty where something is."""
    if plan.until:
        return f"--until {plan.until}"
    if not plan.is_timed:
        return "--latency off"
    return "" if any(model.timed for model in plan.models) else "every model says timed=False"


def _why(facts: WithWorker) -> str:
    return f" ({facts.worker_notes[0]})" if facts.worker_notes else ""


def _tests_nothing(scenario: Scenario, facts: Started) -> bool:
    """Whether a scenario that could be done was done with no model, though some work alone."""
    if not any(works_alone(name, facts) for name in facts.alone):
        return False
    return not any(run.scenario == scenario.name for run in facts.group_runs)
