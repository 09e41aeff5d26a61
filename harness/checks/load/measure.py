"""Both releases of a server under one load: rounds of fresh servers, in each of them short blocks turn by turn."""

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from harness.artifacts.traffic import read_traffic
from harness.checks.load import arrivals, tail
from harness.checks.load.generator import Order, Sent
from harness.core.load import CurvePoint, LoadBlock, LoadKind, LoadMeasurement, LoadPlan, LoadQuantity
from harness.core.measurement import CONTROL, NEW, OLD
from harness.machine.processes import reap, start
from harness.machine.progress import Progress

SWEPT = (0.25, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1)
"""Rates of the curve, as shares of what the old release cannot exceed."""
WARM_UP_S = 1.0
SLO_SHARE = 0.99
STRIDE = 7919
"""Requests of the file from one block's first to the next one's; a prime, so that blocks meet all of a file."""
ARMS = (OLD, CONTROL, NEW)

Servers = Callable[[int], AbstractContextManager[Mapping[str, int]]]
"""Starts the servers of a round: arm -> port while the context lasts."""
Suspects = Callable[[LoadMeasurement], Collection[str]]
"""Returns the names of quantities that seem worse."""


class GeneratorFailure(Exception):
    """The generator ended: our failure, not the server's. Its text: what it printed last."""


class Generator:
    """The process that sends; one order at a time."""

    def __init__(self, requests: Path, folder: Path) -> None:
        self._printed = (folder / "generator.txt").open("w+b")
        self._samples = folder / "samples"
        command = (sys.executable, "-m", f"{__package__}.generator", str(requests))
        self._process = start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._printed)

    def send(self, order: Order) -> tuple[Sent, tail.Times, tail.Times]:
        """Return what became of the block, seconds to each answer, and seconds by which each request was late."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            line = json.dumps(asdict(order)) + "\n" + str(self._samples) + "\n"
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = b""
        if not answer:
            self._printed.seek(0)
            raise GeneratorFailure(self._printed.read().decode(errors="replace")[-500:])
        times, late = np.fromfile(self._samples).reshape(-1, 2).T
        return Sent(**json.loads(answer)), times, late

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        reap(self._process)
        self._printed.close()


@dataclass(frozen=True)
class Round:
    """What the servers of one round did. ``steady``: arm -> times; ``swept``: arm -> rate -> times; ``ceilings``: arm
    -> answers a second in a closed loop.
    """

    blocks: Sequence[LoadBlock]
    steady: Mapping[str, tail.Times]
    ceilings: Mapping[str, float]
    swept: Mapping[str, Mapping[float, tail.Times]]


class Load:
    """Puts the servers of one round after another under load."""

    def __init__(self, plan: LoadPlan, requests: Path, generator: Generator, progress: Progress) -> None:
        self._plan = plan
        self._generator = generator
        self._progress = progress
        self._recorded = sorted(request.at for request in read_traffic(requests)) if plan.recorded else []
        self.rate = plan.rate
        self._swept: tuple[float, ...] = ()

    def measure(self, servers: Servers, suspects: Suspects) -> LoadMeasurement:
        """Return what the rounds of the plan show; what seems worse in them, after as many that only confirm it.

        Raises what ``servers`` raises, and ``GeneratorFailure``.
        """
        plan = self._plan
        rounds: list[Round] = []

        def add(stage: str, *, sweeps: bool = True) -> None:
            self._progress.stage(stage, plan.rounds)
            for _ in range(plan.rounds):
                rounds.append(self.round(len(rounds), servers, sweeps=sweeps))
                self._progress.step("load")

        add("load")
        first = measurement(plan, self.rate or 0.0, rounds, 0)
        suspected = suspects(first)
        if not suspected:
            return first
        add("load, confirmed by fresh servers", sweeps="within_slo" in suspected)
        return measurement(plan, self.rate or 0.0, rounds, plan.rounds)

    def round(self, number: int, servers: Servers, *, sweeps: bool = True) -> Round:
        """Start fresh servers and return what they did; ``sweeps``: whether at several rates, where a limit is set.

        Raises what ``servers`` raises, and ``GeneratorFailure``.
        """
        plan = self._plan
        drawn = random.Random(number)
        blocks: list[LoadBlock] = []
        steady: dict[str, list[tail.Times]] = {arm: [] for arm in ARMS}
        swept: dict[str, dict[float, tail.Times]] = {arm: {} for arm in ARMS}

        def block(arm: str, kind: LoadKind, rate: float, seed: int, seconds: float = plan.seconds) -> tail.Times:
            with self._progress.running(
                f"round {number + 1}, {arm}: {f'{rate:.0f} requests a second' if rate else 'as many as it answers'}"
            ):
                measured, times = self._block(ports[arm], arm, kind, rate, number, seed, seconds)
            blocks.append(measured)
            return times

        with servers(number) as ports:
            for arm in ARMS:
                block(arm, LoadKind.WARM_UP, 0, 0, min(WARM_UP_S, plan.seconds))
            for arm in _shuffled(drawn):
                block(arm, LoadKind.CEILING, 0, 0)
            ceilings = {one.arm: one.answered / one.wall_s for one in blocks if one.kind is LoadKind.CEILING}
            if self.rate is None:
                self.rate = max(ceilings[OLD] / 2, 1.0)
            self._swept = self._swept or tuple(round(ceilings[OLD] * share, 1) for share in SWEPT if plan.slo_s)
            for turn in range(plan.turns):
                for arm in _shuffled(drawn):
                    steady[arm].append(block(arm, LoadKind.STEADY, self.rate, number * plan.turns + turn))
            for rate in drawn.sample(self._swept, len(self._swept)) if sweeps else ():
                for arm in _shuffled(drawn):
                    swept[arm][rate] = block(arm, LoadKind.SWEEP, rate, number)
        return Round(
            blocks=blocks,
            steady={arm: np.concatenate(times) for arm, times in steady.items()},
            ceilings=ceilings,
            swept=swept,
        )

    def _block(  # noqa: PLR0917 -- called in one place
        self, port: int, arm: str, kind: LoadKind, rate: float, number: int, seed: int, seconds: float
    ) -> tuple[LoadBlock, tail.Times]:
        at: Sequence[float] = ()
        if rate and self._recorded:
            at = arrivals.recorded(self._recorded, rate, seconds, seed)
        elif rate:
            at = arrivals.poisson(rate, seconds, seed)
        order = Order(
            port=port,
            at=tuple(at),
            first=seed * STRIDE,
            connections=self._plan.connections,
            seconds=0.0 if rate else seconds,
            patience_s=self._plan.patience_s,
        )
        sent, times, late = self._generator.send(order)
        measured = LoadBlock(
            arm=arm,
            round=number,
            kind=kind,
            rate=rate,
            sent=len(times),
            **asdict(sent),
            late_p99_s=tail.quantile([late], 0.99) if len(late) else 0.0,
        )
        return measured, times


def measurement(plan: LoadPlan, rate: float, rounds: Sequence[Round], confirming: int) -> LoadMeasurement:
    """Return the quantities of ``rounds``, of which the last ``confirming`` were to confirm what the others showed."""
    steady = [one for item in rounds for one in item.blocks if one.kind is LoadKind.STEADY]
    fresh = (
        {item.name: item.ratio for item in _quantities(plan, rounds[len(rounds) - confirming :])} if confirming else {}
    )
    return LoadMeasurement(
        plan=plan,
        rate=rate,
        rounds=len(rounds),
        quantities=tuple(replace(item, fresh=fresh.get(item.name)) for item in _quantities(plan, rounds)),
        blocks=tuple(one for item in rounds for one in item.blocks),
        curve=tuple(_curve(rounds)),
        late_p99_s=statistics.median(one.late_p99_s for one in steady),
    )


def _quantities(plan: LoadPlan, rounds: Sequence[Round]) -> Iterator[LoadQuantity]:
    new, control, first = ([item.steady[arm] for item in rounds] for arm in (NEW, CONTROL, OLD))
    old = [np.concatenate(pair) for pair in zip(first, control, strict=True)]
    for share in tail.resolved(new):
        yield LoadQuantity(
            name=f"p{100 * share:g}",
            old=tail.quantile(old, share),
            new=tail.quantile(new, share),
            ratio=tail.ratio(old, new, share),
            control=tail.ratio(first, control, share),
        )
    yield _rate(
        "ceiling", len(rounds), lambda arm, kept: statistics.fmean(rounds[place].ceilings[arm] for place in kept)
    )
    swept = [item for item in rounds if item.swept[NEW]]
    if plan.slo_s is not None and swept:
        slo_s = plan.slo_s
        yield _rate(
            "within_slo", len(swept), lambda arm, kept: within(slo_s, [swept[place].swept[arm] for place in kept])
        )


def _rate(name: str, rounds: int, of: Callable[[str, Iterable[int]], float]) -> LoadQuantity:
    """Return a quantity of which more is better; its ratios are old/new, so that above 1 is worse as with times."""

    def either(kept: Iterable[int]) -> float:
        return (of(OLD, kept) + of(CONTROL, kept)) / 2

    everything = range(rounds)
    return LoadQuantity(
        name=name,
        old=either(everything),
        new=of(NEW, everything),
        ratio=tail.jackknife(rounds, either, partial(of, NEW)),
        control=tail.jackknife(rounds, partial(of, OLD), partial(of, CONTROL)),
    )


def within(slo_s: float, swept: Sequence[Mapping[float, tail.Times]]) -> float:
    """Return the highest rate at which 99 of 100 requests are answered within ``slo_s``; 0 where none of ``swept`` is.

    ``swept``: by round, rate -> times. Between the last rate that holds and the first that does not, the share of
    requests within the limit is taken to fall evenly; above the highest rate nothing was measured, and nothing is
    assumed.
    """
    held, share_held = 0.0, 1.0
    for rate in sorted(swept[0]):
        times = np.concatenate([item[rate] for item in swept])
        share = float(np.mean(times <= slo_s))
        if share < SLO_SHARE:
            return held + (rate - held) * (share_held - SLO_SHARE) / (share_held - share) if held else 0.0
        held, share_held = rate, share
    return held


def _curve(rounds: Sequence[Round]) -> Iterator[CurvePoint]:
    for arm in ARMS:
        for rate in sorted(rounds[0].swept[arm]):
            times = [item.swept[arm][rate] for item in rounds if item.swept[arm]]
            yield CurvePoint(arm=arm, rate=rate, p50_s=tail.quantile(times, 0.5), p99_s=tail.quantile(times, 0.99))


def _shuffled(drawn: random.Random) -> list[str]:
    return drawn.sample(ARMS, len(ARMS))
