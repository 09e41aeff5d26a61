"""From artifacts to what is run: one unit per content, in order of risk and cost, divided among machines. Pure."""

import hashlib
import heapq
import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from harness.core.errors import ConfigError
from harness.core.fleet import Examination, FleetArtifact, FleetPlan, FleetUnit
from harness.core.prediction import Prediction

# What is known of costs before anything ran here: on two cores, of artifacts of some MB; told as a guess.
FULL_S, WEIGHTS_S, RUN_S = 12.0, 2.5, 60.0
# Loads and copies, several times over, of what is large.
BYTES_PER_S = 100e6
MOST_IN_A_RUN, MOST_S = 1000, 7200.0
"""Artifacts of one run, and seconds that it is expected to take: results are kept when a run has ended."""
MOST_COST_S = 1e12
MACHINES = 4
"""For how many a plan says how long they take, where nobody said how long all may take."""
SHARD = re.compile(r"(\d+)/(\d+)\Z")


class Costs(NamedTuple):
    """Seconds that one unit takes, by examination; ``measured``: of how many results that follows."""

    seconds: Mapping[Examination, float]
    measured: int = 0


DEFAULT_COSTS = Costs({Examination.FULL: FULL_S, Examination.WEIGHTS: WEIGHTS_S})


class Content(NamedTuple):
    """What every result of a plan depends on, beside the artifact itself."""

    protocol: str
    releases: Mapping[str, str]
    device: str
    settings: str
    profiles: Mapping[str, Sequence[str]]


def content_of(artifact: FleetArtifact, examination: Examination, common: Content) -> dict[str, str]:
    asked = {name: value for name, value in asdict(artifact.serving).items() if name not in ("inputs", "profile")}
    return {
        "program": artifact.program,
        "weights": artifact.weights,
        "requests": _digest([asked, artifact.inputs_sha256]),
        "old": common.releases.get("old", ""),
        "new": common.releases.get("new", ""),
        "device": common.device,
        "profile": _digest(common.profiles[artifact.serving.profile]),
        "settings": common.settings,
        "scenario": examination.value,
        "protocol": common.protocol,
    }


def is_of(content: Mapping[str, str], artifact: FleetArtifact, plan: FleetPlan) -> bool:
    """Whether a result with this content is of what a plan asks of an artifact, whatever workers found it."""
    common = Content(content.get("protocol", ""), plan.releases, plan.device, plan.settings, plan.profiles)
    return content == content_of(artifact, artifact.examination, common)


def key_of(content: Mapping[str, str]) -> str:
    return _digest(dict(content))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=list).encode()).hexdigest()


def risk_of(artifact: FleetArtifact) -> int:
    """Return 0 where reading says that the new release will not load it, 1 and 2 where it is in doubt, 3 otherwise."""
    prediction = artifact.predictions.get("new", Prediction.UNKNOWN)
    if prediction is Prediction.FAILS:
        return 0
    if prediction is Prediction.UNKNOWN:
        return 1
    return 2 if artifact.why else 3


def why_unusable(plan: FleetPlan) -> str:
    """Return what contradicts itself in a plan, in words: only a file that somebody has edited does; else empty."""
    named = {artifact.name: artifact for artifact in plan.artifacts}
    units = {unit.key: unit for unit in plan.units}
    if len(named) < len(plan.artifacts):
        return "two artifacts have one name"
    if len(units) < len(plan.units):
        return "two units have one key"
    if len({(item.path, item.member) for item in plan.artifacts}) < len(plan.artifacts):
        return "two artifacts lie in one place"
    if {*plan.releases} != {"old", "new"}:
        return "its releases are not those of two sides"
    unknown = [item.name for item in plan.artifacts if item.serving.profile not in plan.profiles]
    if unknown:
        return f"{unknown[0]} has a serving profile that it does not have"
    for unit in plan.units:
        own = [named.get(name) for name in (unit.artifact, *unit.artifacts)]
        if any(item is None or item.key != unit.key for item in own):
            return f"the unit of {unit.artifact} and the artifacts that it is of do not agree"
    common = Content("", plan.releases, plan.device, plan.settings, plan.profiles)
    contents: dict[str, dict[str, str]] = {}
    for item in plan.artifacts:
        content = content_of(item, item.examination, common)
        if item.key and contents.setdefault(item.key, content) != content:
            return f"{item.name} and another artifact have one key and not one content"
    numbers = [plan.run_s, plan.within_s or 0.0, *(unit.cost_s for unit in plan.units)]
    if any(not 0.0 <= number <= MOST_COST_S for number in numbers) or plan.machines < 1:
        return "a time or a number of machines is none"
    return ""


def family_of(artifact: FleetArtifact) -> tuple[str, str, str]:
    """Return what artifacts share of which one is examined in full: the program, how it is served and asked.

    Requests in files count as alike: each retrained artifact may have its own. Described ones are shapes.
    """
    return artifact.program, artifact.serving.profile, _digest([*artifact.serving.requests, *artifact.serving.methods])


def examined(artifacts: Sequence[FleetArtifact], common: Content, tiers: Sequence[str]) -> tuple[FleetArtifact, ...]:
    """Return the artifacts with what is asked of each, and its key.

    Of each program, as it is served and asked, one is examined in full: one with requests of its own rather than
    guessed ones, of the tier that is upgraded last, the first by name.
    """
    groups: dict[tuple[str, str, str], list[FleetArtifact]] = defaultdict(list)
    for artifact in artifacts:
        if not artifact.left_out:
            groups[family_of(artifact)].append(artifact)
    order = {tier: place for place, tier in enumerate(tiers)}

    def first(artifact: FleetArtifact) -> tuple[bool, int, str]:
        has_requests = bool(artifact.serving.inputs or artifact.serving.requests)
        return not has_requests, -order.get(artifact.tier, -1), artifact.name

    chosen = {min(group, key=first).name for group in groups.values()}
    chosen_keys = {key_of(content_of(item, Examination.FULL, common)) for item in artifacts if item.name in chosen}
    made = []
    for artifact in artifacts:
        if artifact.left_out:
            made.append(artifact)
            continue
        full = key_of(content_of(artifact, Examination.FULL, common))
        is_full = full in chosen_keys  # also what is the same file under another name
        examination = Examination.FULL if is_full else Examination.WEIGHTS
        key = full if is_full else key_of(content_of(artifact, examination, common))
        made.append(replace(artifact, examination=examination, key=key))
    return tuple(made)


def units_of(artifacts: Iterable[FleetArtifact], costs: Costs, known: Collection[str] = ()) -> tuple[FleetUnit, ...]:
    """Return what is run, each content once: the riskiest first, then the cheapest; ``known`` keys have results."""
    groups: dict[str, list[FleetArtifact]] = defaultdict(list)
    for artifact in artifacts:
        if artifact.key:
            groups[artifact.key].append(artifact)
    units = [
        _unit(key, sorted(group, key=lambda item: item.name), costs, key in known) for key, group in groups.items()
    ]
    return tuple(sorted(units, key=lambda unit: (unit.risk, unit.cost_s, unit.artifact)))


def _unit(key: str, group: Sequence[FleetArtifact], costs: Costs, known: bool) -> FleetUnit:  # noqa: FBT001
    first = group[0]
    return FleetUnit(
        key=key,
        artifact=first.name,
        artifacts=tuple(item.name for item in group),
        examination=first.examination,
        profile=first.serving.profile,
        risk=risk_of(first),
        cost_s=round(costs.seconds[first.examination] + first.size_bytes / BYTES_PER_S, 1),
        known=known,
    )


def runs_of(units: Sequence[FleetUnit], most: int = MOST_IN_A_RUN) -> tuple[tuple[FleetUnit, ...], ...]:
    by_profile: dict[str, list[FleetUnit]] = defaultdict(list)
    for unit in units:
        by_profile[unit.profile].append(unit)
    runs: list[tuple[FleetUnit, ...]] = []
    for _, group in sorted(by_profile.items()):
        begin, taken_s = 0, 0.0
        for at, unit in enumerate(group):
            if at > begin and (at - begin == most or taken_s + unit.cost_s > MOST_S):
                runs.append(tuple(group[begin:at]))
                begin, taken_s = at, 0.0
            taken_s += unit.cost_s
        runs.append(tuple(group[begin:]))
    return tuple(runs)


def shard_of(units: Sequence[FleetUnit], index: int, count: int) -> tuple[FleetUnit, ...]:
    """Return the units of one of ``count`` machines, in their order: alike in cost, and the same whoever asks.

    What was known when the plan was made costs nothing; it is divided all the same, in case it is gone.
    """
    loads = [(0.0, 0, place) for place in range(1, count + 1)]
    heapq.heapify(loads)
    mine = set()
    for unit in sorted(units, key=lambda unit: (unit.known, -unit.cost_s, unit.key)):
        load, number, place = heapq.heappop(loads)
        if place == index:
            mine.add(unit.key)
        heapq.heappush(loads, (load + (0.0 if unit.known else unit.cost_s), number + 1, place))
    return tuple(unit for unit in units if unit.key in mine)


def read_shard(text: str) -> tuple[int, int]:
    """Return (index, count) of ``I/N``, index from 1. Raises ``ConfigError``: it is no such thing."""
    match = SHARD.fullmatch(text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        raise ConfigError(f"--shard {text}: expected I/N with I from 1 to N, such as 2/8", "number the machines from 1")
    return index, count


def seconds_of(units: Iterable[FleetUnit], run_s: float) -> float:
    open_units = [unit for unit in units if not unit.known]
    return sum(unit.cost_s for unit in open_units) + run_s * len(runs_of(open_units))


def machines_for(units: Sequence[FleetUnit], run_s: float, within_s: float) -> int:
    """Return how many machines do the units within a time. Raises ``ConfigError``: one unit alone takes longer."""
    open_units = [unit for unit in units if not unit.known]
    longest = max((unit.cost_s for unit in open_units), default=0.0) + run_s
    if open_units and within_s < longest:
        raise ConfigError(
            f"--within {within_s:.0f}s: one artifact, and what a run costs beside it, takes about {longest:.0f} s",
            "allow more time",
        )
    least = max(1, math.ceil(sum(unit.cost_s for unit in open_units) / max(within_s - run_s, 1e-9)))
    for count in range(min(least, max(len(open_units), 1)), len(open_units) + 1):
        if max(seconds_of(shard_of(units, index, count), run_s) for index in range(1, count + 1)) <= within_s:
            return count
    return max(len(open_units), 1)


def usual_machines(plan: FleetPlan) -> int:
    """Return on how many machines a plan runs: as many as it says, or as one would think of."""
    return plan.machines if plan.machines > 1 else min(MACHINES, sum(not unit.known for unit in plan.units))


def times_of(plan: FleetPlan) -> tuple[tuple[int, float], ...]:
    """Return (machines, seconds) that a plan takes: on one, and on as many as usual."""
    counts = dict.fromkeys((1, usual_machines(plan)))
    return tuple((count, slowest_s(plan, count)) for count in counts if count)


def slowest_s(plan: FleetPlan, count: int) -> float:
    return max(seconds_of(shard_of(plan.units, index, count), plan.run_s) for index in range(1, count + 1))
