"""Waits for a process to hang, and then takes evidence: for a sidecar."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness.apps.attach.attach import attach
from harness.apps.attach.find import Asked, NotThere
from harness.apps.attach.probe import probe
from harness.core.attach import Attachment, ProcessState
from harness.core.errors import ConfigError
from harness.machine.clock import utc_now
from harness.project import Project
from harness.report.formats import ATTACH
from harness.verdict.attach import HEALTHY, hung

EVERY_S = 5.0
# What does not run yet, or starts anew, is looked for so often.
ABSENT_S = 1.0
# What may end by itself must last for so long.
LASTING_S = 30.0
MOST_FILES = 10
PREFIX = "attach-"
NOT_LASTING = (*HEALTHY, ProcessState.UNKNOWN)


def watch(
    project: Project,
    find: Callable[[], Asked],
    limit_s: float,
    *,
    window_s: float,
    out: Path | None,
    may_stop: bool,
    comes_back: bool,
) -> Attachment:
    """Return what the processes did when they hung, or at the end of ``limit_s``; ``out`` gets a file of it.

    Two looks in a row have to see a hang; what is busy, starved or waits, for ``LASTING_S``. ``find`` is asked before
    each look; ``comes_back``: whether to wait for what it does not find, or finds no more.

    Raises:
        ConfigError: the processes are not there and need not come back, not even at the end, or ``out`` cannot be
            written.
    """
    if limit_s <= 0:
        raise ConfigError(f"--watch {limit_s:g} is no time", "name the seconds to wait at most")
    if out is not None:
        _folder(out)
    end = time.monotonic() + limit_s
    since: float | None = None
    was_hung = False
    project.progress.stage(f"watch for {limit_s:g} s")
    while True:
        try:
            asked = find()
            look = probe(asked, window_s)
        except NotThere:
            if not comes_back or time.monotonic() >= end:
                raise
            since, was_hung = None, False
            project.progress.tick("not there, or not yet")
            time.sleep(max(min(ABSENT_S, end - time.monotonic()), 0.0))
            continue
        now = time.monotonic()
        since = None if look.processes[0].state in NOT_LASTING else since or now
        hangs = hung(look)
        if (hangs and was_hung) or (since is not None and now - since >= LASTING_S):
            evidence = attach(project, asked, window_s=window_s, may_stop=may_stop)
            if out is not None:
                print(f"evidence: {_write(evidence, out)}", file=sys.stderr)
            return evidence
        if now >= end:
            project.progress.finish()
            return look
        was_hung = hangs
        project.progress.tick(str(look.processes[0].state))
        time.sleep(max(min(0.0 if hangs else EVERY_S, end - time.monotonic()), 0.0))


def _folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out}: {error.strerror}", "name a folder that can be written") from None


def _write(evidence: Attachment, out: Path) -> Path:
    name = f"{PREFIX}{utc_now():%Y%m%dT%H%M%S}-{evidence.processes[0].pid}.json"
    try:
        (out / name).write_text(ATTACH.render("json", evidence))
        for old in sorted(out.glob(f"{PREFIX}*.json"))[:-MOST_FILES]:
            old.unlink()
    except OSError as error:
        raise ConfigError(f"{out / name} cannot be written: {error.strerror}", "free space, or name another") from None
    return out / name
