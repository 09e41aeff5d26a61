"""Asks ``bisect`` about cases of the corpus: one run of both releases, then one search after another."""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.run.plan import make_plan
from harness.run.options import Options, builder_for, golden_store
from harness.diagnosis.bisect.cell import bisect
from harness.domain.diagnosis import BisectAnswer, Bisection
from harness.probing.facts import Effects, Attributed
from harness.probing.provision import sides
from harness.run import pipeline
from harness.store.run_folder import RunDir
from harness.system import clock
from harness.system.progress import Progress
from tests.integration.culprits.cases import Case
from tests.integration.culprits.programs import Group, package
from tests.integration.gate import PROJECT
from tests.integration.libraries.building import library_for, libtorch_of

SOURCE = Path(__file__).with_name("planted.cpp")


@dataclass(frozen=True)
class Stand:
    """What is known of all cases after both releases have run them, and what asks on."""

    facts: Attributed
    effects: Effects

    def ask(self, case: Case) -> Bisection:
        """Return what the search finds; reproducers, cures and rewrites are no part of the corpus."""
        return bisect(case.name, self.facts, self.effects, reproduce=False, cures=False, rewrites=False)


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
    options = Options(
        project=PROJECT,
        overrides={
            "fixtures": str(models),
            "old": "old",
            "new": "new",
            "latency": "quick" if timed else "off",
            "deadlines.floor_s": "2",
        },
        environments=tuple(f"{side}={python}" for side, python in zip(("old", "new"), pythons, strict=True)),
        libraries=libraries(pythons, folder, defective=defective),
        scenarios=("alone", "latency") if timed else ("alone",),
        out=str(folder / "runs"),
    )
    plan = replace(make_plan(options), planted_defects=())
    progress = Progress(enabled=False)
    with (
        RunDir.create(options.reports, "culprits", clock.utc_now()) as run_dir,
        pipeline.provisioned(
            plan,
            sides(plan),
            run_dir,
            builder=builder_for(options, progress),
            progress=progress,
            golden=golden_store(options),
            waivers=(),
            today=clock.today(),
        ) as (effects, first),
    ):
        yield Stand(pipeline.judge(first, effects), effects)


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
