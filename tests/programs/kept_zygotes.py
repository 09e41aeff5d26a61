"""Zygotes of real torch that outlive a run: importing it takes seconds of each core, and many tests of a session do.

They are real ones, and every probe is a fork of its own as ever; what is shared is the import. ``nox -s full`` keeps
none, so that there each run starts its own.
"""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

from harness.probing import processes, runner
from harness.probing.zygote import Zygote
from harness.system.processes import REAP_DEADLINE_S
from harness.worker import wire

Key = tuple[str, tuple[tuple[str, str], ...], bytes]


class KeptZygote(Zygote):
    """One that a run gives back instead of ending it, without a child."""

    def __init__(self, key: Key, run_dir: Path, name: str, give_back: Callable[["KeptZygote"], bool]) -> None:
        interpreter, env, _ = key
        super().__init__(interpreter, run_dir, dict(env), name=name)
        self.key = key
        self._give_back = give_back

    def close(self) -> bool:
        """End all children, and the zygote too unless it is kept."""
        return (self._ends_children() and self._give_back(self)) or self.end()

    def end(self) -> bool:
        """End the zygote."""
        return super().close()

    def _ends_children(self) -> bool:
        """Whether all that it had forked, or was about to, is reaped, and it takes orders still."""
        limit = time.monotonic() + REAP_DEADLINE_S
        while self.alive and time.monotonic() < limit:
            with self._lock:
                children = list(self._children.values())
            if not children:
                return self._ready.is_set()
            for child in children:
                child.kill()
            time.sleep(0.005)
        return False


class Shelf:
    """Idle zygotes, at most ``most`` of them, by interpreter, environment variables and order; the oldest one leaves."""

    def __init__(self, folder: Path, environments: Path, most: int = 6) -> None:
        self._folder = folder
        self._environments = environments
        self._most = most
        self._idle: list[KeptZygote] = []
        self._lock = threading.Lock()
        self._made = 0

    def take(self, interpreter: str, run_dir: Path, env: Mapping[str, str], *, name: str = "") -> Zygote:
        """Return an idle one that was started alike, or start one, in a folder that outlives that of the run."""
        if not Path(interpreter).is_relative_to(self._environments):  # a stub, which may be told to misbehave
            return Zygote(interpreter, run_dir, env, name=name)
        order = (run_dir / wire.REQUEST).read_bytes()
        key = (interpreter, tuple(sorted(processes.worker_environment(env).items())), order)
        with self._lock:
            found = next((one for one in reversed(self._idle) if one.key == key and one.alive), None)
            if found is not None:
                self._idle.remove(found)
                return found
            self._made += 1
            folder = self._folder / f"zygote-{self._made}"
        folder.mkdir(parents=True)
        shutil.copy(run_dir / wire.REQUEST, folder)
        return KeptZygote(key, folder, name, self._keep)

    def _keep(self, zygote: KeptZygote) -> bool:
        with self._lock:
            self._idle.append(zygote)
            oldest = self._idle.pop(0) if len(self._idle) > self._most else None
        if oldest is not None:
            oldest.end()
        return True

    def close(self) -> None:
        """End them all."""
        with self._lock:
            idle, self._idle = self._idle, []
        for zygote in idle:
            zygote.end()


@contextlib.contextmanager
def kept(folder: Path, environments: Path) -> Iterator[None]:
    """Let the runs of this process take their zygotes from one shelf, and end them afterwards."""
    shelf = Shelf(folder, environments)
    with mock.patch.object(runner, "Zygote", shelf.take):
        try:
            yield
        finally:
            shelf.close()
