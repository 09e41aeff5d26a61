"""``attach``: a process that runs already: does it hang, and what does it wait for."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

# Columns: what a log keeps of a probe is not wrapped.
ONE_LINE = 1000
HELP = CommandHelp(
    "attach",
    "say what a running server does that hangs now: blocked, busy, starved, idle; who holds what",
    "Look at a process that runs already, Python or C++, and say within 5 s whether it hangs, which threads matter,"
    " what they wait for and who holds it. The process is not ended, sent a signal or changed; it stands still only"
    " while its stacks are taken, for as long as the answer says.",
    (
        ("PID", "what the process does now; its prefork children too"),
        ("--port 8080", "whoever listens there; also --name NAME, --container ID"),
        ("--port 8080 --probe", "for a liveness probe: 1 if it hangs, else 0"),
        ("PID --watch 3600 --out DIR", "wait up to an hour for the hang"),
        ("PID --no-stop --format json", "what /proc tells, for programs"),
        ("--system --pid PID", "which other process holds it up, when it stalls now and then"),
    ),
    "0 works or is idle, 1 hangs (blocked, stopped, a zombie), 4 busy, starved, or it cannot be told",
    "guide/attach.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.apps.attach import system
    from harness.report.formats import ATTACH

    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("pid", nargs="?", metavar="PID", help="the process, with its prefork children")
    which.add_argument("--name", metavar="NAME", help="all processes of this name, or whose command line has it")
    which.add_argument("--port", type=int, metavar="PORT", help="the processes that listen on this TCP port")
    which.add_argument("--container", metavar="ID", help="the processes of this container, by the start of its id")
    system.add_options(command, which)
    command.add_argument(
        "--window", type=float, default=2.0, metavar="SECONDS", help="how long to look before judging (default: 2)"
    )
    command.add_argument(
        "--no-stop", dest="stop", action="store_false", help="take no stacks: the process does not stand still at all"
    )
    command.add_argument(
        "--gdb",
        action="store_true",
        help="take native stacks by gdb where eu-stack is not installed: the process stands still for up to 40 s",
    )
    how = command.add_mutually_exclusive_group()
    how.add_argument("--probe", action="store_true", help="exit code 1 if it hangs, else 0; stops nothing")
    how.add_argument(
        "--watch",
        type=float,
        metavar="SECONDS",
        help="wait so long for the hang, take evidence, and end with 1, else with 0",
    )
    command.add_argument(
        "--absent",
        choices=("pass", "fail"),
        help="with --probe: what it is that nobody is there, as while a server still loads (default: pass)",
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where the evidence of --watch goes (the 10 latest are kept), or the trace of --system",
    )
    add_format(command, ATTACH.names)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.attach.find import Asked, NotThere, asked_for
    from harness.core.errors import ConfigError
    from harness.report.formats import ATTACH

    if parsed.system:
        from harness.apps.attach import system

        if parsed.probe or parsed.watch is not None or not parsed.stop:
            raise ConfigError(
                "--system with --probe, --watch or --no-stop", "it records all processes and stops none: leave them out"
            )
        return system.run(parsed)
    if parsed.absent is not None and not parsed.probe:
        raise ConfigError("--absent without --probe", "add --probe, or leave it out")
    if parsed.held_up is not None:
        raise ConfigError("--pid without --system", f"name the process itself: attach {parsed.held_up}")
    if not 0.5 <= parsed.window <= 600:
        raise ConfigError(f"--window {parsed.window:g} is no such time", "name seconds from 0.5 to 600")
    if parsed.out is not None and parsed.watch is None:
        raise ConfigError("--out without --watch", "add --watch SECONDS, or send --format json to a file")
    if parsed.gdb and (parsed.probe or parsed.watch is not None or not parsed.stop):
        raise ConfigError("--gdb with --probe, --watch or --no-stop", "name it alone: it stops the process for long")

    def find() -> Asked:
        return asked_for(pid=parsed.pid, name=parsed.name, port=parsed.port, container=parsed.container)

    if parsed.probe:
        from harness.apps.attach.probe import probe
        from harness.checks.attach.look import may_trace
        from harness.checks.attach.rights import why_not
        from harness.core.outcome import Status
        from harness.verdict.exit_codes import exit_code

        try:
            attached = probe(find(), parsed.window)
        except NotThere as error:
            code = Status.FAIL if parsed.absent == "fail" else Status.PASS
            print(
                f"warning: {error}; exit code {exit_code(code)}, by --absent {parsed.absent or 'pass'}", file=sys.stderr
            )
            return code
        for process in [process for process in attached.processes if not may_trace(process)][:1]:
            print(f"warning: {why_not(process)}; this probe sees few hangs", file=sys.stderr)
    elif parsed.watch is not None:
        from harness.apps.attach.watch import watch

        attached = watch(
            project,
            find,
            parsed.watch,
            window_s=parsed.window,
            out=parsed.out,
            may_stop=parsed.stop,
            comes_back=parsed.pid is None,
        )
    else:
        from harness.apps.attach.attach import attach

        attached = attach(project, find(), window_s=parsed.window, may_stop=parsed.stop, gdb=parsed.gdb)
    say(ATTACH.render(parsed.format, attached, replace(shown(), width=ONE_LINE) if parsed.probe else shown()))
    return attached
