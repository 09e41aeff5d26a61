"""The control groups of this process, of either version: where limits and counters may stand."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.machine.files import text_of

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def folders(controller: str, mount: Path = MOUNT, own: Path = OWN) -> Iterator[Path]:
    """Yield the folders of the own group and those above it; in a container only the root may be there.

    ``controller``: ``"cpu"``, ``"memory"`` or ``"pids"``, for which version 1 has groups of their own; ``own``: the
    file with the group's memberships.
    """
    for line in text_of(own).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for place in (controllers, controller) if controllers else ("", "unified"):
            yield from (mount / place / part for part in (inside, *inside.parents))


def limits(controller: str, *files: str, mount: Path = MOUNT, own: Path = OWN) -> Iterator[int]:
    """Yield the limits that stand in ``files`` of the own group and those above it; a group need not have one."""
    for folder in folders(controller, mount, own):
        for text in (text_of(folder / name).strip() for name in files):
            if text.isdecimal():  # "max" is none
                yield int(text)
