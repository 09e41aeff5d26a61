"""Which node does which part of a plan, when nodes come and go, fail, or are slow. Pure: it starts nothing.

Every node does one part at a time, for a run takes all cores. The part of a node that is lost goes to another; so does
what was left without a result for a reason of the machine. Where nothing waits any more, the part that has been running
for longest is split in two and tried beside the slow node: results are named by content, so nothing is counted twice.
"""

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from harness.apps.fleet.units import shard_of
from harness.core.fleet import FleetUnit

TRIES = 2
"""How many nodes try what fails for a reason of the machine, each of them as often as a shard by itself does."""
LOSSES = 5
"""How often a part may lose its node: what ends a node every time is not given to all of them."""
SLOW = 1.5
"""A part is split where it takes so many times as long, per second that was expected, as those that have ended."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Units that one node does in one call.

    ``tried``: nodes that did it and left something; ``losses``: how often its node was lost; ``half``: whether it is a
    half of one that was slow, which is not split again.
    """

    number: int
    units: tuple[FleetUnit, ...]
    tried: frozenset[str] = frozenset()
    losses: int = 0
    half: bool = False

    @property
    def cost_s(self) -> float:
        """Seconds that it is expected to take, beside what a run costs by itself."""
        return sum(unit.cost_s for unit in self.units)


@dataclass(frozen=True, kw_only=True)
class Running:
    """A part at work: on which node, since when."""

    part: Part
    node: str
    since_s: float


@dataclass
class Assignment:
    """What waits, in the order in which it begins, what runs, and what was given up; ``run_s``: a run's own cost."""

    waiting: list[Part]
    run_s: float
    running: dict[int, Running] = field(default_factory=dict)
    given_up: list[FleetUnit] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    _paces: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Let numbers of what is split or tried again follow those of the first parts."""
        self._numbers = count(1 + max((part.number for part in self.waiting), default=0))

    @property
    def is_done(self) -> bool:
        return not self.waiting and not self.running

    def take(self, node: str, nodes: Collection[str], now_s: float) -> Part | None:
        """Return what an idle node begins with, None without; a part waits for a node that has not tried it, if any."""
        if not self.waiting:
            self._split(now_s)
        for part in self.waiting:
            if node not in part.tried or part.tried.issuperset(nodes):
                self.waiting.remove(part)
                self.running[part.number] = Running(part=part, node=node, since_s=now_s)
                return part
        return None

    def _split(self, now_s: float) -> None:
        slow = [item for item in self.running.values() if self._is_slow(item, now_s)]
        if not slow:
            return
        part = min(slow, key=lambda item: item.since_s).part
        self.running[part.number] = replace(self.running[part.number], part=replace(part, half=True))
        self.waiting += [
            replace(half, number=next(self._numbers), tried=part.tried, half=True)
            for half in parts_of(self._open(part), 2)
        ]

    def _is_slow(self, item: Running, now_s: float) -> bool:
        if item.part.half or len(self._open(item.part)) < 2 or not self._paces:
            return False
        return now_s - item.since_s > SLOW * statistics.median(self._paces) * (item.part.cost_s + self.run_s)

    def _open(self, part: Part) -> list[FleetUnit]:
        return [unit for unit in part.units if unit.key not in self.known]

    def ended(self, number: int, made: Collection[str], now_s: float, nodes: Collection[str]) -> list[int]:
        """Take note of what a part has made; return the numbers of running parts that nobody needs any more."""
        item = self.running.pop(number)
        self.known.update(made)
        left = self._open(item.part)
        if not left:
            self._paces.append((now_s - item.since_s) / (item.part.cost_s + self.run_s))
        tried = item.part.tried | {item.node}
        left = [] if self._elsewhere(left) else left
        if left and len(tried) < min(TRIES, len({*nodes} | tried)):
            self.waiting.append(replace(item.part, number=next(self._numbers), units=tuple(left), tried=tried))
        else:
            self.given_up += left
        self.waiting = [part for part in self.waiting if self._open(part)]
        return [number for number, other in self.running.items() if not self._open(other.part)]

    def lost(self, number: int) -> bool:
        """Take note of a part whose node is gone; return whether it is begun anew on another one."""
        part = self.running.pop(number).part
        left = self._open(part)
        if part.losses + 1 >= LOSSES:
            self.given_up += [] if self._elsewhere(left) else left
            return False
        if left:
            again = replace(part, number=next(self._numbers), units=tuple(left), losses=part.losses + 1)
            self.waiting.insert(0, again)
        return True

    def cancelled(self, number: int) -> None:
        self.running.pop(number, None)

    def _elsewhere(self, units: Sequence[FleetUnit]) -> bool:
        """Whether all of these are in a part that waits or runs."""
        parts = [*self.waiting, *(item.part for item in self.running.values())]
        there = {unit.key for part in parts for unit in part.units}
        return all(unit.key in there for unit in units)


def parts_of(units: Sequence[FleetUnit], count: int) -> list[Part]:
    """Return the parts of so many machines, each as ``--shard`` has it; none is empty."""
    shards = [shard_of(units, index, count) for index in range(1, count + 1)]
    return [Part(number=number, units=shard) for number, shard in enumerate(filter(None, shards), 1)]
