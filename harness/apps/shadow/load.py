"""Puts a team's server under load in both releases, with fresh servers in every round."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.checks.load.measure import Generator, Load
from harness.checks.shadow.life import Shadowing
from harness.checks.shadow.server import Prepared, running
from harness.core.load import LoadFailure, LoadMeasurement
from harness.core.measurement import CONTROL, NEW, OLD
from harness.core.shadow import Ended, Life
from harness.verdict.load import suspects

ARMS = {OLD: OLD, CONTROL: OLD, NEW: NEW}
"""Each server of a round, and the side that it is of."""


class NotReady(Exception):
    """A server of a round was never ready; ``life`` is what became of it."""

    def __init__(self, arm: str, life: Life) -> None:
        super().__init__(arm)
        self.arm, self.life = arm, life


def put_under_load(
    run: Shadowing, sides: Mapping[str, Prepared], requests: Path
) -> tuple[LoadMeasurement | None, LoadFailure | None]:
    """Return what was measured, or why nothing was.

    As many rounds as the settings say; as many again where something seems worse, which only fresh servers confirm.
    """
    plan = run.settings.load
    assert plan is not None

    @contextlib.contextmanager
    def servers(number: int) -> Iterator[Mapping[str, int]]:
        with contextlib.ExitStack() as opened:
            started = {
                arm: opened.enter_context(
                    running(
                        run.settings, sides[side], sides[side].folder / f"load-{arm}.log", run.look, run.limit_bytes
                    )
                )
                for arm, side in ARMS.items()
            }
            for arm, server in started.items():
                with run.progress.running(f"round {number + 1}, {arm}: get ready"):
                    life = server.wait_until_ready()
                if life.ready_s is None:
                    raise NotReady(arm, life)
            yield {arm: server.port for arm, server in started.items()}

    with Generator(requests, sides[NEW].folder) as generator:
        try:
            return Load(plan, requests, generator, run.progress).measure(servers, suspects), None
        except NotReady as error:
            return None, LoadFailure(arm=error.arm, ended=(error.life.ended or Ended.ITSELF).value, log=error.life.log)
