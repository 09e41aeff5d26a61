"""The folder of a reproducer: its program put together from the worker's parts, written, and run in an environment."""

import ast
import contextlib
import copy
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from harness.artifacts.tensors.decode import Buffer
from harness.core.errors import RunDirError
from harness.core.probe import WorkerLimits
from harness.machine.processes import reap, start
from harness.probing import processes
from harness.probing.printed import PrintedFile
from harness.search.bisect.traces import tensors_in
from harness.store import codec

LIMITED = processes.BOOTSTRAP.with_name("limits.py")
CASE, TENSORS, ISSUE = "case.json", "tensors.bin", "issue.md"
ARCHIVE = "minimal.pt"
# A larger archive is named and not taken: a folder is there to be sent.
LARGEST_ARCHIVE_BYTES = 64 << 20
# It has deadlines of its own; this one is for torch's import, and for what goes wrong with that.
START_S = 150.0
LOOK_S = 0.05
LONGEST_SAID = 100_000
MARKS = ("good: ", "bad: ", "untestable: ")
EXITS = {0: "good", 1: "bad", 125: "untestable"}
PROGRAM = "reproduce.py"
# The last part of each kind has the docstring and the entry; the parts before it are what it needs.
PARTS = {
    "operator": ("endings", "process", "../setters", "settings", "../values/recorded", "values", "operator"),
    "conversion": (*("endings", "process", "../setters", "settings", "../values/recorded", "values", "conversion"),),
    "program": (
        *("endings", "process", "../setters", "settings", "../values/recorded", "values", "timing", "threads"),
        "program",
    ),
}
PACKAGE = "gate_worker"


class ProgramRun(NamedTuple):
    """One run of a reproducer.

    ``code``: its exit code; None where it was ended, or could not be started; ``words``: what it says in its last line,
    with that code; ``printed``: all that it printed.
    """

    code: int | None
    words: str
    printed: str = ""


class Tensors:
    """The bytes that the trees of a case point to; equal bytes are kept once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._known: dict[bytes, int] = {}

    def taken(self, tree: Any, buffer: Buffer) -> Any:
        """Return a copy of a tree of the wire with its bytes in ``buffer``, whose offsets point here."""
        mine = copy.deepcopy(tree)
        for spec in tensors_in(mine):
            assert isinstance(spec, dict)
            begin = spec["offset"]
            content = bytes(buffer[begin : begin + spec["nbytes"]])
            spec.pop("sha256", None)
            if content not in self._known:
                self._known[content] = len(self.data)
                self.data += content
            spec["offset"] = self._known[content]
        return mine


def write_reproducer(
    folder: Path, kind: str, case: Mapping[str, Any], tensors: Tensors, *, archive: Path | None = None
) -> None:
    """Write program, ``case.json``, the bytes of its trees and, where there is one, the archive (linked where
    possible).

    ``kind`` is one of ``PARTS``. Raises ``RunDirError``: the folder cannot be written.
    """
    try:
        if folder.exists():
            shutil.rmtree(folder)  # of a run that was interrupted
        folder.mkdir(parents=True)
        (folder / TENSORS).write_bytes(tensors.data)
        (folder / CASE).write_bytes(codec.pretty(case))
        (folder / PROGRAM).write_text(script_of(kind), encoding="utf-8")
        if archive is not None:
            _placed(archive, folder / ARCHIVE)
    except OSError as error:
        raise RunDirError(
            f"{folder} cannot be written: {error.strerror or error}", "free space, or name another folder with --out"
        ) from error


def remove_reproducer(folder: Path) -> None:
    """Remove the folder of one that shows nothing, and the folder around it if nothing else is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()


def _placed(archive: Path, place: Path) -> None:
    with contextlib.suppress(OSError):
        os.link(archive, place)
        return
    shutil.copyfile(archive, place)


def is_small(archive: Path) -> bool:
    try:
        return archive.stat().st_size <= LARGEST_ARCHIVE_BYTES
    except OSError:
        return False


def run_reproducer(
    folder: Path,
    interpreter: str,
    arguments: Sequence[str] = (),
    *,
    limits: WorkerLimits,
    limit_s: float = START_S,
    env: Mapping[str, str] | None = None,
) -> ProgramRun:
    """Return what became of the program within ``limit_s`` seconds; never raises."""
    command = (interpreter, "-s", str(LIMITED), codec.canonical(limits).decode(), str(folder / PROGRAM), *arguments)
    with _appended() as output, contextlib.ExitStack() as stack:
        try:
            # Beside the program, whose folder is made anew where a killed run goes on.
            temporary = stack.enter_context(
                tempfile.TemporaryDirectory(dir=folder, prefix=".", ignore_cleanup_errors=True)
            )
            variables = {**(env or {}), "TMPDIR": temporary}
            started = _started(command, folder, variables, stdout=output, stderr=subprocess.DEVNULL)
        except OSError as error:
            return ProgramRun(None, f"could not be started: {error.strerror or error}")
        printed = PrintedFile(output.fileno())
        limit = time.monotonic() + limit_s
        try:
            while started.poll() is None:
                printed.trim()
                if time.monotonic() > limit:
                    return ProgramRun(None, f"no answer after {limit_s:.0f} s")
                time.sleep(LOOK_S)
        finally:
            reap(started)
        printed.finish()
        output.seek(0)
        text = output.read().decode(errors="replace")
    lines = text.strip().splitlines()
    last = lines[-1] if lines else EXITS.get(started.returncode, processes.describe_exit(started.returncode))
    for mark in MARKS:
        last = last.removeprefix(mark)
    return ProgramRun(started.returncode, f"{last} (exit code {started.returncode})", text)


@cache
def script_of(kind: str) -> str:
    """Return the whole program of a reproducer of a kind of ``PARTS``; equal parts give equal text."""
    folder = processes.BOOTSTRAP.parent / "reproduce"
    sources = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in PARTS[kind]]
    imports: dict[str, None] = {}
    bodies = []
    docstring = ""
    for source in sources:
        docstring, outside, body = _taken_apart(source)
        imports.update(dict.fromkeys(outside))
        bodies.append(body)
    plain = sorted(text for text in imports if text.startswith("import "))
    named = sorted(text for text in imports if text.startswith("from "))
    head = f'"""{docstring}"""\n\n' + "\n".join((*plain, *named)) + "\n\n"
    return head + "\n\n\n".join(bodies) + "\n"


def _taken_apart(source: str) -> tuple[str, list[str], str]:
    """Return (docstring, imports from outside, the code without both) of one part."""
    tree = ast.parse(source)
    lines = source.splitlines()
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    outside = [
        ast.unparse(node) for node in imports if not (isinstance(node, ast.ImportFrom) and _is_ours(node.module))
    ]
    first = tree.body[0]
    assert isinstance(first, ast.Expr), "every part begins with a docstring"
    gone = {line for node in (first, *imports) for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    kept = [text for number, text in enumerate(lines, start=1) if number not in gone]
    return ast.get_docstring(tree, clean=False) or "", outside, "\n".join(kept).strip("\n")


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == PACKAGE


def run_snippet(program: Path, interpreter: str, *, limits: WorkerLimits, wait_s: float) -> tuple[str, str]:
    """Return (how it ended: "hang", "crash", "error", "end" or "unknown", what it said after its first line).

    ``program``: it prints a line once torch is imported; ``wait_s``: from each line that it prints to the next, and to
    its end.
    """
    command = (interpreter, "-s", "-u", str(LIMITED), codec.canonical(limits).decode(), str(program))
    with _appended() as output:
        try:
            silent = {"PYTHONWARNINGS": "ignore"}
            started = _started(command, program.parent, silent, stdout=output, stderr=subprocess.STDOUT)
        except OSError:
            return "unknown", ""
        try:
            hangs = _hangs(started, PrintedFile(output.fileno()), wait_s)
        finally:
            reap(started)
        output.seek(0)
        text = output.read(LONGEST_SAID).decode(errors="replace")
    printed = text.partition("\n")[2]
    if hangs or started.returncode is None:
        return ("hang" if text else "unknown"), printed
    if started.returncode < 0:
        return "crash", printed
    return ("error" if started.returncode else "end"), printed


def _started(
    command: Sequence[str], folder: Path, env: Mapping[str, str], *, stdout: "int | IO[bytes]", stderr: int
) -> "subprocess.Popen[bytes]":
    silent = processes.worker_environment({"PYTHONDONTWRITEBYTECODE": "1", **env})
    return start(command, stdout=stdout, stderr=stderr, env=silent, cwd=folder)


@contextlib.contextmanager
def _appended() -> Iterator[IO[bytes]]:
    """Yield a file without a name to whose end whatever a program prints is written, also after it was cut."""
    with tempfile.TemporaryFile() as output:
        fcntl.fcntl(output, fcntl.F_SETFL, fcntl.fcntl(output, fcntl.F_GETFL) | os.O_APPEND)
        yield output


def _hangs(started: "subprocess.Popen[bytes]", output: PrintedFile, wait_s: float) -> bool:
    """Wait for the end; return whether it was silent for too long, which the import of torch may be for longer."""
    known, since = 0, time.monotonic()
    while started.poll() is None:
        output.trim()
        size = output.printed_bytes
        if size != known:
            known, since = size, time.monotonic()
        if time.monotonic() - since > (wait_s if known else START_S):
            return True
        time.sleep(LOOK_S)
    return False
