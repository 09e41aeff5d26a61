"""A new release under switches, and what a run makes of a red cell with it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.search.mitigation.mitigate import mitigate
from harness.core.outcome import Outcome, Status
from harness.core.plan import Cell, LatencyBudget
from harness.core.probe import ProbeRequest, ProbeResult
from harness.core.verdict import CellVerdict, Finding, Mitigation
from harness.probing.facts import Decided
from harness.artifacts.tensors.outputs import Outputs
from tests.unit.builders.stages import Runner, effects, known, planned, probed, result
from tests.unit.builders.tensors import write_answers

GOLDEN = Outputs(calls={("example", 0): ["int", 1]}, buffer=b"")
WORKS = {"requested": False, "read_back": False, "supported": True}
SWITCHES = {"profiling": WORKS, "texpr_fuser": WORKS}


class Release:
    """The new release under a switch: ``alone`` and ``grouped`` say what becomes of a model, or what it answers."""

    def __init__(
        self,
        folder: Path,
        *,
        alone: Mapping[str, Outcome | int] | None = None,
        grouped: Mapping[str, Outcome | int] | None = None,
        switches: Mapping[str, object] | None = None,
    ) -> None:
        self._folder, self._switches = folder, switches if switches is not None else SWITCHES
        self._alone, self._grouped = alone or {}, grouped or {}
        self.runner = Runner(self._answer)

    @property
    def groups(self) -> list[ProbeRequest]:
        """The concurrent initializations that were asked of the new release."""
        return [item for item in self.runner.asked if item.script is not None and item.side == "new"]

    def _answer(self, request: ProbeRequest) -> ProbeResult:
        table = self._grouped if request.script is not None else self._alone
        if request.side == "old":
            table = {}
        said = {name: table.get(name, 1) for name in (run.artifact.model for run in request.runs)}
        directory = self._folder / str(len(self.runner.asked))
        return ended(said, directory, side=request.side, data={"switches": self._switches})


def ended(said: Mapping[str, Outcome | int], directory: Path, **more: Any) -> ProbeResult:
    """Return a probe in which each model ended so, or answered that number."""
    answers = {name: ["int", one] for name, one in said.items() if not isinstance(one, Outcome)}
    results = [result(name, one if isinstance(one, Outcome) else Outcome.COMPLETED) for name, one in said.items()]
    return probed(*results, directory=write_answers(directory, answers), **more)


def verdict(facts: Decided, name: str, scenario: str, status: Status = Status.PASS, kind: str = "") -> CellVerdict:
    findings = (Finding(kind=kind, message=f"about {kind}"),) if kind else ()
    cell = Cell(name, scenario).id
    return CellVerdict(cell=cell, model=name, scenario=scenario, status=status, findings=findings)


def red(scenario: str = "alone", *, neighbour: Status = Status.PASS, budget: str = "off") -> Decided:
    """Return facts in which ``m`` hangs in ``scenario`` and its neighbour ``n`` has the status ``neighbour``."""
    facts = known(planned("m", "n", settings={"latency": LatencyBudget(budget=budget)}))
    baselines = {name: replace(found, golden=GOLDEN) for name, found in facts.baselines.items()}
    verdicts = {
        "m": tuple(
            verdict(facts, "m", item, Status.FAIL if item == scenario else Status.PASS, "hang" * (item == scenario))
            for item in dict.fromkeys(("alone", "concurrent", scenario))
        ),
        "n": (verdict(facts, "n", "alone"), verdict(facts, "n", "concurrent", neighbour)),
    }
    return replace(facts, baselines=baselines, verdicts=verdicts)


def tried(facts: Decided, release: Release) -> dict[str, Mitigation]:
    found = mitigate(facts, effects(release.runner)).mitigations
    assert set(found) == {"m"}
    return {item.name: item for item in found["m"]}
