"""Bytes that are swapped during a run of a given artifact: nothing but what was planned is judged.

A run is made whole, without planted defects, which counts its moments: each stage that begins, each step that ends. Then, in one run after the
other, the artifact, its requests, the kept copy or the recorded inputs are replaced at a drawn moment: the first two
before they are taken over, the others from then on until after the last probe. Each such row is INCONCLUSIVE.
"""

import io
import os
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults._given import MODEL, make_given, run_given
from harness.core.outcome import Status
from harness.machine.progress import Progress
from harness.store.run_folder import PROBES
from harness.worker import wire

COUNT = 40


def _same_size_and_time(path: Path, other: bytes) -> None:
    before = path.stat()
    path.write_bytes((other * (1 + before.st_size // len(other)))[: before.st_size])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _instead(path: Path, make: Callable[[], object]) -> None:
    path.unlink()
    make()


def _renamed(path: Path, other: bytes) -> None:
    path.with_name("other").write_bytes(other)
    path.with_name("other").rename(path)


def _linked(path: Path, other: bytes) -> None:
    path.with_name("other").write_bytes(other)
    _instead(path, lambda: path.symlink_to("other"))


SWAPS: Mapping[str, Callable[[Path, bytes], object]] = {
    "written": lambda path, other: path.write_bytes(other),
    "same size and time": _same_size_and_time,
    "emptied": lambda path, _: path.write_bytes(b""),
    "another file": _renamed,
    "a link": _linked,
    "a link to itself": lambda path, _: _instead(path, lambda: path.symlink_to(path)),
    "gone": lambda path, _: path.unlink(),
    "a folder": lambda path, _: _instead(path, path.mkdir),
}
REQUESTS = (f"requests/{wire.TENSORS_INDEX}", f"requests/{wire.TENSORS_BIN}")
# The places that are swapped before they are taken over, and after.
BEFORE = tuple(f"artifacts/{name}" for name in (f"{MODEL}.pt", *REQUESTS))
AFTER = (f"reports/*/given/{MODEL}-*.pt", f"reports/*/{PROBES}/*/inputs/{wire.TENSORS_BIN}")


@dataclass
class Moments(Progress):
    """Counts the moments of a run, and calls ``then`` at one of them."""

    at: int = -1
    then: Callable[[], object] = lambda: None
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(enabled=False)

    def stage(self, name: str, total: int = 0, *, left_s: float | None = None) -> None:
        super().stage(name, total, left_s=left_s)
        self._reached(name)

    def step(self, what: str = "") -> None:
        super().step(what)
        self._reached(what)

    def _reached(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) - 1 == self.at:
            self.then()


def attack(count: int, seed: int) -> list[str]:
    """Return the swaps after which the row was judged, one line each."""
    with tempfile.TemporaryDirectory(prefix="gate-swaps-") as name:
        project = Path(name)
        make_given(project)
        whole = Moments()
        status = judged(project, whole)
        if status is not Status.PASS:
            return [f"the run without a swap is {status}"]
        taken_over = next(number for number, what in enumerate(whole.names) if what == MODEL)  # exported, after others
        wrong = []
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            place = chance.choice([*BEFORE, *AFTER])
            at = chance.randrange(taken_over) if place in BEFORE else chance.randrange(taken_over, len(whole.names))
            how = chance.choice(list(SWAPS))
            found = swapped(project, place, how, at)
            what = f"moment {at} of {len(whole.names)} ({whole.names[at]})"
            wrong += [f"{seed} {number} {place}, {how}, {what}: {each}" for each in found]
        return wrong


def swapped(project: Path, place: str, how: str, at: int) -> list[str]:
    """Return what is wrong after a run during which something was replaced."""
    artifacts, kept = project / "artifacts", project / "kept"
    shutil.copytree(artifacts, kept)
    done: list[Path] = []

    def swap() -> None:
        planned = {path.read_bytes() for path in kept.rglob("*") if path.is_file()}
        for path in project.glob(place):
            content = path.read_bytes()
            if content in planned:  # no inputs of another kind
                SWAPS[how](path, _alike(content, path))
                done.append(path)

    try:
        status = judged(project, Moments(at=at, then=swap))
    finally:
        shutil.rmtree(artifacts)
        kept.rename(artifacts)
    return [*([] if done else ["nothing was swapped"]), *([status.value] if status is not Status.INCONCLUSIVE else [])]


def _alike(content: bytes, path: Path) -> bytes:
    """Return other content which a worker takes as readily: one more member of an archive, other numbers, a space."""
    if path.suffix == ".pt":
        archive = io.BytesIO(content)
        with zipfile.ZipFile(archive, "a") as members:
            members.writestr(f"{members.namelist()[0].partition('/')[0]}/extra/swapped", b"x")
        return archive.getvalue()
    return content.replace(b"\n", b" \n") if path.name == wire.TENSORS_INDEX else bytes([content[0] ^ 1]) + content[1:]


def judged(project: Path, moments: Moments) -> Status:
    """Return the status of the only row of a new run; there is no other run beside it."""
    shutil.rmtree(project / "reports", ignore_errors=True)
    (row,) = run_given(project, moments).report.judgement.rows
    return row.status
