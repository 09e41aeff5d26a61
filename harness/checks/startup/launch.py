"""Launches one side's processes of a scenario: a probe, a round, and which model is to blame for an early end."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from harness.checks.startup.larger_inputs import larger_inputs
from harness.core.diagnosis import Setting
from harness.core.outcome import UNCLEAR, Outcome
from harness.core.probe import ModelResult, ProbeRequest, ProbeResult, ServingProfile, model_of
from harness.machine import pool
from harness.probing.facts import Effects, Provisioned, WithWorker, accepted_settings, profile_of
from harness.probing.requests import deadline_after, impatient
from harness.serving.scenarios import INITIALIZATIONS, Scenario, affordable, captured_so, copies, reordered
from harness.serving.settings.mitigations import applied, orders
from harness.worker import wire

# Each round has its own range of repeats, so that no attempt reuses the stored result of another.
REPEATS_OF_A_ROUND = 1000


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """One side in one scenario; ``settings`` override profile (None: the plan's) and pools."""

    scenario: Scenario
    side: str
    profile: ServingProfile | None = None
    facts: WithWorker
    effects: Effects
    settings: tuple[Setting, ...] = ()

    def round(self, members: Sequence[str], number: int) -> tuple[ProbeResult, ...]:
        """Return the probes of one round: all members, then again without the guilty until everyone has a result.

        A process that ends early takes the others with it. Each further attempt has all members but those who are
        guilty by then, so what needs two of them to fail is not lost.
        """
        guilty: set[str] = set()
        probes: list[ProbeResult] = []
        settled: set[str] = set()
        for attempt in range(len(members) + 1):
            present = [name for name in members if name not in guilty]
            if not set(present) - settled:
                break
            launched = self._launch(present, number * REPEATS_OF_A_ROUND + attempt)
            blame = [self._guilty_of(probe, number) for probe in launched]
            named = set().union(*blame)
            charged = [blamed(probe, guilty_here) for probe, guilty_here in zip(launched, blame, strict=True)]
            probes.extend(charged)
            settled |= named.union(*map(_reached, charged))
            guilty |= named
            if not named:  # nothing ended early, or it cannot be distinguished from a failure of the gate
                break
        return tuple(probes)

    def was_begun(self, members: Sequence[str], number: int) -> bool:
        """Whether this round was begun before, in a run that goes on now."""
        (repeat, *_) = self._repeats(number * REPEATS_OF_A_ROUND)
        return self.effects.runner.has(self.request(members, repeat))

    def _launch(self, members: Sequence[str], repeat: int) -> list[ProbeResult]:
        repeats = self._repeats(repeat)
        return pool.each(lambda each: self.probe(members, each), repeats, jobs=len(repeats))

    def _repeats(self, repeat: int) -> range:
        count = threads_of(self.facts) if self.scenario.processes else 1
        return range(repeat * count, (repeat + 1) * count)

    def _guilty_of(self, probe: ProbeResult, number: int) -> frozenset[str]:
        """Return the models that ended a process early; empty where none did.

        Of several that were at work, and of all members where none was, each is launched by itself, once per round.
        Those who fail then are guilty and the others were only held up. Where none does, it takes several, and all
        are named; nobody is where the machine was too busy to tell.
        """
        if probe.outcome is Outcome.COMPLETED or probe.outcome in UNCLEAR:
            return frozenset()
        failed = [item for item in probe.models if item.outcome is probe.outcome]
        suspects = {model_of(item.model): None for item in failed}
        if failed and all(item.phase == wire.EXIT for item in failed):  # all had answered: how it ends is common to all
            return frozenset(suspects)
        names = list(suspects or dict.fromkeys(model_of(item.model) for item in probe.models))
        if len(names) == 1:
            return frozenset(names)
        repeat = (number + 1) * REPEATS_OF_A_ROUND - 1
        plan = self.facts.plan
        floor_s = impatient(plan.settings.deadlines).floor_s  # it is known to fail: nobody waits as long again
        alone = pool.each(lambda name: self.probe([name], repeat, floor_s=floor_s), names, jobs=plan.settings.jobs)
        by_itself = frozenset(
            name for name, lone in zip(names, alone, strict=True) if lone.outcome not in (Outcome.COMPLETED, *UNCLEAR)
        )
        if not by_itself and any(lone.outcome in UNCLEAR for lone in alone):
            return frozenset()
        return by_itself or frozenset(names)

    def probe(
        self,
        members: Sequence[str],
        repeat: int,
        *,
        threads: int | None = None,
        alone: bool = False,
        floor_s: float | None = None,
        look: bool = True,
    ) -> ProbeResult:
        """Return what one process makes of ``members``, see ``request``."""
        request = self.request(members, repeat, threads=threads, alone=alone, floor_s=floor_s, look=look)
        return self.effects.runner(request)

    def request(
        self,
        members: Sequence[str],
        repeat: int,
        *,
        threads: int | None = None,
        alone: bool = False,
        floor_s: float | None = None,
        look: bool = True,
    ) -> ProbeRequest:
        """Return what one process is asked to make of ``members``.

        ``threads``: in place of the configured number; ``alone``: one after another, in one thread; ``look``: whether a
        process that hangs is looked into before it is ended.
        """
        scenario = INITIALIZATIONS["sequential"] if alone else self.scenario
        settings = self.facts.plan.settings
        load_s = load_seconds(self.facts, members)
        written = affordable(scenario, members, threads or threads_of(self.facts), load_s)
        script = captured_so(written, mode=settings.capture_mode, warm_calls=settings.capture_warm_calls)
        if alone:  # one after another, but called the way that the scenario calls
            as_there = self.scenario.write(members, 1)
            script = replace(script, calls_through=as_there.calls_through, keeps=as_there.keeps)
        accepted = accepted_settings(self.facts.plan) if self.side == "new" else ()
        script = reordered(script, orders((*accepted, *self.settings)))
        names = copies(script)
        profile = self.profile or profile_of(self.side, self.facts.plan)
        if self.scenario.pools is not None:
            intra_op, inter_op = self.scenario.pools
            profile = replace(profile, intra_op_threads=intra_op, inter_op_threads=inter_op)
        profile = applied(profile, self.settings)
        baselines = [result for name in members for result in self.facts.baselines[name].results]
        deadlines = self.facts.plan.settings.deadlines
        if floor_s is not None:
            deadlines = replace(deadlines, floor_s=floor_s)
        deadline = deadline_after(deadlines, baselines, contention=len(script.threads))
        artifacts = [replace(self.facts.in_a_server(model_of(name)), model=name) for name in names]
        request = self.facts.requests.run(
            self.side,
            artifacts,
            deadline,
            profile=profile,
            script=script,
            runtime=self.facts.worker_of(self.scenario, map(model_of, members)),
            repeat=repeat,
            beside=threads_of(self.facts) - 1 if not alone and (scenario.processes or scenario.forks) else 0,
        )
        if scenario.larger_inputs:
            runs = tuple(replace(run, larger_inputs=larger_inputs(run.artifact)) for run in request.runs)
            request = replace(request, runs=runs)
        return replace(request, look=look)


def blamed(probe: ProbeResult, guilty: Collection[str]) -> ProbeResult:
    """Charge an early end to the ``guilty`` only; models at work that were held up count as not reached."""
    if probe.outcome is Outcome.COMPLETED or probe.outcome in UNCLEAR:
        return probe
    nobody = not any(item.outcome is probe.outcome for item in probe.models)

    def one(item: ModelResult) -> ModelResult:
        mine = model_of(item.model) in guilty
        if mine and nobody and not item.failed:  # it ended outside of every phase
            return replace(item, outcome=probe.outcome, phase="", input_set=None, call=None)
        if not mine and item.outcome is probe.outcome:
            return replace(item, outcome=Outcome.NOT_RUN)
        return item

    return replace(probe, models=tuple(one(item) for item in probe.models))


def load_seconds(facts: WithWorker, members: Collection[str]) -> dict[str, float]:
    """Return model -> seconds that its slowest load alone took in the old release, where it was loaded there."""
    loads = {name: [result.load_ns for result in facts.baselines[name].results if result.load_ns] for name in members}
    return {name: max(durations) * 1e-9 for name, durations in loads.items() if durations}


def expected_s(scenario: Scenario, members: Sequence[str], facts: WithWorker) -> float:
    """Return how long one round of the new release is expected to take, in seconds, by what the old one needed alone.

    Loads and calls of Python's threads take turns (GIL); those of the C++ worker are two at a time.
    """
    load_s = load_seconds(facts, members)
    calls_s = {name: _calls_s(facts.baselines[name].results) for name in members}
    script = affordable(scenario, members, threads_of(facts), load_s)
    times_s = {"load": load_s, "calls": calls_s}
    steps = (step for steps in script.threads for step in steps if step[0] in times_s)
    work_s = sum(times_s[str(step[0])].get(model_of(str(step[1])), 0.0) for step in steps)
    return facts.plan.settings.init_rounds * work_s / (1 if facts.worker_of(scenario, members) == "python" else 2)


def _calls_s(results: Sequence[ModelResult]) -> float:
    return max((sum(call.duration_ns for call in result.calls) * 1e-9 for result in results), default=0.0)


def threads_of(facts: Provisioned) -> int:
    return max(2, facts.plan.settings.init_threads)


def _reached(probe: ProbeResult) -> set[str]:
    missed = {model_of(item.model) for item in probe.models if item.outcome is Outcome.NOT_RUN}
    return {model_of(item.model) for item in probe.models} - missed
