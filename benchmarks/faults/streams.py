"""Streams, signals, disks and clocks of a run on a stub of torch: a documented exit code, at most one line, nothing lost.

The clock of a run is set by libfaketime (``apt-get install faketime``): a clock that is really set is everybody's.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.core.errors import ExitCode
from harness.store.run_folder import find_run
from tests.programs import cli, stub
from tests.programs.cli import Line
from tests.programs.disks import fill, small_disk

REDIRECTIONS = ("<&-", ">&-", "2>&-", ">&- 2>&-", ">/dev/full", "2>/dev/full", "> >(true)", "2> >(true)")
STORMS = (("TERM",) * 4, ("INT", "TERM", "INT"), ("HUP",), ("TERM", "HUP", "INT", "TERM"))
DISKS = 30
CLOCKS = (-1, 1)
COUNT = len(REDIRECTIONS) + len(STORMS) + DISKS + len(CLOCKS) + 2
SELECTED = ("--fixtures", str(stub.MODELS), "-k", "well_a or dies_in_new")
GONE_S = 2.0

Case = tuple[str, Callable[[Line], list[str]]]


def attack(count: int = COUNT, seed: int = 18) -> list[str]:
    """Return what went wrong in the first ``count`` cases, one line each."""
    with tempfile.TemporaryDirectory(prefix="streams-") as folder:
        line = made(Path(folder))
        begin = time.monotonic()
        line.run()
        lasts_s, judgement = time.monotonic() - begin, line.judgement()
        wrong = []
        for number, (case, of) in enumerate(cases(lasts_s, judgement, random.Random(seed))[:count]):
            attacked = replace(line, project=line.project.with_name(f"{number:02}"))
            wrong += [f"{case}: {what}" for what in attempted(attacked, of, judgement)]
        return wrong


def made(folder: Path) -> Line:
    """Return the command line of a run in environments of its own."""
    old, new = (stub.make_environment(folder / torch, version=torch).interpreter for torch in ("2.1.2", "2.6.0"))
    return Line(folder / "whole", old, new, SELECTED)


def cases(lasts_s: float, judgement: object, chance: random.Random) -> list[Case]:
    """Return (what is done, how) of each case.

    Args:
        lasts_s: of a run to which nothing is done.
        judgement: likewise.
    """
    found: list[Case] = [(words, partial(redirected, words=words)) for words in REDIRECTIONS]
    for names in STORMS:
        found.append((" ".join(names), partial(signalled, names=names, moment_s=chance.uniform(0.5, lasts_s))))
    for number in range(DISKS):
        what, moment_s = ("inodes_left", "bytes_left")[number % 2], chance.uniform(0.0, lasts_s)
        full = partial(filled, what=what, moment_s=moment_s, judgement=judgement)
        found.append((f"no {what} after {moment_s:.1f} s", full))
    for hours in CLOCKS:
        moment_s = chance.uniform(0.0, lasts_s)
        set_ = partial(clock_set, hours=hours, moment_s=moment_s, judgement=judgement)
        found.append((f"the clock set by {hours} h after {moment_s:.1f} s", set_))
    return [*found, ("resumed while it runs", refused), ("another run beside it", partial(beside, judgement=judgement))]


def attempted(line: Line, of: Callable[[Line], list[str]], judgement: object) -> list[str]:
    """Do to a run what a case says, go on with it, and return what went wrong."""
    wrong = of(line)
    if not stub.eventually(lambda: not stub.processes_naming(line.project), within_s=GONE_S):
        wrong.append(f"alive after {GONE_S:.0f} s: {list(stub.processes_naming(line.project).values())}")
    return wrong or lost(line, judgement)


def lost(line: Line, judgement: object) -> list[str]:
    """Go on with the newest run, if one has begun, and return what it concludes otherwise."""
    if not any(line.reports.glob("*/plan.json")):
        return []
    newest = find_run(line.reports, "last")
    if not (newest / "report.json").exists():
        done = line.run("--resume", "last")
        if wrong := said(done.returncode, done.stderr):
            return wrong
    found = cli.judgement_of(cli.read_report(newest))
    return [] if found == judgement else [f"another judgement: {found}"]


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
    return said(done.returncode, done.stderr)


def filled(line: Line, what: str, moment_s: float, judgement: object) -> list[str]:
    """Run on a disk that is full from some moment on, free it, and go on."""
    with small_disk(line.project) as disk:
        process = line.start()
        time.sleep(moment_s)
        filler = fill(disk, **{what: 0})
        done = cli.finish(process)
        shutil.rmtree(filler)
        return said(done.returncode, done.stderr) or lost(line, judgement)


def clock_set(line: Line, hours: int, moment_s: float, judgement: object) -> list[str]:
    """Set the clock of a run in the middle of it, then of a killed second one to the hour between: that is the last."""
    try:
        (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    except ValueError:
        return ["not tried: libfaketime is not installed"]
    line.project.mkdir()
    clock = line.project / "clock"
    clock.write_text("+0\n")
    # files keep the times that the kernel gives them, and monotonic clocks are never set
    how = {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
    environment = os.environ | how | {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock)}
    process = cli.started(line.command(), environment)
    time.sleep(moment_s)
    clock.write_text(f"{hours:+d}h\n")
    done = cli.finish(process)
    first = find_run(line.reports, "last")
    wrong = said(done.returncode, done.stderr) + lost(line, judgement)
    clock.write_text("-2h\n")
    second = cli.started(line.command(), environment)
    stub.eventually(lambda: len(list(line.reports.glob("*/plan.json"))) > 1)
    second.send_signal(signal.SIGKILL)
    second.communicate()
    return [*wrong, "the newest run is not the last"] if find_run(line.reports, "last") == first else wrong


def refused(line: Line) -> list[str]:
    """Go on with a run while it runs."""
    first = line.start()
    line.wait_for_results(1, first)
    second = line.run("--resume", "last")
    first_done = cli.finish(first)
    wrong = said(first_done.returncode, first_done.stderr) + said(second.returncode, second.stderr)
    return wrong if second.returncode == ExitCode.CONFIGURATION else [*wrong, f"not refused: {second.returncode}"]


def beside(line: Line, judgement: object) -> list[str]:
    """Begin two runs of one project at once."""
    wrong = []
    for process in [line.start(), line.start()]:
        done = cli.finish(process)
        wrong += said(done.returncode, done.stderr)
    found = [cli.judgement_of(cli.read_report(path.parent)) for path in line.reports.glob("*/plan.json")]
    return wrong if found == [judgement] * 2 else [*wrong, f"other judgements: {found}"]


if __name__ == "__main__":
    print(*attack(int(sys.argv[1])), sep="\n")
