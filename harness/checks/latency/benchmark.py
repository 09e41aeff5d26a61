"""The paired benchmark: both releases alive at once, in short alternating blocks, in fresh processes until decided.

All models that are still open share the processes of a round, whether they are searched or a suspicion is confirmed.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.artifacts import files
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.archive.reading import read_artifact
from harness.checks.latency import statistics
from harness.checks.latency.allocator import settled
from harness.checks.latency.budget import Candidate, further_rounds, next_round, side_by_side, total_s
from harness.checks.latency.common_slowdown import common_slowdown, with_own_parts
from harness.checks.latency.expected_time import START_IMPORTS, Open, TimeLeft, expected_cost, undecided_share
from harness.checks.latency.limits import Next, affordable, gate_verdicts, next_step, tolerated, verdicts_beyond
from harness.checks.latency.looks import look_from
from harness.checks.latency.moderation import Prior, fit_prior
from harness.checks.latency.quantities import OF_FIRST_ROUNDS, quantity_priors
from harness.checks.latency.rounds import FEWEST_CONTROLS, MeasuredRound, Round, control_every
from harness.config.policy import model_budget, model_policy, some_gate
from harness.core.archive import Reach
from harness.core.errors import ConfigError
from harness.core.machine import MachineState
from harness.core.measurement import CONTROL, NEW, NO_PROBLEM, OLD, LatencyMeasurement, PairSample, Problem
from harness.core.models import Artifact
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.probe import ProbeRequest, ServingProfile
from harness.core.quantities import parts_of
from harness.machine.cores import Placement, choose, physical_cores
from harness.machine.memory import usable_bytes
from harness.probing.facts import (
    Answered,
    Compared,
    Effects,
    Exported,
    NotBegun,
    Probed,
    Timed,
    WithWorker,
    new_profile,
)
from harness.probing.requests import deadline_after
from harness.serving.scenarios import TIMING
from harness.store import codec
from harness.store.results import ResultStore, WhyNot

# Which side each arm runs on.
ARMS = {OLD: "old", NEW: "new", CONTROL: "old"}
MOST_LANES = 2
# Models so many lend each other enough strength that two rounds tell what is measured beside the steady call.
LARGE = 2 * FEWEST_CONTROLS
EXTRA_ROUNDS = 2
# A loaded artifact takes its file, its weights and what calls need; in sizes of the file.
LOADED = 4


@dataclass
class BenchmarkState:
    """How far the benchmark of one model has come; from its first round on its budget holds the looks it can afford."""

    budget: LatencyBudget
    samples: list[PairSample] = field(default_factory=list)
    fresh: list[PairSample] = field(default_factory=list)
    problem: Problem = NO_PROBLEM
    next: Next = Next.SEARCH

    @property
    def rounds(self) -> int:
        """Of what it does now: the search, or the confirmation."""
        return len(self.fresh if self.next is Next.CONFIRM else self.samples)

    @property
    def is_planned(self) -> bool:
        """Whether it is open and has not had all looks that were planned."""
        return self.next is not Next.DONE and self.rounds < self.budget.looks[-1]

    def take(self, sample: PairSample) -> None:
        if not self.samples:
            self.budget = affordable(self.budget, sample.spent_s)
        (self.fresh if self.next is Next.CONFIRM else self.samples).append(sample)

    def measured(self, model: str, prior: Prior | None, beside: Mapping[str, Prior | None]) -> LatencyMeasurement:
        """Return what is known by now of the steady call, and ``beside`` it, with what all models say of variances."""
        looks = self.budget.looks
        return statistics.measure(
            model, self.samples, self.fresh, looks=looks, prior=prior, beside=beside, problem=self.problem
        )

    def go_on(
        self, measurement: LatencyMeasurement, policy: PolicySettings, *, confirm: bool, give_up: bool = False
    ) -> None:
        """Decide what comes next; ``give_up``: nothing, where a look finds the calls above the limit, surely or not."""
        rounds, fresh = len(self.samples), len(self.fresh)
        # What only is named has one look at fresh rounds; what fails a model goes on while it is open.
        gates = tuple((gate_verdicts if fresh else verdicts_beyond)(measurement, policy).values())
        step = next_step(measurement, self.budget, rounds=rounds, fresh=fresh, gates=gates, further=True)
        self.next = Next.DONE if step is Next.CONFIRM and not confirm else step
        steady, is_look = measurement.steady, rounds == look_from(rounds, self.budget.looks)
        if give_up and is_look and steady is not None and steady.ratio > 1 + tolerated(measurement, self.budget):
            self.next = Next.DONE


@dataclass
class Time:
    """What is left of the time of a benchmark, in seconds.

    ``is_more``: whether it was given to a run that has rounds already: these cost nothing of it, and looks may go on
    after those that were planned.
    """

    left_s: float = math.inf
    is_more: bool = False

    def spend(self, wall_s: float, *, kept: bool) -> None:
        if not (kept and self.is_more):
            self.left_s -= wall_s


def benchmark(facts: Compared, effects: Effects) -> Timed:
    """Return the facts with a ``LatencyMeasurement`` per model that is timed and works in both releases."""
    contestants = _contestants(facts, effects)
    if not contestants:
        return untimed(facts)
    machine_states: list[MachineState] = []
    planted = _planted_defects(facts)
    time_left = _time_left(contestants, facts, effects, facts.plan.settings.latency, new_profile(facts.plan))
    needed_s = _one_round_s(contestants, time_left, planted)
    if effects.left_s < needed_s:
        not_begun = NotBegun(scenario=TIMING, group="", expected_s=needed_s)
        return untimed(replace(facts, not_begun=(*facts.not_begun, not_begun)))
    time = time_for(contestants, facts, effects, planted=planted)
    shared: dict[str, Any] = {"profile": new_profile(facts.plan), "machine_states": machine_states}
    shared |= {"time": time, "planted": planted}
    measurements = contest(contestants, facts, effects, runtime=timed_runtime(facts, effects), **shared)
    unable = {name: contestants[name] for name, measured in measurements.items() if not _called_in_cpp(measured)}
    if unable:
        measurements |= contest(unable, facts, effects, label="benchmark of the Python worker", **shared)
    # Models that another worker was timed in had rounds of their own: they share no processes with the rest.
    timed = {name: measured for name, measured in measurements.items() if name in facts.alone}
    apart = timed.keys() & unable.keys()
    most_are_apart = 2 * len(apart) > len(timed)
    together = {name: measured for name, measured in timed.items() if (name in apart) == most_are_apart}
    # Nor is what all share estimated of cells that a rerun repeats for being slow.
    whole = bool(facts.plan.planted_defects) or facts.plan.repeats_common
    operators = {name: operator_calls(contestants[name][0]) for name in together}
    common = common_slowdown(together, operators) if whole else None
    return Timed(
        **Compared.known(facts),
        latency={**measurements, **with_own_parts(together, common)},
        common=common,
        machine_states=tuple(machine_states),
    )


def operator_calls(artifact: Artifact) -> int:
    """Return how many operator calls an artifact's code has, those in loops once; 0 where it cannot be read."""
    try:
        with files.opened(artifact.path) as source:
            uses = read_artifact(source, artifact.path).operators
    except (CannotRead, OSError):
        return 0
    return sum(use.count for use in uses if use.reach is not Reach.UNCALLED)


def untimed(facts: Compared) -> Timed:
    return Timed(**Compared.known(facts), latency={}, common=None, machine_states=())


def expected_s(facts: Probed, effects: Effects) -> float | None:
    """Return how long the benchmark is expected to take, in seconds; None where there is none."""
    contestants, budget = _contestants(facts, effects), facts.plan.settings.latency
    if not contestants:
        return None
    models = {name: _open(BenchmarkState(budget), *pair) for name, pair in contestants.items()}
    time_left = _time_left(contestants, facts, effects, budget, new_profile(facts.plan))
    allowed_s = _allowed_s(contestants, _planted_defects(facts), time_left, budget)
    return facts.plan.more_s or min(time_left.seconds(models), allowed_s)


def _allowed_s(
    contestants: Collection[str], planted: Collection[str], time_left: TimeLeft, budget: LatencyBudget
) -> float:
    looks_s = time_left.first_looks_s(contestants, budget.looks[0])
    return total_s(budget, len(contestants) - len(planted), time_left.lanes, first_looks_s=looks_s)


def time_for(
    contestants: Mapping[str, tuple[Artifact, Artifact]],
    facts: Answered,
    effects: Effects,
    *,
    planted: Collection[str] = (),
) -> Time:
    """Return the benchmark's time. Raises ``ConfigError``: it does not suffice for one round of one model."""
    plan, budget = facts.plan, facts.plan.settings.latency
    time_left = _time_left(contestants, facts, effects, budget, new_profile(facts.plan))
    allowed_s = _allowed_s(contestants, planted, time_left, budget)
    time = Time(left_s=min(plan.more_s or allowed_s, effects.left_s), is_more=plan.more_s > 0)
    needed_s = _one_round_s(contestants, time_left, planted)
    asked = "--more" if time.is_more else "latency.total_s" if budget.total_s is not None else ""
    if asked and needed_s > time.left_s:
        planned = budget.total_s if budget.total_s is not None else 0.0
        enough = math.ceil(max(60.0, planned, 4 * budget.looks[0] * needed_s))
        go_on = f"--resume {effects.run_dir.name} --more {enough}s"
        raise ConfigError(
            f"{asked} of {time.left_s:g} s is too little: one round of one model takes about {needed_s:.1f} s",
            f"nothing is lost, go on with: {go_on}; or leave it out",
        )
    return time


def _one_round_s(contestants: Collection[str], time_left: TimeLeft, planted: Collection[str]) -> float:
    """Return how long one round of the planted slowdowns and the quickest model takes."""
    cost_s = {name: time_left.cost_s(name, is_first=True) for name in contestants}
    cheapest = min((name for name in contestants if name not in planted), key=lambda name: cost_s[name])
    return time_left.start_s + side_by_side([cost_s[name] for name in (*planted, cheapest)], time_left.lanes)


def _contestants(facts: Probed, effects: Effects) -> dict[str, tuple[Artifact, Artifact]]:
    if not facts.plan.is_timed or "old" not in effects.environments:
        return {}
    healthy = {name: (artifact, artifact) for name, artifact in _healthy(facts).items()}
    return {**healthy, **_planted_defects(facts)} if healthy else {}


def _time_left(
    contestants: Mapping[str, tuple[Artifact, Artifact]],
    facts: Answered,
    effects: Effects,
    budget: LatencyBudget,
    profile: ServingProfile,
    *,
    arms: Collection[str] = tuple(ARMS),
) -> TimeLeft:
    lanes = lanes_for(contestants, facts, (facts.plan.settings.profile, profile), budget, arms=len(arms))
    every = control_every(len(contestants))
    costs = {}
    for name, (old, _) in contestants.items():
        results = facts.baselines[old.model].results if old.model in facts.baselines else ()
        costs[name] = expected_cost(results, budget, arms=arms, lanes=lanes, control_every=every)
    first_rounds = extra_rounds(contestants, budget, gated=some_gate(facts.plan))
    return TimeLeft(costs, start_s=START_IMPORTS * effects.import_cpu_s, lanes=lanes, first_rounds=first_rounds)


def extra_rounds(
    contestants: Mapping[str, tuple[Artifact, Artifact]], budget: LatencyBudget, *, gated: bool = False
) -> int:
    """Return how many rounds measure more than the steady call: as many as an interval of it needs.

    Of three rounds, Student's t makes one as wide as two do with the strength that many models lend each other
    (simulated, docs/adr/0072-a-control-for-some.md); what only a few have, other shapes, takes three. ``gated``:
    whether a quantity beside the steady call can fail a model: every round measures it then.
    """
    if gated:
        return budget.looks[-1]
    shapes = sum(len(old.input_sets) > 1 for old, _ in contestants.values())
    are_many = len(contestants) >= LARGE and (shapes == 0 or shapes >= FEWEST_CONTROLS)
    return min(EXTRA_ROUNDS, budget.looks[0]) if are_many else budget.looks[0]


def lanes_for(
    contestants: Mapping[str, tuple[Artifact, Artifact]],
    facts: Answered,
    profiles: Sequence[ServingProfile],
    budget: LatencyBudget,
    *,
    arms: int,
) -> int:
    """Return how many models are timed at the same time, each lane on physical cores of its own.

    One on a GPU, which they would share, where nothing is pinned, and where memory does not suffice for two of the
    largest artifacts. Two were measured to be as quiet as one (docs/adr/0048-what-made-rounds-noisy.md); more were not.
    """
    if not facts.plan.runs_on.is_cpu or not budget.pin:
        return 1
    largest = max((artifact.size_bytes for pair in contestants.values() for artifact in pair), default=0)
    usable = usable_bytes()
    fitting = MOST_LANES if usable is None else int(usable / max(arms * LOADED * largest, 1))
    return max(min(MOST_LANES, fitting, physical_cores() // cores_wanted(profiles)), 1)


def cores_wanted(profiles: Sequence[ServingProfile]) -> int:
    """Return how many cores a lane has: as many as the pools of any profile can use."""
    return max(profile.intra_op_threads * profile.inter_op_threads for profile in profiles)


def contest(
    contestants: Mapping[str, tuple[Artifact, Artifact]],
    facts: Answered,
    effects: Effects,
    *,
    profile: ServingProfile,
    arms: Mapping[str, str] = ARMS,
    label: str = "benchmark",
    budget: LatencyBudget | None = None,
    confirm: bool = True,
    extras: bool = True,
    machine_states: list[MachineState] | None = None,
    runtime: str = "python",
    time: Time | None = None,
    planted: Collection[str] = (),
    give_up: Collection[str] = (),
) -> dict[str, LatencyMeasurement]:
    """Return what the benchmark learnt of each contestant; each is measured until it is decided or its budget is spent.

    Args:
        arms: arm -> side.
        budget: the plan's by default.
        confirm: whether a suspicion is taken to fresh rounds.
        extras: whether throughput, other shapes and graph replay are measured too.
        runtime: the worker that is timed; ``"libtorch"`` only where it is built for both sides.
        time: what is left of the run's, from which the rounds are taken; as much as they need by default.
        give_up: who is measured only to see whether its calls are below the limit; a look above it ends that.
    """
    budget, time = budget or facts.plan.settings.latency, time or Time()
    requests = {
        arm: settled(
            facts.requests.benchmark(
                side,
                [replace(pair[arm == NEW], model=name) for name, pair in contestants.items()],
                profile if arm == NEW else None,
                runtime=runtime,
            )
        )
        for arm, side in arms.items()
    }
    states = {name: BenchmarkState(model_budget(facts.plan, name, budget)) for name in contestants}
    policies = {name: model_policy(facts.plan, name).settings for name in contestants}
    gated = any(policy.gating for policy in policies.values())
    first_rounds = extra_rounds(contestants, budget)
    deadline_s, placement = order_deadline_s(contestants, facts), placed(budget, (facts.plan.settings.profile, profile))
    time_left = _time_left(contestants, facts, effects, budget, profile, arms=tuple(arms))
    measurements: dict[str, LatencyMeasurement] = {}
    at_look: dict[str, LatencyMeasurement] = {}
    folder, number = effects.folder(label.replace(" ", "-")), 0
    while unfinished := [name for name, state in states.items() if state.next is not Next.DONE]:
        # The later rounds are for the steady call, for what is gated, and for what they are to confirm.
        confirmed = [name for name in unfinished if states[name].next is Next.CONFIRM]
        asked = any(_is_suspected_beside(measurements[name], policies[name]) for name in confirmed)
        wanted = extras and (gated or asked or number < first_rounds)
        kept = _kept(unfinished, requests, folder=folder, number=number, budget=budget, extras=wanted)
        names = kept or _chosen(
            states, measurements, contestants, time_left, time=time, planted=planted, confirm=confirm
        )
        if not names:
            break
        open_ = {name: _open(states[name], *contestants[name]) for name in unfinished}
        left_s = time_left.seconds(open_, undecided=undecided_share(*_looked_at(states.values())))
        left_s = max(time.left_s, 0.0) if time.is_more else min(left_s, max(time.left_s, 0.0))
        effects.progress.stage(_words(label, number, names, states), len(names), left_s=left_s)
        measured = measured_round(
            names,
            requests,
            effects,
            folder=folder,
            number=number,
            budget=budget,
            deadline_s=deadline_s,
            placement=placement,
            lanes=time_left.lanes,
            extras=wanted,
            confirming=[name for name in names if states[name].next is Next.CONFIRM],
        )
        time.spend(measured.wall_s, kept=bool(kept))
        if measured.wall_s:
            time_left.took(names, measured.wall_s, is_first=wanted)
        for sample in measured.samples:
            states[sample.model].take(sample)
        if machine_states is not None and measured.machine_state is not None:
            machine_states.append(measured.machine_state)
        prior = fit_prior([statistics.spread_of(state.samples, state.fresh) for state in states.values()])
        beside = quantity_priors([state.samples for state in states.values()]) if len(contestants) >= LARGE else {}
        for name in names:
            states[name].problem = measured.problems.get(name, NO_PROBLEM)
            measurements[name] = replace(states[name].measured(name, prior, beside), runtime=runtime)
            if states[name].rounds == look_from(states[name].rounds, states[name].budget.looks):
                at_look[name] = measurements[name]
            states[name].go_on(measurements[name], policies[name], confirm=confirm, give_up=name in give_up)
        number += 1
    for name, state in states.items():
        if state.next is not Next.DONE:  # rounds after its last look may not be looked at before the next one
            looked = at_look.get(name, LatencyMeasurement(model=name, samples=(), runtime=runtime))
            measurements[name] = replace(looked, out_of_time=state.is_planned or time.is_more)
    return measurements


def _is_suspected_beside(measurement: LatencyMeasurement, policy: PolicySettings) -> bool:
    """Whether the search suspects what the first rounds alone measure, whatever fresh rounds say of it so far."""
    beyond = verdicts_beyond(replace(measurement, fresh_quantities={}), policy)
    return any(parts_of(name)[0] in OF_FIRST_ROUNDS for name in beyond)


def _chosen(
    states: Mapping[str, BenchmarkState],
    measurements: Mapping[str, LatencyMeasurement],
    contestants: Mapping[str, tuple[Artifact, Artifact]],
    time_left: TimeLeft,
    *,
    time: Time,
    planted: Collection[str],
    confirm: bool,
) -> list[str]:
    """Return the models of the next round; none where time is over, or all looks were made that were planned."""
    candidates = {}
    for name, state in states.items():
        if state.next is Next.DONE or not (state.is_planned or time.is_more):
            continue
        first, measured = state.budget.looks[0], measurements.get(name)
        slow = contestants[name][0] is not contestants[name][1]
        rounds = look_from(state.rounds + 1, state.budget.looks) - state.rounds
        cost_s = time_left.mean_cost_s(name, state.rounds, rounds)
        needed = math.inf
        if measured is not None:
            needed = further_rounds(measured.shown, tolerated(measured, state.budget))
        searched_first = state.next is Next.SEARCH and state.rounds < first
        candidates[name] = Candidate(
            cost_s=cost_s,
            rounds=rounds,
            # A planted slowdown is always taken to fresh rounds, its twin never.
            confirmed_in=first if confirm and searched_first and (slow or name not in planted) else 0,
            is_required=name in planted and state.rounds < first,
            is_suspected=state.next is Next.CONFIRM,
            is_new=searched_first,
            decided_in_s=needed * cost_s,
        )
    looked = any(len(state.samples) >= state.budget.looks[0] for name, state in states.items() if name not in planted)
    return next_round(
        candidates, start_s=time_left.start_s, left_s=time.left_s, lanes=time_left.lanes, needs_one=not looked
    )


def _kept(
    unfinished: Sequence[str],
    requests: Mapping[str, ProbeRequest],
    *,
    folder: Path,
    number: int,
    budget: LatencyBudget,
    extras: bool,
) -> list[str]:
    """Return the models of a round that was measured before; none where it was not, or was asked for something else."""

    def of(measured: MeasuredRound) -> list[str]:
        known = {*measured.problems, *(sample.model for sample in measured.samples)}
        return [name for name in unfinished if name in known]

    results = ResultStore(folder, MeasuredRound)
    stored = results.reusable(
        f"round-{number}", answers=lambda measured: measured.key == _key(requests, of(measured), budget, extras=extras)
    )
    return [] if isinstance(stored, WhyNot) else of(stored)


def _key(requests: Mapping[str, ProbeRequest], names: Sequence[str], budget: LatencyBudget, *, extras: bool) -> str:
    return codec.digest([requests, names, budget, extras])


def measured_round(
    names: Sequence[str],
    requests: Mapping[str, ProbeRequest],
    effects: Effects,
    *,
    folder: Path,
    number: int,
    budget: LatencyBudget,
    deadline_s: float,
    placement: Placement,
    extras: bool,
    lanes: int = 1,
    confirming: Collection[str] = (),
) -> MeasuredRound:
    """Return what one round of fresh processes gave, one arm per request; it is measured once in a run."""
    results, name = ResultStore(folder, MeasuredRound), f"round-{number}"
    key = _key(requests, names, budget, extras=extras)
    stored = results.reusable(name, answers=lambda measured: measured.key == key)
    if not isinstance(stored, WhyNot):
        return stored
    round_ = Round(
        {arm: effects.environments[request.side] for arm, request in requests.items()},
        requests,
        folder,
        number=number,
        budget=budget,
        deadline_s=deadline_s,
        placement=placement,
        lanes=lanes,
        native={
            request.side: effects.runner.native[request.side]
            for request in requests.values()
            if request.runtime == "libtorch"
        },
    )
    samples = tuple(round_.measure(names, effects.progress.step, extras=extras, confirming=confirming))
    effects.runner.record_round(round_.wall_ns, round_.unreaped)
    measured = MeasuredRound(
        key=key,
        samples=samples,
        problems=round_.problems,
        wall_s=1e-9 * (round_.wall_ns[1] - round_.wall_ns[0]),
        machine_state=round_.machine_state,
    )
    results.save(name, measured)
    return measured


def _open(state: BenchmarkState, old: Artifact, new: Artifact) -> Open:
    first = state.budget.looks[0]
    if old is not new:
        return Open(rounds=min(len(state.samples), first) + len(state.fresh), looks=(2 * first,))
    return Open(rounds=state.rounds, looks=state.budget.looks)


def _looked_at(states: Iterable[BenchmarkState]) -> tuple[int, int]:
    looked = [state for state in states if len(state.samples) >= state.budget.looks[0]]
    return sum(state.next is Next.SEARCH for state in looked), len(looked)


def timed_runtime(facts: WithWorker, effects: Effects) -> str:
    """Return the worker that is timed: the one that initializes; Python's on GPUs and with operator libraries."""
    libraries = any(environment.spec.libraries for environment in effects.environments.values())
    return "python" if libraries or not facts.plan.runs_on.is_cpu else facts.worker


def _called_in_cpp(measured: LatencyMeasurement) -> bool:
    refused = not measured.samples and measured.refused and measured.problem_of != NEW
    return measured.runtime != "libtorch" or not refused


def _words(label: str, number: int, names: Sequence[str], states: Mapping[str, BenchmarkState]) -> str:
    suspects = sum(states[name].next is Next.CONFIRM for name in names)
    return f"{label}, round {number + 1} of fresh processes" + (f" ({suspects} to confirm)" if suspects else "")


def order_deadline_s(names: Iterable[str], facts: Answered) -> float:
    known = [result for name in names if name in facts.baselines for result in facts.baselines[name].results]
    limits = deadline_after(facts.plan.settings.deadlines, known)
    return limits.load_s + limits.call_s


def placed(budget: LatencyBudget, profiles: Sequence[ServingProfile]) -> Placement:
    if not budget.pin:
        return Placement(why_not="switched off ([tool.compat.latency] pin)")
    return choose(cores_wanted(profiles))


def _healthy(facts: Probed) -> dict[str, Artifact]:
    """Models that are timed and complete in both releases; others would tell nothing, or kill the process."""
    healthy = {}
    for name in facts.alone:
        artifact = facts.served(name)
        if artifact is not None and facts.exports[name].declaration.timed:
            healthy[name] = artifact if artifact == facts.artifact(name) else replace(artifact, schedule=())
    return healthy


def _planted_defects(facts: Exported) -> dict[str, tuple[Artifact, Artifact]]:
    """Planted slowdowns: the twin's artifact in the old arms, the slow one in the new; and the twin itself."""
    planted = {}
    for declaration in facts.plan.planted_defects:
        mark = declaration.planted_defect
        if mark is None or mark.scenario != "latency":
            continue
        slow, twin = facts.exports[declaration.name].artifact, facts.exports[mark.twin].artifact
        if slow is not None and twin is not None:
            planted[declaration.name] = (twin, slow)
            planted[mark.twin] = (twin, twin)
    return planted
