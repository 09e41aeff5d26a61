"""Makes the ``RunReport``, which every format renders, of what the stages found."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness import __version__
from harness.apps.upgrade.decide import interrupted_words, not_begun_words, policy_report, why_untimed
from harness.apps.upgrade.report.predictions import static_report
from harness.apps.upgrade.report.scenarios import (
    fewer_loads_notes,
    fixed_size_notes,
    growth_notes,
    how_to_serve_notes,
    new_thread_notes,
    prefork_notes,
    scenario_reports,
    untimed_notes,
)
from harness.apps.upgrade.report.time_shares import time_shares
from harness.apps.upgrade.report.timelines import timelines
from harness.apps.upgrade.report.worker_notes import worker_notes
from harness.apps.upgrade.rollback import with_commands
from harness.apps.upgrade.way_out import with_command
from harness.checks.latency.machine import busy_notes
from harness.checks.latency.model_round import COLD_CALLS
from harness.checks.outputs import findings
from harness.checks.outputs.compare import answers_hold_value, later_call_notes
from harness.checks.startup.attribution_words import time_notes
from harness.checks.startup.measures import busy_s
from harness.checks.startup.readiness import BRINGING_UP
from harness.core.environment import Fingerprint
from harness.core.golden import Trust
from harness.core.measurement import LatencyMeasurement
from harness.core.models import ModelDeclaration
from harness.core.outcome import Outcome, Status
from harness.core.plan import INITIALIZATION_LIMIT, Cell, LatencyBudget
from harness.core.probe import ProbeResult, Span, model_of
from harness.core.quantities import INITIALIZATION, STEADY
from harness.core.report import ModelReport, RunReport, ScenarioReport, SideReport
from harness.core.text import counted
from harness.core.verdict import CellVerdict, WaiverUse
from harness.probing.facts import (
    Effects,
    Probed,
    Provisioned,
    Started,
    TakenOut,
    Timed,
    WithWorker,
    new_profile,
)
from harness.probing.runner import worker_digest
from harness.project import in_command, shown_path
from harness.search.explain import unexplained_notes
from harness.serving.scenarios import TIMING
from harness.serving.settings import differences
from harness.serving.settings.differences import Setting
from harness.store import codec
from harness.verdict.causes import with_causes
from harness.verdict.cells import numeric_settings
from harness.verdict.inputs import draw_notes, guess_notes, guess_of, stride_notes
from harness.verdict.latency import common_notes
from harness.verdict.waivers.apply import ran_under
from harness.verdict.waivers.uses import waiver_notes, waiver_uses
from harness.worker import wire

DIGITS = 16


def asked_digest(model: ModelDeclaration, facts: WithWorker) -> str:
    """Return 16 hexadecimal digits over artifact, inputs and the settings that verdicts depend on.

    Empty without an artifact. Environments are not in it: the report has their fingerprints.
    """
    artifact = facts.exports[model.name].artifact
    if artifact is None:
        return ""
    plan, settings = facts.plan, facts.plan.settings
    return codec.digest(
        [
            artifact.digest,
            artifact.inputs_digest or model.source_digest,
            artifact.schedule,
            model.seed,
            model.tolerance,
            model.unordered,
            [settings.profile, new_profile(plan)],
            [settings.calls, settings.repeats, settings.noise_threads, settings.init_threads, settings.runtime],
            [settings.deadlines, settings.limits, settings.latency, settings.policy],
            settings.computes_in.get(model.name, ""),
            [facts.worker, worker_digest()],
        ]
    )[:DIGITS]


# Phases of a probe -> where its time is booked. What is missing here is the harness's own work.
CATEGORY = {
    wire.IMPORT: "import",
    wire.CONSTRUCT: "export",
    wire.CONVERT: "export",
    wire.COMPILE: "compile",
    wire.SAVE: "export",
    wire.LOAD: "load",
    wire.CALL: "calls",
}
OWN_TIME = {"harness": "harness itself"}
EQUAL = ("bit equal", "same values")
FAILED_CALL = {Outcome.HANG: "hang", Outcome.CRASH: "crash", Outcome.OUT_OF_MEMORY: "no memory"}


def build_report(
    facts: TakenOut, effects: Effects, *, started_at: str, wall_ns: tuple[int, int], command: str
) -> RunReport:
    """Return the report of a judged run.

    Args:
        wall_ns: begin and end on the monotonic clock.
        command: what every command about the run begins with.
    """
    begin_ns, end_ns = wall_ns
    folder = in_command(effects.run_dir.path)
    begin = f"{command} rerun {shlex.quote(folder)}"
    settings = facts.plan.settings
    shares = time_shares(_spans(facts, effects), begin_ns, end_ns)
    scenarios = scenario_reports(facts)
    uses = waiver_uses(facts.judgement.cells, effects.waivers, ran_under(facts.plan, facts.pair), effects.today)
    report = RunReport(
        run=effects.run_dir.name,
        harness_version=__version__,
        started_at=started_at,
        wall_s=(end_ns - begin_ns) * 1e-9,
        device=facts.plan.device,
        direction=facts.plan.direction,
        profile=facts.plan.profile_name,
        old=_side("old", facts, effects),
        new=_side("new", facts, effects),
        environment_differences=_differences(facts),
        judgement=facts.judgement,
        models=tuple(_model(model, facts, effects) for model in facts.plan.models),
        scenarios=scenarios,
        time_shares_s={OWN_TIME.get(name, name): spent for name, spent in shares.items()},
        notes=_notes(facts, effects, scenarios, uses),
        program=command,
        folder=folder,
        rerun={
            cell.cell: f"{begin} {shlex.quote(cell.cell)}{_longer(cell, settings.latency)}"
            for cell in facts.judgement.cells
            if cell.status not in (Status.PASS, Status.UNSUPPORTED)
        },
        arguments=facts.plan.arguments,
        numerics=_numerics(facts),
        limits={
            STEADY: settings.policy.limits.get(STEADY, 1 + settings.latency.limit),
            **settings.policy.quantity_limits,
            INITIALIZATION: settings.policy.limits.get(INITIALIZATION, INITIALIZATION_LIMIT),
        },
        policy=policy_report(facts),
        rollback=with_commands(facts.rollback, facts, command) if facts.rollback is not None else None,
        migration=with_command(facts.migration, facts, command) if facts.migration is not None else None,
        explained=facts.explained,
        timelines=timelines(facts),
        waivers=uses,
        trust=_trust(facts, effects),
        unjudged=facts.plan.unjudged,
        durations_s=durations_s(facts, facts.judged_by),
        common=facts.common,
        earlier_answers=earlier_answers(facts.judged_by),
    )
    return with_causes(report)


def _trust(facts: Provisioned, effects: Effects) -> tuple[Trust, ...]:
    """Return why the records are trusted that stood in for the old release."""
    names = [model.name for model in facts.plan.models]
    return effects.golden.trust(names) if facts.plan.golden is not None else ()


def _longer(cell: CellVerdict, budget: LatencyBudget) -> str:
    """Return the option that gives an undecided latency more than it had; empty where that helps nothing."""
    undecided = any(finding.kind == "latency_undecided" for finding in cell.findings)
    return " --latency thorough" if undecided and budget.budget == "quick" else ""


def _side(side: str, facts: Provisioned, effects: Effects) -> SideReport:
    environment = effects.environments.get(side)
    return SideReport(
        name=environment.name if environment is not None else effects.golden.title(),
        fingerprint=facts.fingerprints.get(side),
        interpreter=environment.interpreter if environment is not None else "",
        golden=environment is None,
    )


def _differences(facts: Provisioned) -> dict[str, tuple[str, str]]:
    old, new = facts.fingerprints.get("old"), facts.fingerprints.get("new")
    if old is None or new is None:
        return {}
    return {
        name: (str(getattr(old, name)), str(getattr(new, name)))
        for name in old.__dataclass_fields__
        if getattr(old, name) != getattr(new, name)
    }


def _settings(facts: Probed) -> list[tuple[Setting, ...]]:
    """Return the settings that change numbers, per model that was probed alone."""
    return [numeric_settings(facts, probe, facts.exports.get(name)) for name, probe in facts.alone.items()]


def _numerics(facts: Probed) -> dict[str, tuple[str, str, str]]:
    seen: dict[str, tuple[dict[str, None], dict[str, None], dict[str, None]]] = {}
    for found in _settings(facts):
        for setting in found:
            texts = seen.setdefault(setting.name, ({}, {}, {}))
            for text, value in zip(texts, (setting.exporter, setting.old, setting.new), strict=True):
                if value is not None:
                    text[str(value)] = None
    return {name: (", ".join(a), ", ".join(b), ", ".join(c)) for name, (a, b, c) in seen.items()}


def _model(model: ModelDeclaration, facts: TakenOut, effects: Effects) -> ModelReport:
    export = facts.exports[model.name]
    alone = facts.alone.get(model.name)
    comparison = facts.comparisons.get((model.name, "alone"))
    words, worst = findings.summary(comparison) if comparison is not None else ("", None)
    loaded = alone.models[0] if alone is not None else None
    if loaded is not None and loaded.load_ns is not None and loaded.outcome is not Outcome.COMPLETED:
        words = FAILED_CALL.get(loaded.outcome, "error")
    equal = words in EQUAL or worst == 0.0  # of NaN whose payload is another
    if comparison is not None and equal and not answers_hold_value(facts.baselines.get(model.name)):
        words = "no values"
    latency = facts.latency.get(model.name)
    comparisons = (facts.comparisons.get((model.name, scenario)) for scenario in facts.plan.scenarios)
    return ModelReport(
        model=model.name,
        kind=model.kind,
        export=None if facts.plan.golden is not None else export.outcome,
        load=None if loaded is None else Outcome.COMPLETED if loaded.load_ns is not None else loaded.outcome,
        concurrent=_initialized(model.name, facts),
        outputs=words,
        worst_relative=worst,
        load_s=_sides(latency, "load"),
        first_calls_s=_sides(latency, "first_calls"),
        artifact_digest=export.artifact.digest if export.artifact is not None else "",
        artifact_bytes=export.artifact.size_bytes if export.artifact is not None else 0,
        group=next((name for name, members in facts.plan.groups.items() if model.name in members), ""),
        where=model.where,
        comparisons=tuple(found for found in comparisons if found is not None),
        latency=latency,
        static=static_report(model.name, facts, effects),
        guessed=guess_of(export.artifact),
        provenance=export.provenance,
        tags=model.tags,
        owner=model.owner,
        asked=asked_digest(model, facts),
        timed=model.timed,
    )


def _initialized(model: str, facts: Started) -> Outcome | None:
    """Return the first outcome that is not COMPLETED over all initializations, None where there was none."""
    outcomes = [
        item.new.result.outcome
        for scenario in facts.plan.scenarios
        if (item := facts.initialized.get((model, scenario))) is not None
    ]
    return next((outcome for outcome in outcomes if outcome is not Outcome.COMPLETED), next(iter(outcomes), None))


def _sides(latency: LatencyMeasurement | None, quantity: str) -> tuple[float, float] | None:
    """Return (old, new) medians over the rounds in seconds, or None where not measured."""
    found = latency.quantities.get(quantity) if latency is not None else None
    return (found.old, found.new) if found is not None else None


def _spans(facts: TakenOut, effects: Effects) -> list[tuple[str, int, int]]:
    spans = [*effects.spans, *(("benchmark", *wall_ns) for wall_ns in effects.runner.rounds_ns)]
    spans += [("compile", span.begin_ns, span.end_ns) for item in effects.runner.compiled for span in item.spans]
    judged = len(facts.judged_by)
    for at, probe in enumerate((*facts.judged_by, *effects.runner.finished[judged:])):
        for span in () if probe.earlier else probe.spans:
            category = category_of(span, probe.side, migrates=at >= judged)
            if category:
                spans.append((category, span.begin_ns, span.end_ns))
    return spans


def category_of(span: Span, side: str, *, migrates: bool = False) -> str:
    """Return where the time of a phase is booked, empty for the harness's own work.

    What compiles stands by itself: neither load nor call of a model is to blame for it.
    """
    category = CATEGORY.get(span.phase, "")
    if category in ("", "compile"):
        return category
    if migrates:
        return "migrate"
    if category == "calls" and span.call is not None and span.call < COLD_CALLS:
        return "first calls"
    return "golden" if category == "calls" and side == "old" else category


def durations_s(facts: Timed, finished: Iterable[ProbeResult]) -> dict[str, float]:
    """Return cell -> what its probes took, in seconds, in both releases and all rounds; nothing of what was not probed.

    A process that had one model counts whole, from its first phase to its last; in one that several shared each model
    counts for its own loads and calls.

    Args:
        finished: every probe of the run.
    """
    plan = facts.plan
    together = {probe.key for run in facts.group_runs for probe in run.probes}
    models = {model.name for model in plan.models}
    spent: dict[str, float] = {}

    def add(model: str, scenario: str, seconds: float) -> None:
        if model in models and seconds > 0:
            cell = Cell(model, scenario).id
            spent[cell] = spent.get(cell, 0.0) + seconds

    for probe in finished:
        names = {model_of(item.model) for item in probe.models}
        if probe.key not in together:
            for name in names:
                alone = len(names) == 1
                add(name, "alone", _whole_s(probe.spans) if alone else busy_s(probe.spans, BRINGING_UP, name))
    for run in facts.group_runs:
        for name in run.members:
            add(name, run.scenario, sum(busy_s(probe.spans, BRINGING_UP, name) for probe in run.probes))
    for name, measured in facts.latency.items():
        add(name, "latency", measured.spent_s)
    return spent


def _whole_s(spans: Sequence[Span]) -> float:
    ended = [span for span in spans if span.finished]
    return (max(span.end_ns for span in ended) - min(span.begin_ns for span in ended)) * 1e-9 if ended else 0.0


def different_builds(fingerprints: Mapping[str, Fingerprint]) -> Iterator[str]:
    """Say that one side has CUDA in its build and the other has not."""
    old, new = fingerprints.get("old"), fingerprints.get("new")
    if old is not None and new is not None and (old.cuda is None) != (new.cuda is None):
        kinds = (f"torch {side.torch} with{f' CUDA {side.cuda}' if side.cuda else 'out CUDA'}" for side in (old, new))
        yield (
            f"the sides are different kinds of build, {' and '.join(kinds)}, which differ in kernels and thread pools "
            "too: what changed need not be the release's (torch_backend, or the same kind of interpreter on both sides)"
        )


def _notes(
    facts: TakenOut, effects: Effects, scenarios: Sequence[ScenarioReport], uses: Sequence[WaiverUse]
) -> tuple[str, ...]:
    notes = [*facts.plan.notes, *facts.loader_notes, *facts.static_notes, *_declared_tolerances(facts.plan.models)]
    artifacts = {model.name: facts.exports[model.name].artifact for model in facts.plan.models}
    notes.extend(guess_notes(artifacts))
    notes.extend(draw_notes([name for name in artifacts if facts.draws(name)]))
    notes.extend(stride_notes(facts.judgement.cells))
    notes.extend(facts.worker_notes if facts.initialized else ())
    if words := not_begun_words(facts):
        notes.insert(0, words)
    if facts.interrupted:
        notes.insert(0, interrupted_words(facts))
    elif not facts.latency and all(part.scenario != TIMING for part in facts.not_begun):
        notes.append(f"latency was not measured ({_why_no_latency(facts, effects)})")
    left_out = facts.rollback.left_out if facts.rollback is not None else {}
    notes.extend(f"left out of the rollback, {name}: {how}" for name, how in left_out.items())
    notes.extend(later_call_notes(facts, findings.differs, findings.agrees))
    notes.extend(different_builds(facts.fingerprints))
    notes.extend(unexplained_notes(facts))
    notes.extend(time_notes(facts.attributions))
    notes.extend(waiver_notes(uses))
    notes.extend(_unsupported_switches(effects.runner.finished))
    notes.extend(dict.fromkeys(note for found in _settings(facts) for note in differences.notes(found)))
    notes.extend(common_notes(facts.common, facts.latency))
    notes.extend(busy_notes(facts.machine_states, max((found.waited for found in facts.latency.values()), default=0.0)))
    notes.extend(growth_notes(scenarios))
    notes.extend(untimed_notes(facts))
    notes.extend(new_thread_notes(scenarios))
    notes.extend(fewer_loads_notes(facts))
    notes.extend(fixed_size_notes(facts))
    notes.extend(prefork_notes(scenarios, facts.plan.settings.profile.intra_op_threads))
    notes.extend(how_to_serve_notes(facts.judgement.cells))
    notes.extend(_earlier_notes(facts.judged_by))
    runner = effects.runner
    notes.extend(worker_notes(effects.environments, runner.libraries, facts.plan.runs_on, runner.finished))
    notes.extend(f"could not be ended: {name}" for name in effects.runner.unreaped)
    return tuple(dict.fromkeys(notes))


def earlier_answers(probes: Iterable[ProbeResult]) -> dict[str, int]:
    """Return earlier run -> how many of these probes are its; one that was asked for twice counts once."""
    runs = {probe.key: probe.earlier for probe in probes if probe.earlier}
    return dict(Counter(runs.values()))


def _earlier_notes(probes: Sequence[ProbeResult]) -> Iterator[str]:
    """Say how many probes were answered before this run; the newest of those runs is named."""
    earlier = earlier_answers(probes)
    if earlier:
        yield (
            f"{sum(earlier.values())} of {counted(len({probe.key for probe in probes}), 'probe')} are those of earlier "
            f"runs ({max(earlier)}), as nothing has changed that they depend on; --fresh asks again"
        )


def _declared_tolerances(models: Sequence[ModelDeclaration]) -> list[str]:
    """Return a note with the models that may differ by what they declare themselves."""
    declared = [f"{model.name} {model.tolerance:g}" for model in models if model.tolerance is not None]
    return [f"tolerance declared, in place of rounding's: {', '.join(declared)}"] if declared else []


def _why_no_latency(facts: Provisioned, effects: Effects) -> str:
    if "old" not in effects.environments:
        return "golden outputs have no speed"
    why = why_untimed(facts.plan)
    if not why:
        return "no model that is timed works in both releases"
    if not facts.plan.until:
        return why
    return f"{why}; --resume {shlex.quote(shown_path(effects.run_dir.path))} goes on with it"


def _unsupported_switches(probes: Sequence[ProbeResult]) -> list[str]:
    return sorted(
        {
            f"switch {name} is not supported in the {probe.side} release: {entry.get('reason', '')}"
            for probe in probes
            for name, entry in probe.data.get("switches", {}).items()
            if not entry.get("supported")
        }
    )
