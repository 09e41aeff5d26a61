"""Streams, signals and disks of a run on a stub of torch: a documented exit code, at most one line, nothing lost.

Not here: a clock that is set, which would be that of the whole machine.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.errors import ExitCode
from tests.programs import cli, stub
from tests.programs.cli import Line
from tests.programs.disks import fill, small_disk

REDIRECTIONS = ("<&-", ">&-", "2>&-", ">&- 2>&-", ">/dev/full", "2>/dev/full", "> >(true)", "2> >(true)")
STORMS = (("TERM",) * 4, ("INT", "TERM", "INT"), ("HUP",), ("TERM", "HUP", "INT", "TERM"))
DISKS = 30
COUNT = len(REDIRECTIONS) + len(STORMS) + DISKS + 1
SELECTED = ("--fixtures", str(stub.MODELS), "-k", "well_a or dies_in_new")


def attack(count: int = COUNT, seed: int = 18) -> list[str]:
    """Return what went wrong in the first ``count`` cases, one line each."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="streams-") as name:
        folder = Path(name)
        old, new = (stub.make_environment(folder / torch, version=torch).interpreter for torch in ("2.1.2", "2.6.0"))

        def line(project: Path) -> Line:
            return Line(project, old, new, SELECTED)

        whole = line(folder / "whole")
        begin = time.monotonic()
        whole.run()
        lasts_s, judgement = time.monotonic() - begin, whole.judgement()
        cases: list[tuple[str, Callable[[Line], list[str]]]] = []
        cases += [(words, partial(redirected, words=words)) for words in REDIRECTIONS]
        for names in STORMS:
            moment_s = chance.uniform(0.5, lasts_s)
            cases.append((" ".join(names), partial(signalled, names=names, moment_s=moment_s)))
        for number in range(DISKS):
            what, moment_s = ("inodes_left", "bytes_left")[number % 2], chance.uniform(0.0, lasts_s)
            full = partial(filled, what=what, moment_s=moment_s, judgement=judgement)
            cases.append((f"no {what} after {moment_s:.1f} s", full))
        cases.append(("a second run", refused))
        wrong = []
        for number, (case, of) in enumerate(cases[:count]):
            attacked = line(folder / str(number))
            found = of(attacked) or lost(attacked, judgement)
            wrong += [f"{case}: {what}" for what in found]
        return wrong


def lost(line: Line, judgement: object) -> list[str]:
    """Go on with a run that has begun, and return what it concludes otherwise."""
    if not any(line.reports.glob("*/plan.json")):
        return []
    if not any(line.reports.glob("*/report.json")):
        done = line.run("--resume", "last")
        if wrong := said(done.returncode, done.stderr):
            return wrong
    return [] if line.judgement() == judgement else [f"another judgement: {line.judgement()}"]


def said(code: int, errors: str) -> list[str]:
    """Return what is wrong with how a command has ended."""
    lines = [text for text in errors.splitlines() if text.startswith("error:")]
    wrong = [] if code in list(ExitCode) and code != ExitCode.INTERNAL else [f"exit code {code}: {errors[-300:]}"]
    return wrong + (["a traceback"] if "Traceback" in errors else []) + ([str(lines)] if len(lines) > 1 else [])


def redirected(line: Line, words: str) -> list[str]:
    """Run with standard streams that bash redirects."""
    line.project.mkdir()
    done = cli.finish(cli.started(["bash", "-c", f'"$@" {words}', "bash", *line.command()]))
    return said(done.returncode, done.stderr)


def signalled(line: Line, names: tuple[str, ...], moment_s: float) -> list[str]:
    """Send signals to a run, one after another, in the middle of it."""
    process = line.start()
    time.sleep(moment_s)
    for name in names:
        subprocess.run(["kill", f"-{name}", str(process.pid)], check=False, capture_output=True)
        time.sleep(0.02)
    done = cli.finish(process, within_s=60.0)
    left = not stub.eventually(lambda: not stub.processes_naming(line.project), within_s=2.0)
    return said(done.returncode, done.stderr) + (["a process is left"] if left else [])


def filled(line: Line, what: str, moment_s: float, judgement: object) -> list[str]:
    """Run on a disk that is full from some moment on, free it, and go on."""
    with small_disk(line.project) as disk:
        process = line.start()
        time.sleep(moment_s)
        filler = fill(disk, **{what: 0})
        done = cli.finish(process)
        shutil.rmtree(filler)
        return said(done.returncode, done.stderr) or lost(line, judgement)


def refused(line: Line) -> list[str]:
    """Start a run in the folder of one that still runs."""
    first = line.start()
    line.wait_for_results(1, first)
    second = line.run("--resume", "last")
    first_done = cli.finish(first)
    wrong = said(first_done.returncode, first_done.stderr) + said(second.returncode, second.stderr)
    return wrong if second.returncode == ExitCode.CONFIGURATION else [*wrong, f"not refused: {second.returncode}"]


if __name__ == "__main__":
    print(*attack(int(sys.argv[1])), sep="\n")
