"""Searches for the first bad release of one model: exported once in the old one, probed in others as needed.

Environments are built as they are needed, and the likely next one while the current release is asked. Everything that
was answered is kept: probes under their keys, and the answers of releases even after their environment is deleted.

A symptom may show only sometimes. The new end is asked until it has shown it twice; from that follows how often another
release must come through before it counts as good (``harness/search/delta_debugging.py``). One failure is proof.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness import __version__
from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.golden_records import GoldenStore
from harness.artifacts.imported_source import ImportedSource
from harness.checks.hang import watchdog
from harness.checks.hang.story import failure_finding
from harness.checks.outputs.compare import compare_alone
from harness.core.diagnosis import UNRESOLVED_AFTER, Answer, SearchAnswer
from harness.core.environment import Environment, EnvSpec
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.core.models import ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.plan import Cell, Plan
from harness.core.releases import FirstBad, ReleaseAnswer, ReleaseResult
from harness.core.verdict import CellVerdict
from harness.environments.builder import EnvironmentBuilder
from harness.environments.prefetch import Prefetch
from harness.machine import clock
from harness.machine.progress import Progress
from harness.probing.alone import deadline_of
from harness.probing.facts import Answered, Effects, Provisioned
from harness.probing.provision import opened
from harness.probing.runner import worker_digest
from harness.search.delta_debugging import Budget, Repeated
from harness.search.first_bad_choice import Line, conclude, most_builds, next_likely, next_question
from harness.search.release import Release, Row, ask_release, make_row, release_key
from harness.store import codec
from harness.store.results import ResultStore, WhyNot
from harness.store.run_folder import RunDir
from harness.verdict.cell import judge_alone
from harness.verdict.first_bad import answer_of, failing_kinds, old_end, reason_of

# The new end is asked until it has failed so often, or so often at all: a symptom of 30 % shows in 99 of 100 cases.
FAILURES_OF_THE_END = 2
RUNS_OF_THE_END = 12
# The hang was proven with the whole deadline; a repeat only has to be distinguished from a run that ends.
HANG_FLOOR_S = 6.0
BUDGET = 10_000

ANSWER = {Answer.PASS: ReleaseAnswer.GOOD, Answer.FAIL: ReleaseAnswer.BAD, Answer.UNRESOLVED: ReleaseAnswer.UNTESTABLE}
ANSWERS = "first-bad"


def search_first_bad(
    plan: Plan,
    specs: Mapping[str, EnvSpec],
    *,
    source: str,
    store: RunDir,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: GoldenStore,
    build_limit: int | None = None,
) -> FirstBad:
    """Return the first bad release of the plan's one model among ``specs``, from the old end to the new one.

    Args:
        store: keeps every result under its key, for this search and later ones.
        build_limit: environments between the ends that may be built; None allows what halving needs.

    Raises:
        EnvironmentUnavailable: the environment of an end could not be provisioned.
        ConfigError: both ends are the same environment.
    """
    begin_ns = clock.monotonic_ns()
    environments: dict[str, Environment] = {}
    limit = most_builds(len(specs)) if build_limit is None else build_limit
    ready = opened(
        environments,
        store,
        builder=builder,
        progress=progress,
        golden=golden,
        waivers=(),
        today=clock.today(),
        watchdog=watchdog,
        imported=ImportedSource(),
    )
    with ready as effects, Prefetch(builder) as prefetch:
        runner = effects.runner
        search = _Search(
            plan=plan,
            specs=specs,
            environments=environments,
            effects=effects,
            builder=builder,
            prefetch=prefetch,
            limit=limit,
        )
        search.run()
        conclusion = conclude(search.line())
        progress.finish()
    names = {spec.name: name for name, spec in specs.items()}
    built = tuple(names.get(name, name) for name in prefetch.built)
    needed = {item.release for item in search.results}
    return FirstBad(
        model=plan.models[0].name,
        kind=search.kind,
        releases=tuple(specs),
        source=source,
        asked=tuple(search.results),
        conclusion=conclusion,
        built=built,
        unused=tuple(name for name in built if name not in needed),
        build_limit=limit,
        wall_s=(clock.monotonic_ns() - begin_ns) * 1e-9,
        notes=(*plan.notes, *search.notes, *(f"could not be ended: {name}" for name in runner.unreaped)),
    )


@dataclass(kw_only=True)
class Prober:
    """The artifact of one row, asked of one release after another.

    ``symptom``: kinds of the new end's findings; empty until that was asked; ``clean``: how many runs must come through
    before a release is good.
    """

    row: Row
    model: str
    effects: Effects
    symptom: tuple[str, ...] = ()
    clean: int = 1
    releases: dict[str, Release] = field(default_factory=dict)
    repeated: Repeated[str] = field(init=False)
    last: dict[str, tuple[CellVerdict, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repeated = Repeated(self._run, Budget(BUDGET))

    def ask_end(self, release: Release) -> ReleaseResult:
        self.releases[release.name] = release
        name = release.name
        while not self._end_is_known(name):
            self.repeated.run(name)
        tally = self.repeated.tally(name)
        if tally.fails:
            self.repeated.only_failures_like(name)
            self.symptom = tuple(self.repeated.same)
            self.clean = self.repeated.clean_runs(name)
            return self._result(name, Answer.FAIL)
        return self._result(name, Answer.PASS if tally.passes >= RUNS_OF_THE_END else Answer.UNRESOLVED)

    def ask(self, release: Release) -> ReleaseResult:
        self.releases[release.name] = release
        return self._result(release.name, self.repeated.settle(release.name, self.clean))

    def _end_is_known(self, name: str) -> bool:
        tally = self.repeated.tally(name)
        if not tally.fails and tally.untestable >= UNRESOLVED_AFTER:
            return True
        return tally.fails >= FAILURES_OF_THE_END or tally.runs >= RUNS_OF_THE_END

    def _result(self, name: str, answer: Answer) -> ReleaseResult:
        verdict, evidence = self.last[name]
        tally = self.repeated.tally(name)
        kinds = failing_kinds(verdict.findings)
        reason = "" if answer is Answer.PASS else reason_of(verdict)
        if answer is Answer.FAIL and tally.passes:
            reason = f"in {tally.fails} of {tally.judged} runs: {reason}"
        if answer is Answer.UNRESOLVED and kinds and self.symptom:
            reason = f"another failure ({kinds[0]}): {reason}"
        kind = next((kind for kind in kinds if kind in self.symptom), kinds[0] if kinds else "")
        return ReleaseResult(
            release=name,
            answer=ANSWER[answer],
            kind=kind if answer is Answer.FAIL else "",
            reason=reason,
            runs=tally.runs,
            evidence=evidence,
        )

    def _run(self, name: str, repeat: int) -> SearchAnswer:
        verdict, evidence = self._probe(self.releases[name], repeat)
        answer = answer_of(verdict, self.symptom)
        if answer.answer is not Answer.PASS or name not in self.last:
            self.last[name] = verdict, evidence
        return answer

    def _probe(self, release: Release, repeat: int) -> tuple[CellVerdict, str]:
        facts, effects = self._facts(release), self.effects
        baseline = facts.baselines[self.model]
        declaration = facts.exports[self.model].declaration
        deadline = deadline_of(declaration, facts)
        artifact = facts.artifact(self.model)
        probe = effects.runner(facts.requests.run(release.key, [artifact], deadline, repeat=repeat))
        evidence = effects.evidence(probe.directory)
        verdict = judge_alone(
            Cell(self.model, "alone").id,
            old=baseline.results,
            new=probe.models[0],
            comparison=compare_alone(self.model, probe, baseline, facts),
            old_name=self.row.release.environment.name,
            new_name=release.environment.name,
            exit_detail=probe.exit_detail,
            evidence=evidence,
            seen=probe.evidence,
        )
        return verdict, evidence

    def _facts(self, release: Release) -> Answered:
        facts = self.row.facts
        facts = replace(facts, fingerprints={**facts.fingerprints, release.key: release.fingerprint})
        if not _hangs(self.symptom) and not self._hung(release.name):
            return facts
        settings = facts.plan.settings
        floor_s = min(HANG_FLOOR_S, settings.deadlines.floor_s)
        shorter = replace(settings, deadlines=replace(settings.deadlines, floor_s=floor_s))
        return replace(facts, plan=replace(facts.plan, settings=shorter))

    def _hung(self, name: str) -> bool:
        return name in self.last and _hangs(failing_kinds(self.last[name][0].findings))


def _hangs(kinds: Collection[str]) -> bool:
    return "hang" in kinds


@dataclass(kw_only=True)
class _Search:
    """One search under way; ``results`` are in order, ``answers`` the same by release."""

    plan: Plan
    specs: Mapping[str, EnvSpec]
    environments: dict[str, Environment]
    effects: Effects
    builder: EnvironmentBuilder
    prefetch: Prefetch
    limit: int
    kind: str = ""
    results: list[ReleaseResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    answers: dict[str, ReleaseAnswer] = field(default_factory=dict)
    symptom_key: str = ""

    @property
    def stored(self) -> ResultStore[ReleaseResult]:
        return ResultStore(self.effects.run_dir.path / ANSWERS / self.symptom_key, ReleaseResult, encode=codec.pretty)

    def line(self) -> Line:
        names = list(self.specs)
        between = {self.specs[name].name for name in names[1:-1]}
        built = sum(name in between for name in self.prefetch.built)
        return Line(
            releases=names,
            answers=self.answers,
            ready=[name for name in names if self.builder.is_ready(self.specs[name])],
            builds_left=max(0, self.limit - built),
        )

    def run(self) -> None:
        old, *_, new = self.specs
        self.effects.progress.stage("environments of both ends")
        begin_ns = clock.monotonic_ns()
        ends = self.prefetch.all_of([self.specs[old], self.specs[new]])
        home = self.release(old, ends[0])
        row = self.export(home)
        self.record(self.of_old_end(row), begin_ns)
        if self.answers[old] is not ReleaseAnswer.GOOD:
            return
        prober = Prober(row=row, model=self.plan.models[0].name, effects=self.effects)
        begin_ns = clock.monotonic_ns()
        end = self.release(new, ends[1])
        if end.key == home.key or end.fingerprint.identity == home.fingerprint.identity:
            raise ConfigError(f"{old} and {new} are the same torch", "name two releases")
        self.effects.progress.stage(f"load and call in {new}")
        self.record(prober.ask_end(end), begin_ns)
        self.effects.runner.release(end.key)
        self.kind = self.results[-1].kind
        if prober.symptom:
            self.remember(row, prober)
            self.between(prober)

    def between(self, prober: Prober) -> None:
        while (name := next_question(self.line())) is not None:
            begin_ns = clock.monotonic_ns()
            result = self.ask(name, prober)
            self.record(result, begin_ns)
            if result.answer is not ReleaseAnswer.UNTESTABLE:
                self.keep(result)

    def ask(self, name: str, prober: Prober) -> ReleaseResult:
        spec = self.specs[name]
        self.effects.progress.stage(f"{spec.name}: environment")
        try:
            release = self.release(name, self.prefetch.environment(spec), ahead=True)
            self.effects.progress.stage(f"load and call in {spec.name}")
            result = prober.ask(release)
            self.effects.runner.release(release.key)
        except EnvironmentUnavailable as error:
            return ReleaseResult(release=name, answer=ReleaseAnswer.UNTESTABLE, reason=error.message)
        return result

    def release(self, name: str, environment: Environment, *, ahead: bool = False) -> Release:
        """Return a release, likely next ones built meanwhile (``ahead``). Raises ``EnvironmentUnavailable``."""
        if ahead:
            self.prefetch.begin([self.specs[item] for item in next_likely(self.line(), name)])
        device = self.plan.runs_on
        key = release_key(environment, device)
        self.environments[key] = environment
        profile = self.plan.settings.profile
        return ask_release(name, environment, key, self.effects, profile=profile, device=device)

    def export(self, home: Release) -> Row:
        runner = self.effects.runner
        facts = Provisioned(plan=self.plan, fingerprints={home.key: home.fingerprint})
        models: Sequence[ModelDeclaration] = self.plan.models
        row = make_row(home.name, home, models, facts, self.effects, memory=CodeMemory())
        runner.release(home.key)
        return row

    def of_old_end(self, row: Row) -> ReleaseResult:
        """Return the result of the old end: whether there is an artifact, and whether every run of it completed."""
        name, model = row.release.name, self.plan.models[0].name
        export = row.facts.exports[model]
        if export.artifact is None:
            why = export.failure.first_line if export.failure is not None else export.outcome.value
            return ReleaseResult(release=name, answer=ReleaseAnswer.UNTESTABLE, reason=f"could not be exported: {why}")
        results = row.facts.baselines[model].results
        if export.artifact.inputs_note:
            self.notes.append(f"its inputs: {export.artifact.inputs_note}")
        failed = next((result for result in results if result.outcome is not Outcome.COMPLETED), None)
        finding = failure_finding(failed, row.release.environment.name, stage="alone") if failed is not None else None
        return ReleaseResult(
            release=name,
            answer=old_end(results),
            kind=finding.kind if finding is not None else "",
            reason=finding.message if finding is not None else "",
            runs=len(results),
        )

    def record(self, result: ReleaseResult, begin_ns: int) -> None:
        self.effects.progress.note(f"{result.release}: {result.answer}{f', {result.reason}' if result.reason else ''}")
        seconds = (clock.monotonic_ns() - begin_ns) * 1e-9
        built_s = self.prefetch.built.get(self.specs[result.release].name, 0.0)
        self.results.append(replace(result, seconds=seconds, build_s=built_s))
        self.answers[result.release] = result.answer

    def remember(self, row: Row, prober: Prober) -> None:
        """Take in what earlier searches for the same symptom of the same artifact heard of releases between."""
        model = self.plan.models[0].name
        identity = [
            __version__,
            worker_digest(),
            row.release.key,
            row.facts.artifact(model).digest,
            self.plan.device,
            self.plan.settings.profile,
            sorted(prober.symptom),
        ]
        self.symptom_key = f"{model}-{codec.digest(identity)[:12]}"
        if not any(self.stored.readable("*")):  # to tell its place, a ready-made environment is inspected
            return
        for name in list(self.specs)[1:-1]:
            known = self.stored.reusable(
                self.place(name),
                answers=lambda before: before.answer is ReleaseAnswer.BAD or before.runs >= prober.clean,
            )
            if not isinstance(known, WhyNot):
                self.results.append(replace(known, release=name, build_s=0.0, remembered=True))
                self.answers[name] = known.answer

    def keep(self, result: ReleaseResult) -> None:
        self.stored.save(self.place(result.release), result)

    def place(self, name: str) -> str:
        """Return what makes two releases the same one to a later search."""
        spec = self.specs[name]
        if spec.interpreter is not None:  # it may change under its path
            return release_key(self.builder.build(spec), self.plan.runs_on)
        return f"torch-{spec.release}-{codec.digest([self.builder.place(spec), spec.libraries])[:12]}"
