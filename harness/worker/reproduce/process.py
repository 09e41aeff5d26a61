"""Does a case in processes of its own, each under a deadline, and says good, bad or untestable.

A part of the ``reproduce.py`` of a reproducer: ``harness/search/reproduce/files.py`` puts the parts into one file.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from gate_worker.reproduce.endings import BAD, GOOD, UNTESTABLE, ended, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
INTERRUPTED = 130
WORDS = {GOOD: "good", BAD: "bad", UNTESTABLE: "untestable"}
# Until torch is there the deadline of the case does not count: a cold import takes as long as the disk does.
START_S = 300.0
LOOK_S = 0.02
# How libraries end that are files.
FILES = (".so", ".py")


class Untestable(Exception):
    """Why nothing can be said here."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(UNTESTABLE, "untestable: %s\n" % message)  # argparse's own 2 would be "bad" to git bisect


def main(work):
    """Return the exit code; ``work(torch, case, order, report)`` does the case in the child and returns its ending."""
    try:
        options = parsed()
        with open(os.path.join(HERE, "case.json"), encoding="utf-8") as stream:
            case = json.load(stream)
        return child(work, case, options.child) if options.child else judged(case, options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Untestable as why:
        say("untestable: %s" % why)
    except Exception as error:  # Python's own exit code for it would be "bad"
        say("untestable: the script itself failed: %s: %s" % (type(error).__name__, error))
    return UNTESTABLE


def say(text):
    """Print one line that steers no terminal; a reader that is gone, or knows ASCII only, does not change the code."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(shown.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parsed():
    parser = Parser(
        description="Exit code 0: good, the recorded failure does not show. 1: bad, it does. 125: cannot be tested "
        "here. As 'git bisect run' asks for."
    )
    parser.add_argument("--runs", type=int, help="how many clean runs make it good, each in a process of its own")
    parser.add_argument("--deadline", type=float, metavar="S", help="seconds that a load or a call may take")
    parser.add_argument("--profile", choices=("old", "new"), default="new", help="whose settings it runs under")
    parser.add_argument("--switch", action="append", default=[], metavar="NAME=VALUE", help="a setting, on top of them")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="an environment variable")
    parser.add_argument("--library", action="append", default=[], metavar="LIB", help="an operator library")
    parser.add_argument("--artifact", metavar="FILE", help="the archive, where the folder does not hold it")
    parser.add_argument("--any", action="store_true", help="any other failure is bad as well, and not untestable")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def judged(case, options):
    """Run until the failure shows or has stayed away often enough; print what happened; return the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the child is killed and its folder removed then, too
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored by whoever started this, every child would end with 0
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    order, env, deadline_s = ordered(case, options)
    runs = max(1, options.runs or case["runs"])
    recorded = case.get("recorded") or "good in torch %s, bad in torch %s" % (case["good"], case["bad"])
    say("%s; recorded as %s" % (case["title"], recorded))
    code, text, release = GOOD, "", ""
    for run in range(runs):
        ending = one_run(order, env, deadline_s)
        code, text = verdict(case["symptom"], ending, options.any)
        if ending.get("torch", release) != release:
            release = ending["torch"]
            say("torch %s, Python %s" % (release, sys.version.split()[0]))
        if "measured" in ending:
            say("measured %s" % json.dumps(ending["measured"], sort_keys=True))
        if runs > 1:
            say("run %d of up to %d: %s" % (run + 1, runs, text))
        if code != GOOD:
            break
    say("%s: %s" % (WORDS[code], text))
    return code


def ordered(case, options):
    """Return (what the child is told, its environment variables, how long one of its phases may last)."""
    profile = json.loads(json.dumps(case["profiles"][options.profile]))
    profile["switches"].update({name: switch_value(text) for name, text in pairs(options.switch)})
    env = dict(os.environ, **profile["env"])
    env.update(pairs(options.env))
    artifact = case.get("artifact")
    if artifact is not None:
        kept = os.path.join(HERE, artifact["file"]) if artifact["file"] else None
        chosen = options.artifact or kept
        if chosen is None:
            raise Untestable("the archive is not in this folder: name it with --artifact (%s)" % artifact["note"])
        artifact = os.path.abspath(chosen)
    order = {"profile": profile, "artifact": artifact, "libraries": libraries(profile["libraries"], options.library)}
    return order, env, options.deadline or case["deadline_s"]


def pairs(texts):
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise Untestable("%r is not NAME=VALUE" % text)
        yield name, value


def switch_value(text):
    named = {"on": True, "true": True, "off": False, "false": False}
    return named[text.lower()] if text.lower() in named else int(text)


def libraries(needed, given):
    """Return what is loaded first: modules by name, files where ``--library`` says that they are."""
    found = []
    for name in needed:
        at = [path for path in given if os.path.basename(path) == name]
        if name.endswith(FILES) and not at:
            raise Untestable("it needs the operator library %s: name it with --library" % name)
        found += [os.path.abspath(at[0])] if at else [name]
    more = [path for path in given if os.path.basename(path) not in needed]
    return found + [os.path.abspath(path) if path.endswith(FILES) else path for path in more]


def one_run(order, env, deadline_s):
    """Return how the case ended in one process: ``what``, ``text``, and what the child told besides."""
    folder = tempfile.mkdtemp()
    flags = ["-s"] if sys.flags.no_user_site else []
    try:
        with open(os.path.join(folder, "order.json"), "w", encoding="utf-8") as stream:
            json.dump(order, stream)
        process = subprocess.Popen(
            [sys.executable] + flags + [os.path.abspath(__file__), "--child", folder],
            stdin=subprocess.DEVNULL,
            stdout=2,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
        try:
            hung = watched(process, folder, deadline_s)
        finally:
            end_group(process)
        return ended(Report.lines(folder), hung, process.returncode, deadline_s, START_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def watched(process, folder, deadline_s):
    """Wait for the child; return whether one of its phases lasts longer than it may."""
    known, since = 0, time.monotonic()
    while process.poll() is None:
        lines = Report.lines(folder)
        if len(lines) > known:
            known, since = len(lines), time.monotonic()
        counts = bool(lines) and lines[-1].get("counts")
        if time.monotonic() - since > (deadline_s if counts else START_S):
            return True
        time.sleep(LOOK_S)
    return False


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass  # all of them are gone
    process.wait(60)


class Report:
    """What the child tells, a line of JSON each; the last phase is where it was when it ended without an ending."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "report.jsonl")

    def tell(self, **facts):
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(facts) + "\n")

    def phase(self, words, *, counts=True):
        """Begin a phase; ``counts``: that it hangs or ends the process is a finding about torch."""
        self.tell(phase=words, counts=counts)

    @staticmethod
    def lines(folder):
        try:
            with open(os.path.join(folder, "report.jsonl"), encoding="utf-8", errors="replace") as stream:
                return [json.loads(line) for line in stream if line.endswith("\n")]
        except OSError:
            return []


def child(work, case, folder):
    """Do the case, report its ending and leave without teardown, which aborts now and then after correct results."""
    report = Report(folder)
    report.phase("the import of torch", counts=False)
    try:
        leave_with_parent()
        with open(os.path.join(folder, "order.json"), encoding="utf-8") as stream:
            order = json.load(stream)
        import torch

        report.tell(torch=str(torch.__version__))
        ending = work(torch, case, order, report)
    except BaseException as error:
        why = str(error) if isinstance(error, Untestable) else "%s: %s" % (type(error).__name__, error)
        ending = {"what": "untestable", "text": "cannot be tested here: %s" % " ".join(why.split())}
    report.tell(**ending)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def leave_with_parent():
    """Ask Linux to end this process with its parent; elsewhere it ends with its own work."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (ImportError, OSError, AttributeError):
        pass
