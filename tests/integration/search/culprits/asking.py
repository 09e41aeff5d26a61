"""Asks ``bisect`` about cases of the corpus: one run of both releases, then one search after another."""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.search.bisect.cell import bisect
from harness.core.diagnosis import BisectAnswer, Bisection
from harness.probing.facts import Effects, Attributed
from tests.integration.search.culprits.cases import Case
from tests.integration.search.culprits.programs import Group, package
from tests.integration.search.judging import judged
from tests.integration.artifacts.libraries.building import library_for, libtorch_of

SOURCE = Path(__file__).with_name("planted.cpp")


@dataclass(frozen=True)
class Stand:
    """What is known of all cases after both releases have run them, and what asks on."""

    facts: Attributed
    effects: Effects

    def ask(self, case: Case) -> Bisection:
        """Return what the search finds; reproducers, mitigates and rewrites are no part of the corpus."""
        return bisect(case.name, self.facts, self.effects, reproduce=False, mitigations=False, rewrites=False)


@contextlib.contextmanager
def stood(
    cases: Sequence[Case], pythons: tuple[str, str], folder: Path, *, defective: bool = True, timed: bool = False
) -> Iterator[Stand]:
    """Export the cases in the old release and judge them in the new one.

    Args:
        pythons: interpreters of the old and of the new release.
        folder: an empty one, of this call alone.
        defective: whether the operators misbehave in the new release.
        timed: whether both releases are measured against each other.
    """
    models = folder / "models"
    models.mkdir(parents=True)
    (models / "models.py").write_text(package([case.planting for case in cases]))
    with judged(
        models,
        pythons,
        folder / "runs",
        floor_s=2,
        scenarios=("alone", "latency") if timed else ("alone",),
        libraries=libraries(pythons, folder, defective=defective),
        latency="quick" if timed else "off",
    ) as (facts, effects):
        yield Stand(facts, effects)


def libraries(pythons: tuple[str, str], folder: Path, *, defective: bool = True) -> tuple[str, ...]:
    """Return what names the libraries of both sides: copies, because flaky operators leave marks beside them."""
    named = []
    for side, python in zip(("old", "new"), pythons, strict=True):
        copy = folder / side / "libplanted.so"
        copy.parent.mkdir()
        shutil.copyfile(library_for(libtorch_of(python), SOURCE), copy)
        for mark in ("new", *(("defective",) if defective else ())) if side == "new" else ():
            copy.with_name(f"{copy.name}.{mark}").touch()
        named.append(f"{side}={copy}")
    return tuple(named)


def accused(found: Bisection) -> list[Group]:
    """Return the operators that are named, in groups that show the symptom together, sorted."""
    if found.answer is BisectAnswer.LOADING:
        return sorted((refusal.split()[0],) for refusal in found.refusals)
    if found.reduction is not None and found.reduction.culprits:
        return sorted(tuple(node.operator for node in culprit.nodes) for culprit in found.reduction.culprits)
    faults = found.divergence.culprits if found.divergence is not None else ()
    return sorted((fault.node.operator,) for fault in faults)
