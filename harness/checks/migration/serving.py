"""Serves packages as production would, many at once in one C++ process, and times them beside their TorchScript."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.checks.latency.benchmark import contest, time_for
from harness.checks.latency.limits import tolerated
from harness.checks.migration.answers import otherwise_when_served
from harness.checks.migration.facts import Served, Tried
from harness.checks.startup.initialize import scenario_result
from harness.checks.startup.launch import Launcher, threads_of
from harness.config.policy import model_budget
from harness.core.diagnosis import Setting
from harness.core.errors import ConfigError
from harness.core.measurement import CONTROL, NEW, OLD, LatencyMeasurement
from harness.core.models import Artifact
from harness.core.plan import Plan
from harness.environments.native import LibTorch, NativeBuild, build_worker
from harness.machine import pool
from harness.machine.pool import Background
from harness.probing.facts import Answered, Effects, GroupRun, WithWorker
from harness.serving.scenarios import INITIALIZATIONS
from harness.serving.settings.mitigations import MITIGATIONS
from harness.worker import wire

# (initialization, whether each package answers as many calls at once as there are threads). A package loads what it
# needs at its first call, so that all threads call a cold one is what differs most from one call after another.
WAYS = (
    ("concurrent", False),
    ("same_file", False),
    ("reinit", False),
    ("shared", False),
    ("shared", True),
    ("while_serving", False),
)
# What the progress calls them; rounds of the benchmark are kept under it.
LABEL = "packages"
# A race shows in some rounds alone (docs/guide/migrate.md, "Packages, served").
ROUNDS = 5
# A failure that shows in one of k rounds is 95 % certain to show in one of 3 k more: the rule of three (Hanley and
# Lippman-Hand, JAMA 249, 1983). So many have to come through before a mitigation counts.
TIMES_AS_MANY = 3
LOADS, FIRST_CALLS = MITIGATIONS["serialized loading"], MITIGATIONS["serialized first calls"]


def mitigations_of(failed: Served) -> tuple[tuple[Setting, ...], ...]:
    """Return what may mitigate a race of loads or of first calls, what fits the failure first, both together last."""
    calls_first = failed.result.failed and failed.result.phase != wire.LOAD
    first, second = (FIRST_CALLS, LOADS) if calls_first else (LOADS, FIRST_CALLS)
    return (first,), (second,), (LOADS, FIRST_CALLS)


def why_no_cpp(plan: Plan, effects: Effects, side: str) -> str:
    """Return why packages are not loaded in C++ in a release, empty where its worker may be built."""
    if plan.settings.runtime == "python":
        return 'runtime = "python" was asked for'
    if not plan.runs_on.cpp:
        return f"the C++ worker does not run on {plan.device}"
    if effects.environments[side].spec.libraries:
        return "operator libraries are loaded in Python alone"
    return ""


def worker_in_the_making(plan: Plan, effects: Effects, side: str) -> Background[NativeBuild]:
    """Return the C++ worker of a release, compiled while artifacts are exported: it takes one core most of a minute."""
    if side not in effects.runner.libtorch:  # an earlier run has asked what it is
        effects.runner.fingerprint(side, plan.settings.profile, plan.runs_on)
    libtorch, folder = LibTorch.from_mark(effects.runner.libtorch[side]), effects.native_folder
    return Background(lambda cancelled: build_worker(libtorch, folder, cuda=plan.runs_on.nvidia, cancelled=cancelled))


def take_worker(building: Background[NativeBuild], effects: Effects, side: str) -> str:
    """Wait for the C++ worker and hand it to the runner; return why there is none."""
    effects.progress.stage("C++ worker", 1)
    built = building.result(lambda: effects.progress.tick("compiling"))
    effects.book_compilation(side, f"the C++ worker of {effects.environments[side].name}", built)
    if built.binary is None:
        return built.why_not
    effects.runner.use_native(side, built.binary)
    effects.progress.step("cached" if built.cached else f"built in {built.seconds:.0f} s")
    return ""


@dataclass(frozen=True)
class Serving:
    """Packages in one release.

    ``packages``: by model, of those that answer well in C++.
    """

    packages: Mapping[str, Artifact]
    facts: Answered
    effects: Effects
    side: str

    def served(self, tried: Sequence[Tried]) -> list[Tried]:
        """Return every model with how its package came through each way of serving, its server group beside it."""
        exports = {name: replace(self.facts.exports[name], artifact=made) for name, made in self.packages.items()}
        known = {**Answered.known(self.facts), "exports": exports}
        facts = WithWorker(**known, alone={}, worker="libtorch", worker_notes=())
        groups = {
            group: members
            for group, names in sorted(facts.plan.groups.items())
            if (members := tuple(name for name in names if name in self.packages))
        }
        work = [(way, group) for way in WAYS for group in groups]
        if not work:
            return list(tried)
        self.effects.progress.stage(f"{LABEL} served by {threads_of(facts)} threads in C++", len(work))

        def serve(item: tuple[tuple[str, bool], str]) -> Mapping[str, Served]:
            (scenario, widely), group = item
            runners = threads_of(facts) if widely else 1
            launcher = Launcher(
                scenario=INITIALIZATIONS[scenario],
                side=self.side,
                profile=replace(facts.plan.settings.profile, runners=runners),
                facts=facts,
                effects=self.effects,
            )
            ways = self._group(launcher, groups[group], runners)
            self.effects.progress.step(f"{INITIALIZATIONS[scenario].words}: {group}")
            return ways

        ways = pool.each(serve, work, jobs=facts.plan.settings.jobs)
        return [replace(model, served=tuple(by[model.model] for by in ways if model.model in by)) for model in tried]

    def _group(self, launcher: Launcher, members: Sequence[str], runners: int) -> dict[str, Served]:
        """Return how each member came through; where one fails, what is known to mitigate such a thing is tried."""
        outcomes = self._rounds(launcher, members, runners, ROUNDS)
        failed = next((name for name, served in outcomes.items() if served.fails), None)
        if failed is None:
            return outcomes
        self.effects.progress.red([failed])
        enough = max(ROUNDS, TIMES_AS_MANY * max(served.rounds for served in outcomes.values()))
        for settings in mitigations_of(outcomes[failed]):
            mitigated = self._rounds(replace(launcher, settings=settings), members, runners, enough)
            if all(served.comes_through for served in mitigated.values()):
                mitigation = tuple(setting.name for setting in settings)
                return {
                    name: replace(served, mitigation=mitigation, beside="" if served.fails else failed)
                    for name, served in outcomes.items()
                }
        return outcomes

    def _rounds(self, launcher: Launcher, members: Sequence[str], runners: int, most: int) -> dict[str, Served]:
        """Return how each member came through the rounds; one that fails ends them."""
        run = GroupRun(scenario=launcher.scenario.name, group="", side=self.side, members=tuple(members), rounds=())
        outcomes: dict[str, Served] = {}
        for number in range(most):
            run = replace(run, rounds=(*run.rounds, launcher.round(members, number)))
            newest = replace(run, rounds=run.rounds[-1:])  # answers of the others were compared when they were
            outcomes = {name: self._one(name, run, newest, runners) for name in members}
            if any(served.fails for served in outcomes.values()):
                break
        return outcomes

    def _one(self, model: str, run: GroupRun, newest: GroupRun, runners: int) -> Served:
        result = scenario_result(run, model)
        draws = any(f"draws:{model}" in probe.data for probe in run.probes)
        return Served(
            scenario=run.scenario,
            runners=runners,
            result=result.result,
            exit_detail=result.exit_detail,
            rounds=result.rounds,
            failed_rounds=result.failed_rounds,
            served_otherwise=result.served_otherwise,
            comparison=None if draws else otherwise_when_served(model, scenario_result(newest, model), self.facts),
            evidence=self.effects.evidence(result.directory),
        )

    def timed(self, tried: Sequence[Tried]) -> list[Tried]:
        """Return every model with the times of its package beside those of the artifact as TorchScript.

        Where the configured time is too little for a single round, a note says so: what was compiled is judged without.
        """
        contestants = {
            model.model: (self.facts.artifact(model.model), self.packages[model.model])
            for model in tried
            if model.model in self.packages and self._is_timed(model)
        }
        if not contestants:
            return list(tried)
        try:
            time = time_for(contestants, self.facts, self.effects)
        except ConfigError as error:
            self.effects.progress.note(f"{LABEL} were not timed: {error.message}")
            return list(tried)
        measurements = contest(
            contestants,
            self.facts,
            self.effects,
            profile=self.facts.plan.settings.profile,
            arms=dict.fromkeys((OLD, NEW, CONTROL), self.side),
            label=LABEL,
            runtime="libtorch",
            time=time,
        )
        return [self._with_times(model, measurements.get(model.model)) for model in tried]

    def _with_times(self, tried: Tried, measured: LatencyMeasurement | None) -> Tried:
        plan = self.facts.plan
        if measured is None:
            return tried
        return replace(
            tried, timed=measured, slower_by=tolerated(measured, model_budget(plan, tried.model, plan.settings.latency))
        )

    def _is_timed(self, tried: Tried) -> bool:
        """Whether a model is to be timed, and its package comes through: as it is, or under a mitigation."""
        well = all(way.mitigation or way.comes_through for way in tried.served)
        return self.facts.plan.is_timed and self.facts.exports[tried.model].declaration.timed and well
