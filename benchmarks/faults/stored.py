"""Damaged stored files: whatever a run, a golden folder or a waiver file holds, a command ends in one line that says so.

A finished run of two releases, its golden proposals and its waivers are made once. Then one file at a time is edited
(bytes that are no UTF-8, a hundred thousand brackets, a value that no version wrote, a cut) and every command that
reads it is called. None may end as a bug of the gate; where it ends in an error, that is one line with the file in it.
"""

import contextlib
import io
import json
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.cli import entry
from harness.core.errors import ExitCode
from harness.store.probe_files import PACKED

PROJECT = Path(__file__).resolve().parents[2]
COUNT = 500
DEEP = 100_000
DOCUMENTED = frozenset(ExitCode) - {ExitCode.INTERNAL}
CONFIG = '[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\n'
WAIVER = """
[[waiver]]
model = "early_exit"
kind = "values"
owner = "ads"
reason = "agreed"
expires = 2027-01-01
"""
RUN = "reports/2*"
CELL = "early_exit/alone"
# Which files, and the commands that read them. RUN stands for the folder of the run.
READERS: Mapping[str, Sequence[Sequence[str]]] = {
    f"{RUN}/report.json": [
        ("report", "RUN"),
        ("report", "RUN", "--format", "html"),
        ("report", "RUN", "--format", "sarif"),
        ("report", "RUN", "--format", "openmetrics"),
        ("report", "RUN", "--baseline", "RUN"),
        ("gate", "RUN"),
        ("waivers", "list", "RUN"),
        ("golden", "propose", "RUN"),
    ],
    f"{RUN}/plan.json": [("report", "RUN", "--format", "github"), ("golden", "propose", "RUN")],
    f"{RUN}/baselines.json": [("golden", "propose", "RUN")],
    f"{RUN}/probes/*/*.json*": [("report", "RUN", "--format", "trace"), ("golden", "propose", "RUN")],
    f"{RUN}/probes/*/*puts/*.json*": [("golden", "propose", "RUN")],
    f"{RUN}/probes/*/{PACKED}": [("report", "RUN", "--format", "trace"), ("golden", "propose", "RUN")],
    "golden/records/*/*/record.json": [("golden", "status"), ("golden", "diff")],
    "golden/proposed/*/record.json": [("golden", "status"), ("golden", "diff")],
    "golden/index.json": [("golden", "status"), ("golden", "diff")],
    "golden/waivers.toml": [("waivers", "list"), ("waivers", "prune", "RUN"), ("gate", "RUN")],
    "policy.toml": [("gate", "RUN", "--policy", "policy.toml")],
}
PREPARING = (("golden", "propose", "RUN"), ("golden", "accept", "early_exit", "--reason", "first answers"))
ODD: Sequence[Any] = (None, True, -1, 0, 2**63, 10**30, 1e308, "", "x", "9.9.9x", "\u202e\0", [], {}, [None], {"x": 1})


@dataclass(frozen=True)
class Said:
    """What a command did: its exit code, and what it wrote."""

    code: int
    err: str
    out: str = ""


def attack(count: int, seed: int) -> list[str]:
    """Return the edits after which a command ended as a bug, with a traceback, or without naming the file."""
    with tempfile.TemporaryDirectory(prefix="gate-stored-") as name:
        project = Path(name)
        make_project(project)
        words = ("compat", "--fixtures", str(PROJECT / "fixtures" / "zoo"), "-k", "early_exit", "--scenario", "alone")
        made = called(project, (*words, "--latency", "off"))
        failed = [said for said in (made, *map(partial(called, project), PREPARING)) if said.code]
        if failed:
            return [f"there is nothing to damage: {failed[0].err[-500:]}"]
        propose_accepted(project / "golden")
        resuming = {
            f"{RUN}/plan.json": [("compat", "--resume", "RUN"), ("rerun", "RUN", CELL)],
            f"{RUN}/probes/*/{PACKED}": [("compat", "--resume", "RUN")],
        }
        quick = wrong_endings(project, READERS, count - count // 10, seed)
        return quick + wrong_endings(project, resuming, count // 10, seed + 1)


def propose_accepted(golden: Path) -> None:
    """Propose what is accepted already."""
    for record in golden.glob("records/*/*"):
        shutil.copytree(record, golden / "proposed" / record.parent.name, dirs_exist_ok=True)


def make_project(project: Path) -> None:
    """Write a project with waivers and a policy."""
    (project / "pyproject.toml").write_text(CONFIG)
    (project / "golden").mkdir(exist_ok=True)
    (project / "golden" / "waivers.toml").write_text(WAIVER)
    (project / "policy.toml").write_text('minimum_models = 1\n[severity]\nvalues = "warn"\n')


def wrong_endings(project: Path, readers: Mapping[str, Sequence[Sequence[str]]], count: int, seed: int) -> list[str]:
    """Edit one file after the other, ``count`` times; return a line for each command that did not end as it should."""
    known = "".join(
        path.read_text() for path in project.glob(f"{RUN}/baselines.json")
    )  # most probes are of planted defects
    files = {pattern: sorted(project.glob(pattern)) for pattern in readers}
    files |= {
        pattern: [path for path in files[pattern] if _probe(path) in known] for pattern in files if "probes" in pattern
    }
    kinds = [pattern for pattern in readers if files[pattern]]
    wrong = []
    for index in range(count):
        chance = random.Random(f"{seed} {index}")
        pattern = kinds[index % len(kinds)]
        path = chance.choice(files[pattern])
        before = path.read_bytes()
        what, after = (edited_member if path.name == PACKED else edited)(before, chance)
        with _kept(project, path):
            path.write_bytes(after)
            for words in readers[pattern]:
                said = called(project, words)
                problem = _problem(said, path, project)
                if problem:
                    wrong.append(f"{seed} {index} {path.relative_to(project)} {what}, {' '.join(words)}: {problem}")
    return wrong


def _probe(path: Path) -> str:
    return path.parts[path.parts.index("probes") + 1]


@contextlib.contextmanager
def _kept(project: Path, path: Path) -> Iterator[None]:
    """Put back the file, the golden folder and the runs as they were."""
    content, runs = path.read_bytes(), set((project / "reports").iterdir())
    with tempfile.TemporaryDirectory(prefix="gate-kept-") as copy:
        shutil.copytree(project / "golden", copy, dirs_exist_ok=True)
        try:
            yield
        finally:
            shutil.rmtree(project / "golden")
            shutil.copytree(copy, project / "golden")
            path.write_bytes(content)
            for run in set((project / "reports").iterdir()) - runs:
                shutil.rmtree(run)


def called(project: Path, words: Sequence[str]) -> Said:
    """Return how a command of the gate ended, called in this process as from the shell."""
    places = {
        "RUN": str(min(project.glob(RUN), default=project)),
        "policy.toml": str(project / "policy.toml"),
    }
    out, err = io.StringIO(), io.StringIO()
    command = ["--project", str(project), *(places.get(word, word) for word in words)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = entry.main(command)
        except SystemExit as error:
            code = int(error.code or 0)
    return Said(code, err.getvalue(), out.getvalue())


def _problem(said: Said, path: Path, project: Path) -> str:
    """Return what is wrong with an ending; empty if nothing is."""
    if said.code not in DOCUMENTED:
        return f"exit code {said.code}: {_last_of_bug(said.err)}"
    if "Traceback" in said.err:
        return "a traceback"
    lines = [line for line in said.err.splitlines() if line.startswith("error:")]
    if said.code == ExitCode.CONFIGURATION:
        if len(lines) > 1:
            return f"{len(lines)} lines of error"
        told = lines[0] if lines else said.out  # golden status tells of every record
        if not any(word in told for word in (path.name, path.parent.name, "was planned")):  # the plan names other files
            return f"the file is not named: {told[:200]}"
    return ""


def _last_of_bug(err: str) -> str:
    """Return the end of the traceback that the gate has kept for the report of its bug."""
    place = err.rpartition("report it with ")[2].strip()
    try:
        lines = Path(place).read_text(encoding="utf-8").strip().splitlines()
    except OSError:
        return err[-200:]
    at = [line.strip() for line in lines if line.strip().startswith("File") and "harness" in line]
    return f"{lines[-1][:200]} ({at[-1] if at else ''})"


def edited(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Return what was done to the content of a file, and the content then."""
    edit = chance.choice([*BYTES, _value, _value, _value, _value])
    return edit(content, chance)


def edited_member(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Return the same for a zip file: mostly for one of its members, whose checksum is made anew."""
    if chance.random() < 0.2:
        return edited(content, chance)
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    name = chance.choice(sorted(members))
    what, members[name] = edited(members[name], chance)
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return f"{name}: {what}", out.getvalue()


def _insert(piece: bytes, what: str) -> Callable[[bytes, random.Random], tuple[str, bytes]]:
    def edit(content: bytes, chance: random.Random) -> tuple[str, bytes]:
        at = chance.randrange(len(content) + 1)
        return f"{what} at {at}", content[:at] + piece + content[at:]

    return edit


def _cut(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    at = chance.randrange(len(content) + 1)
    return f"cut at {at}", content[:at]


def _flip(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    at = chance.randrange(max(len(content), 1))
    return f"a bit of {at}", content[:at] + bytes(
        byte ^ 1 << chance.randrange(8) for byte in content[at : at + 1]
    ) + content[at + 1 :]


BYTES: Sequence[Callable[[bytes, random.Random], tuple[str, bytes]]] = (
    _insert(b"\xff", "a byte that is no UTF-8"),
    _insert(b"\xed\xa0\x80", "half a character"),
    _insert(b"[" * DEEP, "many brackets"),
    lambda _, __: ("nothing but brackets", b"[" * DEEP),
    lambda _, __: ("nested objects", b'{"a":' * DEEP),
    lambda _, __: ("empty", b""),
    lambda _, __: ("another type", b"[1]"),
    _cut,
    _flip,
)


def _value(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Replace one value of a JSON file, or of one of its lines, by an odd one, or take out or rename a key."""
    lines = content.splitlines(keepends=True)
    number = chance.randrange(len(lines)) if lines else 0
    for whole, texts, at in ((content, [content], 0), (content, lines, number)):
        try:
            value = json.loads(texts[at])
        except (ValueError, IndexError):
            continue
        places = list(_places(value))
        if not places:
            break
        holder, key, words = chance.choice(places)
        odd = chance.choice([*ODD, "deep", "gone"])
        if odd == "gone":
            del holder[key]
        else:
            holder[key] = odd
        text = json.dumps(value).encode()
        text = text.replace(b'"deep"', b"[" * DEEP + b"]" * DEEP) if odd == "deep" else text
        texts[at] = text + (b"\n" if whole is not content or len(texts) > 1 else b"")
        return f"{words} = {odd!r}", b"".join(texts)
    return _cut(content, chance)


def _places(value: Any, words: str = "$") -> Iterator[tuple[Any, Any, str]]:
    """Yield each place in a value: what holds it, its key, and both in words."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield value, key, f"{words}.{key}"
        yield from _places(item, f"{words}.{key}")
