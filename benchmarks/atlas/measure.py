"""``nox -s bench -- atlas``: which operators answer otherwise since which release, measured call by call.

Calls are recorded once, in the oldest release, and widened to the edges of what operators take. Of each pair of
neighbours among the releases both answer every call twice, with one thread and two, with and without vector
instructions, and with other bytes in fresh memory: what a release does not answer twice alike is its noise.
Everything lies in ``reports/atlas``, a file per pair and operator, so that it goes on where it was stopped.
"""

import argparse
import json
import random
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from benchmarks.atlas import page, writing
from benchmarks.atlas.again import OTHERS, ZEROS
from benchmarks.atlas.arguments import edges, features, rounded, tensors
from benchmarks.atlas.reducing import Four, entries
from benchmarks.atlas.sessions import MOST_LOST, UNASKED, Call, Session
from harness.core.environment import EnvSpec
from harness.project import Project

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "reports" / "atlas"
RECORD = Path(__file__).with_name("inside") / "record.py"
NEEDED = ("numpy<2", "expecttest", "packaging")
"""Packages that torch's own samples import."""
PLAIN, BASES, PER_DTYPE = 24, 4, 6
"""Recorded calls of an overload in float32, those of them that are widened to the edges, and calls in another dtype."""
AT_ONCE = 64
SESSIONS = (
    (1, {"MALLOC_PERTURB_": ZEROS}),
    (2, {"MALLOC_PERTURB_": OTHERS, "ATEN_CPU_CAPABILITY": "default", "OMP_WAIT_POLICY": "passive"}),
)


def record(python: str, family: str) -> Path:
    """Return the file of recorded calls, which is written where it is not there yet."""
    file = FOLDER / f"recorded{'-' * bool(family)}{family}.jsonl"
    if not file.exists():
        packages = FOLDER / "packages"
        subprocess.run(
            ("uv", "pip", "install", "-q", "--python", python, "--target", str(packages), *NEEDED), check=True
        )
        begun = file.with_suffix(".begun")
        with begun.open("wb") as stream:
            process = subprocess.run(
                (python, "-s", str(RECORD), family), stdout=stream, env={"PYTHONPATH": str(packages)}, check=False
            )
        if process.returncode:
            raise SystemExit(f"{RECORD} in {python} ended with {process.returncode}")
        begun.rename(file)
    return file


def calls_of(file: Path) -> dict[str, list[Call]]:
    """Return the calls by overload: recorded ones, a few of each dtype, then those at the edges."""
    recorded: dict[str, dict[str, list[Call]]] = defaultdict(lambda: defaultdict(list))
    with file.open() as stream:
        for line in stream:
            if line.startswith("{") and "polynomial" not in line:  # some of them never end on infinity
                call = rounded(json.loads(line))
                given = tensors(call)
                recorded[call["operator"]][given[0]["dtype"] if given else ""].append(call)
    return {operator: list(_widened(by_dtype)) for operator, by_dtype in sorted(recorded.items())}


def _widened(by_dtype: dict[str, list[Call]]) -> Iterator[Call]:
    seen = set()
    bases: list[Call] = []
    for dtype, calls in by_dtype.items():
        plain = sorted((call for call in calls if not features(call)), key=lambda call: len(json.dumps(call)))
        if dtype in ("float32", "int64") and plain:
            most = BASES if dtype == "float32" else BASES // 2
            bases += plain[:: max(1, len(plain) // most)][:most]
        kept = calls if len(calls) < PLAIN else random.Random(0).sample(calls, PLAIN)
        for call in kept if dtype == "float32" else kept[:PER_DTYPE]:
            seen.add(json.dumps(call))
            yield call
    for base in bases:
        for call in edges(base):
            line = json.dumps(call)
            if line not in seen:
                seen.add(line)
                yield call


class Pair:
    """Two releases, each in two sessions."""

    def __init__(self, old: str, new: str) -> None:
        self.sessions = [Session(python, *how) for how in SESSIONS for python in (old, new)]

    def ask(self, calls: Sequence[Call]) -> Iterator[Four]:
        """Yield the answers of both releases, twice; of what follows calls that end a process, only some."""
        lost = 0
        for at in range(0, len(calls), AT_ONCE):
            if lost >= MOST_LOST:
                yield from [(UNASKED, UNASKED, UNASKED, UNASKED)] * len(calls[at : at + AT_ONCE])
                continue
            for session in self.sessions:
                session.send(calls[at : at + AT_ONCE])
            answers = [session.receive() for session in self.sessions]
            lost += max(sum("lost" in answer for answer in own) for own in answers)
            yield from zip(*answers, strict=True)

    def close(self) -> None:
        for session in self.sessions:
            session.close()


def measure(pair: tuple[str, str], pythons: tuple[str, str], calls: dict[str, list[Call]], until: float) -> bool:
    """Measure the operators of a pair that are not measured yet; False where the time was over before that."""
    folder = FOLDER / "-".join(pair)
    folder.mkdir(parents=True, exist_ok=True)
    left = [name for name in calls if not (folder / f"{name}.json").exists()]
    random.Random(0).shuffle(left)
    with closing(Pair(*pythons)) as sessions:
        for done, name in enumerate(left):
            if (folder / f"{name}.json").exists():  # by another that measures beside this one
                continue
            if time.monotonic() > until:
                print(f"{'-'.join(pair)}: {len(left) - done} operators left", flush=True)
                return False
            found, counts = entries(calls[name], sessions.ask)
            result = {"operator": name, "counts": counts, "entries": found, "cpu": sessions.sessions[0].cpu}
            file = folder / f"{name}.json"
            file.with_suffix(".begun").write_text(json.dumps(result))
            file.with_suffix(".begun").rename(file)
            if done % 20 == 0:
                print(f"{'-'.join(pair)}: {done} of {len(left)} operators, {name}: {len(found)} entries", flush=True)
    return True


def main(given: Sequence[str]) -> int:
    """Measure, and write what every pair has measured; return 0 when it is whole, 1 when time was over before."""
    parser = argparse.ArgumentParser(prog="nox -s bench -- atlas")
    parser.add_argument("--releases", nargs="+", default=("2.1.2", "2.6.0", "2.15.0"), help="in order, two or more")
    parser.add_argument("--family", default="", help="only samples whose name in op_db begins so")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time; it goes on when called again")
    asked = parser.parse_args(given)
    until = time.monotonic() + asked.seconds
    FOLDER.mkdir(parents=True, exist_ok=True)
    builder = Project(folder=PROJECT).builder
    pythons = {name: str(builder.build(EnvSpec(name=name, release=name)).interpreter) for name in asked.releases}
    calls = calls_of(record(pythons[asked.releases[0]], asked.family))
    print(f"{len(calls)} operators, {sum(map(len, calls.values()))} calls", flush=True)
    pairs = [(pair, (pythons[pair[0]], pythons[pair[1]])) for pair in pairwise(asked.releases)]
    whole = [measure(pair, interpreters, calls, until) for pair, interpreters in pairs]
    counts = writing.written(FOLDER, pythons)
    page.FILE.write_text(page.page(), encoding="utf-8")
    print(", ".join(f"{count} {what}" for what, count in counts.items()), flush=True)
    return 0 if all(whole) else 1
