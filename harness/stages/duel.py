"""Measures latency: both releases alive at once, short blocks in alternation, several rounds of fresh processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.domain.artifact import Artifact
from harness.domain.measurement import LatencyMeasurement, PairSample
from harness.domain.outcome import Outcome
from harness.domain.plan import LatencyBudget
from harness.domain.probe import ServingProfile
from harness.numerics import latency as statistics
from harness.policy.latency import REGRESSED, UNDECIDED, classify
from harness.runtime.duel import Round
from harness.stages.facts import Effects, Facts, new_profile
from harness.stages.requests import deadline_after

# Which side each arm runs on. The twin is a second process of the old release: same against same.
ARMS = {"old": "old", "new": "new", "twin": "old"}

# How often as many rounds again are fought for models that would leave the run undecided, and for suspicions that
# fresh processes neither confirm nor clear.
EXTENSIONS = 2


@dataclass(frozen=True)
class Fought:
    """What the rounds gave for one contestant: its samples, and what went wrong, in words."""

    samples: tuple[PairSample, ...] = ()
    problem: str = ""

    def joined(self, later: "Fought") -> "Fought":
        """Return both together."""
        return Fought(self.samples + later.samples, self.problem or later.problem)


def duel(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with a ``LatencyMeasurement`` per model that works in both releases."""
    plan = facts.plan
    budget = plan.settings.latency
    if budget.budget == "off" or "old" not in effects.environments or "latency" not in plan.scenarios:
        return facts
    contestants = {name: (artifact, artifact) for name, artifact in _healthy(facts).items()}
    contestants.update(_canaries(facts))
    if not contestants:
        return facts
    fought: dict[str, Fought] = {}
    measurements: dict[str, LatencyMeasurement] = {}
    names, rounds = list(contestants), range(budget.pairs)
    for _ in range(1 + EXTENSIONS):
        effects.progress.stage(f"duel, {len(rounds)} rounds of fresh processes", len(rounds) * len(names))
        chosen = {name: contestants[name] for name in names}
        for name, found in fight(chosen, facts, effects, rounds=rounds, profile=new_profile(plan)).items():
            fought[name] = fought.get(name, Fought()).joined(found)
            measurements[name] = statistics.measure(name, fought[name].samples, problem=fought[name].problem)
        names = [name for name in names if _leaves_the_run_open(measurements[name], budget)]
        rounds = range(rounds.stop, rounds.stop + budget.pairs)
        if not names:
            break
    suspects = [name for name, found in measurements.items() if classify(found.steady, budget.limit) == REGRESSED]
    confirmed: dict[str, Fought] = {}
    names = suspects
    for _ in range(1 + EXTENSIONS):
        if not names:
            break
        rounds = range(rounds.stop, rounds.stop + budget.confirm_pairs)
        effects.progress.stage("duel, confirm with fresh processes", len(rounds) * len(names))
        chosen = {name: contestants[name] for name in names}
        for name, found in fight(chosen, facts, effects, rounds=rounds, profile=new_profile(plan)).items():
            confirmed[name] = confirmed.get(name, Fought()).joined(found)
        names = [name for name in names if _still_open(confirmed[name], budget)]
    for name in suspects:
        problem = fought[name].problem or confirmed[name].problem
        measurements[name] = statistics.measure(name, fought[name].samples, confirmed[name].samples, problem)
    return replace(facts, latency=measurements)


def _leaves_the_run_open(measurement: LatencyMeasurement, budget: LatencyBudget) -> bool:
    """Whether the interval is so wide that policy could not decide the run with it."""
    steady = measurement.steady
    if steady is None or measurement.problem:
        return False
    return classify(steady, budget.limit) == UNDECIDED and steady.high >= budget.undecided_limit


def _still_open(fought: Fought, budget: LatencyBudget) -> bool:
    """Whether fresh pairs neither confirm a suspicion nor clear it."""
    return not fought.problem and classify(statistics.estimate(fought.samples), budget.limit) == UNDECIDED


def fight(
    contestants: Mapping[str, tuple[Artifact, Artifact]],
    facts: Facts,
    effects: Effects,
    *,
    rounds: Sequence[int],
    profile: ServingProfile,
    arms: Mapping[str, str] = ARMS,
    label: str = "duel",
) -> dict[str, Fought]:
    """Return what the rounds gave, per contestant.

    Args:
        contestants: name -> (artifact of the old arms, artifact of the new arm); the same but for canaries.
        rounds: numbers of the rounds; each is a fresh process per arm.
        profile: of the new arm; the others run under the plan's.
    """
    requests = facts.requests
    budget: LatencyBudget = facts.plan.settings.latency
    by_arm = {
        arm: requests.duel(
            side,
            [replace(pair[side == "new"], model=name) for name, pair in contestants.items()],
            profile if side == "new" else None,
        )
        for arm, side in arms.items()
    }
    baselines = [result for name in contestants if name in facts.baselines for result in facts.baselines[name].results]
    limits = deadline_after(facts.plan.settings.deadlines, baselines)
    deadline = limits.load_s + limits.call_s  # an order may be a load with its first calls
    samples: dict[str, list[PairSample]] = {name: [] for name in contestants}
    problems: dict[str, str] = {}
    for number in rounds:
        round_ = Round(
            {arm: effects.environments[side] for arm, side in arms.items()},
            by_arm,
            effects.folder(label),
            number=number,
            budget=budget,
            deadline_s=deadline,
        )
        names = [name for name in contestants if name not in problems]
        for sample in round_.fight(names, effects.progress.step):
            samples[sample.model].append(sample)
        problems.update(round_.problems)
        effects.spans.append(("duel", *round_.wall_ns))
    return {name: Fought(tuple(found), problems.get(name, "")) for name, found in samples.items()}


def _healthy(facts: Facts) -> dict[str, Artifact]:
    """Models that complete in both releases; the others have nothing to time, or would kill the process."""
    found = {}
    for name, probe in facts.alone.items():
        artifact = facts.exports[name].artifact
        completed = probe.models[0].outcome is Outcome.COMPLETED
        broken_before = any(result.outcome is not Outcome.COMPLETED for result in facts.baselines[name].results)
        if artifact is not None and completed and not broken_before:
            found[name] = artifact
    return found


def _canaries(facts: Facts) -> dict[str, tuple[Artifact, Artifact]]:
    """Planted slowdowns: the twin's artifact in the old arms, the slow one in the new; and the twin itself."""
    found = {}
    for declaration in facts.plan.canaries:
        mark = declaration.canary
        if mark is None or mark.scenario != "latency":
            continue
        slow, twin = facts.exports[declaration.name].artifact, facts.exports[mark.twin].artifact
        if slow is not None and twin is not None:
            found[declaration.name] = (twin, slow)
            found[mark.twin] = (twin, twin)
    return found
