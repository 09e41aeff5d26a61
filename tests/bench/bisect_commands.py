"""``bisect`` as a user types it, timed from the first process to the answer."""

import time
from dataclasses import dataclass
from pathlib import Path

from harness.domain.diagnosis import Bisection
from harness.store import codec
from tests.integration.culprits.asking import accused, libraries
from tests.integration.culprits.cases import CASES
from tests.integration.culprits.programs import package
from tests.integration.gate import PROJECT, harness

DEADLINE_S = 600


@dataclass(frozen=True)
class Numeric:
    """What was found in a program of a thousand nodes."""

    right: bool
    nodes: int
    probes: tuple[int, int]
    seconds: float


@dataclass(frozen=True)
class Hang:
    """What was found for the hang: the size of the smallest program, of how many nodes, and what cures it."""

    nodes: int
    of: int
    cures: int
    rewrites: int
    seconds: float


def thousand_nodes(pythons: tuple[str, str], folder: Path) -> Numeric:
    """ProgramSearch for the operator that answers other numbers in a long program."""
    case = next(case for case in CASES if case.name == "numbers_long")
    models = folder / "models"
    models.mkdir(parents=True)
    (models / "models.py").write_text(package([case.planting]))
    loaded = [word for name in libraries(pythons, folder) for word in ("--library", name)]
    found, seconds = _bisect(pythons, folder, "--fixtures", str(models), *loaded)
    divergence = found.divergence
    nodes, probes = (divergence.nodes, divergence.probes) if divergence is not None else (0, (0, 0))
    return Numeric(right=accused(found) == case.guilty, nodes=nodes, probes=probes, seconds=seconds)


def natural_hang(pythons: tuple[str, str], folder: Path) -> Hang:
    """ProgramSearch for what hangs in the second call once CPU fusion is on (docs/evidence.md#natural-hang)."""
    fixtures = str(PROJECT / "tests" / "integration" / "hangs")
    model = ("--model", "runaway_fusion", "--new-profile", "cpu_fusion")
    found, seconds = _bisect(pythons, folder, "--fixtures", fixtures, *model)
    reduction = found.reduction
    smallest = (
        min((len(culprit.nodes) for culprit in reduction.culprits if culprit.minimal), default=0) if reduction else 0
    )
    return Hang(
        nodes=smallest,
        of=reduction.nodes if reduction is not None else 0,
        cures=sum(cure.cures and bool(cure.prices) for cure in found.cures),
        rewrites=sum(rewritten.cures and rewritten.loads_in_old for rewritten in found.rewrites),
        seconds=seconds,
    )


def _bisect(pythons: tuple[str, str], folder: Path, *arguments: str) -> tuple[Bisection, float]:
    named = [
        word for side, python in zip(("old", "new"), pythons, strict=True) for word in ("--env", f"{side}={python}")
    ]
    begin = time.monotonic()
    done = harness("bisect", *named, *arguments, "--out", str(folder / "runs"), timeout_s=DEADLINE_S)
    seconds = time.monotonic() - begin
    results = sorted((folder / "runs").glob("*/bisect.json"))
    assert results, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return codec.read_json(results[-1], Bisection), seconds
