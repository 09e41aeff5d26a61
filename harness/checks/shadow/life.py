"""One life of a server: started, asked everything if it is the first, and stopped under load."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from harness.checks.shadow.client import REPEATED, Answers, ask_all, stop_under_load
from harness.checks.shadow.server import Look, Prepared, running
from harness.core.shadow import Life, ServerSettings
from harness.core.traffic import TrafficRequest
from harness.machine.progress import Progress

AT_ONCE = 64  # different requests that are in flight at a stop


@dataclass(frozen=True, kw_only=True)
class Shadowing:
    """What both sides of a run share.

    Attributes:
        requests: gives them anew, none where there are none.
        look: reads off processes what they do; ``limit_bytes``: of a server's memory.
    """

    settings: ServerSettings
    requests: Callable[[], Iterable[TrafficRequest]]
    look: Look
    limit_bytes: int | None
    progress: Progress


def live(run: Shadowing, side: Prepared, name: str, number: int, answers: Answers | None) -> tuple[Life, list[str]]:
    """Return a life and the command of it; ``answers``: of this side, None where nothing is asked.

    ``number``: of the life, from 1; only in the first is everything asked.
    """
    settings, progress = run.settings, run.progress
    log = side.folder / f"server-{number}.log"
    with running(settings, side, log, run.look, run.limit_bytes) as server:
        progress.stage(f"{name}: {'get ready' if number == 1 else 'get ready again'}")
        life = server.wait_until_ready()
        if life.ready_s is None:
            return life, server.command
        if number == 1 and answers is not None:
            progress.stage(f"{name}: requests", answers.count + max(answers.count, REPEATED))
            asked = ask_all(
                server, run.requests, answers, deadline_s=settings.request_s, step=lambda: progress.step(name)
            )
            life = replace(life, asked=asked.count, last=asked.last, growth=asked.growth, looked=server.looked)
            if asked.ended is not None:
                return replace(life, **server.end_facts(asked.ended)), server.command
        progress.stage(f"{name}: stop")
        usual = zip(run.requests(), answers.statuses if answers is not None else (), strict=False)
        load = [(request, status) for request, status in itertools.islice(usual, AT_ONCE) if status]
        stop = stop_under_load(server, load, deadline_s=min(settings.request_s, settings.stop_deadline_s))
        return replace(life, stop=stop, log=server.log_lines() if stop.code is None else ()), server.command
