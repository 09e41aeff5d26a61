"""Damaged files of a fleet: whatever manifest, plan, result or archive says, every command ends in a documented way.

A fleet of a small store is planned, and has results, without any torch: these are made by hand. Then one file at a time
is edited, or something else takes its place (a folder, a pipe, a link), and commands that read it are called. None may
end as a bug of the gate, wait for ever, or change what is said of an artifact that the file is not of: a result that is
lost loses its own rows, and no row gets another status than it has.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from benchmarks.faults import stored
from harness.apps.fleet import plan as planning
from harness.apps.fleet import shard
from harness.apps.fleet.plan import STORE, Sides, load_plan
from harness.apps.fleet.units import Content
from harness.apps.fleet.results import FleetResults, seal_of
from harness.apps.fleet.stores.torchserve import MANIFEST as MAR_MANIFEST
from harness.core.environment import Environment, EnvSpec
from harness.core.errors import ExitCode
from harness.core.plan import Settings
from harness.store import codec
from tests.unit.apps.fleet.answers import FRAME, result_of
from tests.unit.builders.archives import CODE, torchscript
from tests.unit.builders.planted_causes import refused

Edit = Callable[[Path, random.Random], str]
COUNT = 500
DEADLINE_S = 60
RELEASES = {"old": "2.1.2", "new": "2.6.0"}
CONFIG = 'backend: "pytorch"\ninput { name: "x" data_type: TYPE_FP32 dims: [ 2, 6 ] }\n'
MANIFEST = """
tiers = ["batch", "online"]
[[artifacts]]
match = "*"
owner = "platform"
tier = "batch"
[[artifacts]]
match = "prod/*"
owner = "ads"
tier = "online"
tags = ["ranking"]
requests = [{ arguments = [{ shape = [2, 6] }] }]
"""
RED = "d"
RESULTS_FOLDER = "results"
FORGED = "sealed anew"
"""A result that somebody made: whoever may write a folder is believed, but no command may end as a bug by it."""
# FLEET, OTHER, EARLIER, MINE and STORE stand for places; commands of which one at least reads the file.
PLAN = ("fleet", "plan", "STORE", "--into", "MINE")
REPORT = ("fleet", "report", "FLEET", "--format", "json")
MERGE = ("fleet", "merge", "FLEET", "OTHER", "--format", "json")
RUN = ("fleet", "run", "FLEET")
RESULTS = (
    (*RUN,),
    (*RUN, "--shard", "1/2", "--into", "FLEET/shards/1"),
    (*RUN, "--more", "1s"),
    ("fleet", "store", "status", "FLEET"),
    ("fleet", "store", "gc", "FLEET", "--days", "1", "--yes"),
    ("fleet", "store", "export", "FLEET", "--to", "MINE/results.parquet"),
)
JOBS = (
    ("fleet", "job", "FLEET", "--on", "slurm"),
    ("fleet", "job", "FLEET", "--on", "kubernetes", "--image", "i", "--claim", "c"),
)
READERS: Mapping[str, Sequence[Sequence[str]]] = {
    "store/fleet.toml": [PLAN],
    "store/m.mar": [PLAN],
    "store/*.pt": [PLAN, RUN],
    "fleet/plan.json": [REPORT, MERGE, *JOBS, *RESULTS, ("fleet", "report", "FLEET", "--format", "csv"), REPORT],
    "fleet/store/results/*/*.json": [REPORT, MERGE, *RESULTS, REPORT],
    "fleet/store/frames/*.json": [REPORT, MERGE, *RESULTS],
    "fleet/store/faults/*.json": [REPORT, MERGE, *RESULTS],
    "fleet/store/store.json": [REPORT, MERGE, *RESULTS],
    "other/store/results/*/*.json": [MERGE, (*RUN, "--into", "OTHER/mine")],
    "other/store/frames/*.json": [MERGE],
    "other/store/faults/*.json": [MERGE],
    "other/store/store.json": [MERGE, (*RUN, "--into", "OTHER/mine")],
    "earlier/fleet.json": [(*REPORT, "--since", "EARLIER"), (*MERGE, "--since", "EARLIER")],
}
# Of these, an edit may change what is asked: a plan that was made differs then from that of the whole store.
OF_THE_STORE = "store/"
OWN_LINE = ("fleet/plan.json", "fleet/store/store.json", "other/store/store.json", "earlier/fleet.json")
"""Where a command cannot go on without a file, its one line names it."""


def attack(count: int = COUNT, seed: int = 18) -> list[str]:
    """Return the edits after which a command ended otherwise than it should, one line each."""
    with tempfile.TemporaryDirectory(prefix="gate-fleet-files-") as name, stubs():
        whole = Path(name) / "whole"
        make_fleet(whole)
        return wrong_endings(whole, count, seed)


ENVIRONMENTS = {
    side: Environment(name=release, interpreter="/python", spec=EnvSpec(name=release, release=release))
    for side, release in RELEASES.items()
}


@contextlib.contextmanager
def stubs() -> Iterator[None]:
    """Let no release be asked and nothing be run: a unit that is not known stays without a result."""
    settings = Settings(old=RELEASES["old"], new=RELEASES["new"])

    def sides(*_: object) -> Sides:
        return Sides(settings=settings, device="cpu", environments=ENVIRONMENTS, registries={}, releases=RELEASES)

    def common(_sides: Sides, profiles: Mapping[str, tuple[str, ...]]) -> Content:
        return Content(protocol="p", releases=RELEASES, device="cpu", settings="s", profiles=profiles)

    def run(self: Any, ready: Sequence[Any]) -> list[Any]:
        return [self._faulty(item.unit, "spurious-lost", "nothing runs here") for item in ready]

    with contextlib.ExitStack() as stack:
        for module in (planning, shard):
            stack.enter_context(mock.patch.object(module, "sides_of", sides))
            stack.enter_context(mock.patch.object(module, "content_common", common))
        stack.enter_context(mock.patch.object(shard._Shard, "_run", run))
        yield


def make_fleet(project: Path) -> None:
    """Write a store, its plan, what is known of it here and in another folder, and an earlier answer."""
    project.mkdir(parents=True)
    stored.make_project(project)
    write_store(project / "store")
    _expect(project, ("fleet", "plan", "STORE", "--into", "FLEET"), ExitCode.COMPATIBLE)
    planned = load_plan(str(project / "fleet"))
    common = Content("p", RELEASES, "cpu", "s", planned.plan.profiles)
    (project / "other").mkdir()
    here = FleetResults(project / "fleet" / STORE)
    there = FleetResults(project / "other" / STORE)
    for at, item in enumerate(planned.plan.artifacts):
        if not item.key:
            continue
        cell, facts = refused(item.name, "prim::is_ort")
        red, facts_of_red = ((cell,), facts) if item.name == RED else ((), None)
        result = result_of(planned, item.name, *red, facts=facts_of_red, common=common)
        (here if at % 3 else there).save(result, FRAME)
    _expect(project, ("fleet", "run", "FLEET"), ExitCode.INCONCLUSIVE)  # so there are faults
    shutil.copytree(project / "fleet" / STORE / "faults", project / "other" / STORE / "faults", dirs_exist_ok=True)
    _expect(project, MERGE, ExitCode.INCOMPATIBLE)
    (project / "earlier").mkdir()
    shutil.copy(project / "fleet" / "fleet.json", project / "earlier")
    for key in {item.key for item in planned.plan.artifacts[:4:3]} - {""}:  # what came from there is asked again
        FleetResults(project / "fleet" / STORE).path(key).unlink(missing_ok=True)


def write_store(store: Path) -> None:
    """Write files, archives of TorchServe and models of Triton, two of them of one name."""
    codes = {name: CODE.replace("relu", name) for name in ("gelu", "silu", "tanh")}
    files: dict[str, bytes | str] = {
        **{"a.pt": torchscript(), "b.pt": torchscript(), "c.pt": torchscript(), "d.pt": torchscript(codes["gelu"])},
        **{"b.inputs.npz": b"numbers", "weights.pth": b"\x89HDF\r\n\x1a\n", "readme.txt": "x"},
        **{"fleet.toml": MANIFEST, "damaged.pt": torchscript()[:200]},
    }
    for folder in ("prod", "staging"):
        files[f"{folder}/ranker/config.pbtxt"] = CONFIG
        files[f"{folder}/ranker/1/model.pt"] = torchscript(codes["silu"])
    for name, content in files.items():
        path = store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with zipfile.ZipFile(store / "m.mar", "w") as archive:
        archive.writestr("first.pt", torchscript(codes["tanh"]))
        archive.writestr("second.pt", torchscript())
        archive.writestr(MAR_MANIFEST, json.dumps({"model": {"modelName": "m", "serializedFile": "first.pt"}}))


def wrong_endings(whole: Path, count: int, seed: int) -> list[str]:
    """Edit one file after the other, ``count`` times; return a line for each command that did not end as it should."""
    place = whole.with_name("edited")
    shutil.copytree(whole, place)
    called(place, MERGE)
    known = _statuses(place)
    kinds = [pattern for pattern in READERS if any(whole.glob(pattern))]
    wrong = []
    for index in range(count):
        chance = random.Random(f"{seed} {index}")
        pattern = kinds[index % len(kinds)]
        path = chance.choice(sorted(whole.glob(pattern)))
        shutil.rmtree(place)
        shutil.copytree(whole, place)
        target = place / path.relative_to(whole)
        what = chance.choice(EDITS)(target, chance)
        forged = _rows_of(place, target.name.partition(".")[0]) if what.startswith(FORGED) else set()
        expected = {where: status for where, status in known.items() if where not in forged}
        commands = READERS[pattern]
        for words in commands if len(commands) < 3 else [commands[0], *chance.sample(commands[1:], 2)]:
            problem = _problem(place, words, pattern, target, expected)
            if problem:
                wrong.append(f"{seed} {index} {path.relative_to(whole)} {what}, {' '.join(words)}: {problem}")
    return wrong


def _problem(
    place: Path, words: Sequence[str], pattern: str, target: Path, known: Mapping[tuple[str, str], str | None]
) -> str:
    (place / "fleet" / "fleet.json").unlink(missing_ok=True)
    try:
        said = called(place, words)
    except _Hangs:
        return "it hangs"
    if said.code not in stored.DOCUMENTED:
        return f"ends with {said.code}: {said.err[-400:]}"
    if said.code in (ExitCode.CONFIGURATION, ExitCode.ENVIRONMENT):
        if said.err.count("\n") != 1 or not said.err.startswith("error: "):
            return f"is not one line: {said.err[-400:]}"
        if pattern in OWN_LINE and target.name not in said.err and str(target.parent) not in said.err:
            return f"does not name the file: {said.err}"
        return "" if pattern in OWN_LINE or pattern.startswith(OF_THE_STORE) else f"refuses all: {said.err}"
    if words[1] == "plan":
        return _lost(place)
    for where, status in _statuses(place).items():
        if where in known and status not in (known[where], None):
            return f"{where} is {status}, and was {known[where]}"
    if "results" in pattern or "faults" in pattern:
        lost = {where for where, status in _statuses(place).items() if status is None and known.get(where)}
        rows = _rows_of(place, target.name.partition(".")[0])
        if lost - rows and words[:2] == MERGE[:2]:
            return f"{sorted(lost - rows)} are lost with it"
    return ""


def _lost(place: Path) -> str:
    """Return which place of the store a new plan says nothing of."""
    plan = json.loads((place / "mine" / "plan.json").read_text())
    told = {(item["path"], item["member"]) for item in (*plan["artifacts"], *plan["unjudged"])}
    paths = {path for path, _ in told}
    there = {
        path.relative_to(place / "store").as_posix()
        for path in (place / "store").glob("**/*.[pm]*[tr]*")
        if not path.is_dir()
    }
    lost = {path for path in there if path.endswith((".pt", ".mar")) and path not in paths}
    return f"nothing is said of {sorted(lost)}" if lost else ""


def _rows_of(place: Path, key: str) -> set[tuple[str, str]]:
    """Return the rows that go with a result: those under its key, and those whose program it stands for."""
    plan = json.loads((place / "fleet" / "plan.json").read_text())
    programs = {item["program"] for item in plan["artifacts"] if item["key"] == key}
    return {(item["path"], item["member"]) for item in plan["artifacts"] if item["program"] in programs}


def _statuses(place: Path) -> dict[tuple[str, str], str | None]:
    """Return what the last answer says of each place; nothing where there is none."""
    file = place / "fleet" / "fleet.json"
    rows = json.loads(file.read_text())["rows"] if file.is_file() else []
    return {(row["path"], row["member"]): row["status"] for row in rows}


class _Hangs(BaseException):
    """Raised where a command takes too long; no handler of errors takes it for one."""


def called(project: Path, words: Sequence[str]) -> stored.Said:
    """Return how a command on the places of a fleet ended, of which one that takes too long is none."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise _Hangs

    places = {"FLEET": "fleet", "OTHER": "other", "EARLIER": "earlier", "MINE": "mine", "STORE": "store"}
    named = [
        str(project / places[head]) + (f"/{rest}" if rest else "")
        if (head := word.partition("/")[0]) in places
        else word
        for word in words
        for rest in [word.partition("/")[2]]
    ]
    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(DEADLINE_S)
    try:
        return stored.called(project, named)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _expect(project: Path, words: Sequence[str], code: ExitCode) -> None:
    said = called(project, words)
    if said.code != code:
        raise RuntimeError(f"{' '.join(words)} ended with {said.code}: {said.err[-500:]}{said.out[-500:]}")


def _content(path: Path, chance: random.Random) -> str:
    what, data = stored.edited(path.read_bytes(), chance)
    path.write_bytes(data)
    return what


def _member(path: Path, chance: random.Random) -> str:
    """Edit what a file holds inside: a member of an archive, or a result, whose seal is then made anew."""
    if path.parent.parent.name == RESULTS_FOLDER:
        value = path.read_bytes().partition(b'"value":')[2][:-1]
        what, value = stored.edited(value, chance)
        seal = seal_of(value, path.name.partition(".")[0])
        path.write_bytes(b'{"seal":"%s","value":%s}' % (seal.encode(), value))
        return f"{FORGED}: {what}"
    if path.suffix == ".mar":
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        what, members[MAR_MANIFEST] = stored.edited(members[MAR_MANIFEST], chance)
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return f"{MAR_MANIFEST}: {what}"
    return _content(path, chance)


def _instead(what: str, make: Callable[[Path], object]) -> Edit:
    def edit(path: Path, _: random.Random) -> str:
        path.unlink()
        make(path)
        return f"{what} in its place"

    return edit


def _another(path: Path, chance: random.Random) -> str:
    """Put another file of the same folder in its place."""
    others = sorted(other for other in path.parent.parent.rglob(f"*{path.suffix}") if other != path)
    if not others:
        return _content(path, chance)
    other = chance.choice(others)
    shutil.copy(other, path)
    return f"the content of {other.name}"


EDITS: Sequence[Edit] = (
    *(_content,) * 6,
    *(_member,) * 3,
    _another,
    _instead("a folder", lambda path: (path / "inside").mkdir(parents=True)),
    _instead("a pipe", os.mkfifo),
    _instead("nothing", lambda _: None),
    _instead("a link to nothing", lambda path: path.symlink_to("nowhere")),
    _instead("a link to itself", lambda path: path.symlink_to(path.name)),
)
