"""Golden records that somebody accepted."""

import datetime as dt
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.golden import Source
from harness.core.probe import ServingProfile
from harness.artifacts.golden_records import GoldenStore, Why
from tests.unit.builders.requests import PRODUCER, float32, golden_outputs, write_artifact

DAY = dt.date(2026, 11, 22)
ANN = "Ann <ann@example.com>"
STEPS = ("mkdir", "rename", "replace", "rmdir", "unlink")
"""Of ``os``: whatever changes a folder."""


def why(reason: str = "checked by hand", by: str = ANN) -> Why:
    """Return who decides, when and why."""
    return Why(reason=reason, by=by, on=DAY)


def source(run: str) -> Source:
    """Return where a record comes from."""
    return Source(run=run, profile=ServingProfile())


def accept(store: GoldenStore, *models: str, reason: str = "checked by hand") -> None:
    """Accept waiting proposals."""
    store.accept(models, why(reason))


def propose(folder: Path, model: str, *values: Any, run: str = "run", torch: str = "2.1.2+cu121") -> GoldenStore:
    """Propose one call per value to the store in ``folder / "golden"``; return the store."""
    store = GoldenStore(folder / "golden")
    outputs = golden_outputs(*(values or (float32(1, 2, 3),)))
    artifact = write_artifact(folder / "exports" / model, model)
    store.propose(artifact, outputs, replace(PRODUCER, torch=torch), "cpu", source(run))
    return store


def three(folder: Path) -> GoldenStore:
    """Return a store with the accepted records ``a``, ``b`` and ``m``."""
    store = GoldenStore(folder / "golden")
    for model in ("a", "b", "m"):
        propose(folder, model, float32(1, 2, 3))
    accept(store, "a", "b", reason="the first two")
    accept(store, "m")
    return store


class Killed(BaseException):
    """The end of the process: nothing that it does afterwards happens."""


def killed_after(steps: int, decision: Callable[[], object]) -> bool:
    """Make a decision, killed after so many steps; return whether it was."""
    done = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal done
            if done >= steps:
                raise Killed
            done += 1
            return real(*arguments, **named)

        return step

    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, counted(getattr(os, name)))
        try:
            decision()
        except Killed:
            return True
    return False
