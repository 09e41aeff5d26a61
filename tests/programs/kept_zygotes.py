"""Zygotes of real torch that outlive a run: importing it takes seconds of each core, and many tests of a session do.

They are real ones, and every probe is a fork of its own as ever; what is shared is the import. ``nox -s full`` keeps
none, so that there each run starts its own.
"""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

from harness.probing import processes, runner
from harness.probing.zygote import Zygote
from harness.worker import wire

Key = tuple[str, tuple[tuple[str, str], ...], bytes]


class KeptZygote(Zygote):
    """One that a run without a child of it gives back instead of ending it."""

    def __init__(self, key: Key, run_dir: Path, name: str, give_back: Callable[["KeptZygote"], bool]) -> None:
        interpreter, env, _ = key
        super().__init__(interpreter, run_dir, dict(env), name=name)
        self.key = key
        self._give_back = give_back

    @property
    def is_idle(self) -> bool:
        """Whether it takes orders and has no child: not one that lives, nor one that it was told to fork."""
        with self._lock:
            return self.alive and self._ready.is_set() and not self._children

    def close(self) -> bool:
        """Give it back if it is idle; else end it with its children, as every other zygote is."""
        return (self.is_idle and self._give_back(self)) or self.end()

    def end(self) -> bool:
        """End the zygote."""
        return super().close()


class Shelf:
    """Idle zygotes, at most ``most`` of them, by interpreter, environment variables and order; the oldest one leaves."""

    def __init__(self, folder: Path, environments: Path, most: int = 4) -> None:
        self._folder = folder
        self._environments = environments
        self._most = most
        self._made: list[KeptZygote] = []
        self._idle: list[KeptZygote] = []
        self._lock = threading.Lock()

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
            folder = self._folder / f"zygote-{len(self._made)}"
            folder.mkdir(parents=True)
            shutil.copy(run_dir / wire.REQUEST, folder)
            self._made.append(KeptZygote(key, folder, name, self._keep))
            return self._made[-1]

    def _keep(self, zygote: KeptZygote) -> bool:
        with self._lock:
            assert zygote not in self._idle, f"{zygote.key[0]} was given back twice"
            self._idle.append(zygote)
            oldest = self._idle.pop(0) if len(self._idle) > self._most else None
        assert oldest is None or oldest.end(), "it could not be ended"
        return True

    def close(self) -> None:
        """End them all; a run that has not closed its zygotes fails the session."""
        lent = [zygote.key[0] for zygote in self._made if zygote.alive and zygote not in self._idle]
        ended = [zygote.end() for zygote in self._made]
        assert (lent, all(ended)) == ([], True), f"not closed: {lent}; ended: {ended}"


@contextlib.contextmanager
def kept(folder: Path, environments: Path) -> Iterator[None]:
    """Let the runs of this process take their zygotes from one shelf, and end them afterwards."""
    shelf = Shelf(folder, environments)
    with mock.patch.object(runner, "Zygote", shelf.take):
        try:
            yield
        finally:
            shelf.close()
