"""The members of a golden bundle, each read in place: none is packed, and nothing of its directory is trusted."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from harness.artifacts import files
from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.members import (
    CHUNK_BYTES,
    ENCRYPTED,
    LOCAL,
    LOCAL_BYTES,
    STORED,
    Member,
    read_directory,
    read_member,
)
from harness.core.golden import ARTIFACT, FILES, RECORD

LARGEST_RECORD: Final = 64 << 20
"""Bytes of a ``record.json``: far above what real ones have. What is beside it may be as large as the file."""


def artifact_window(source: files.FileSource) -> "Window":
    """Return the artifact in a bundle, to be read in place. Raises ``CannotRead``: the bundle is damaged."""
    begin, size = OpenBundle(source, members_of(source)).place(ARTIFACT)
    return Window(source, begin, size)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of an open file, read as if it were a file."""

    source: files.FileSource
    begin: int
    size: int

    def read(self, offset: int, length: int) -> bytes:
        return self.source.read(self.begin + offset, max(0, min(length, self.size - offset)))


@dataclass(frozen=True, slots=True)
class OpenBundle:
    source: files.FileSource
    members: Mapping[str, Member]

    def record(self) -> bytes:
        return read_member(self.source, self.members[RECORD], LARGEST_RECORD, LIMITS)

    def place(self, name: str) -> tuple[int, int]:
        member = self.members[name]
        head = self.source.read(member.offset, LOCAL_BYTES)
        if len(head) < LOCAL_BYTES or head[:4] != LOCAL:
            raise CannotRead("damaged", f"{name} is not where the directory says")
        return member.offset + LOCAL_BYTES + sum(struct.unpack("<HH", head[26:30])), member.size

    def chunks(self, name: str) -> Iterator[bytes]:
        begin, size = self.place(name)
        for offset in range(0, size, CHUNK_BYTES):
            length = min(CHUNK_BYTES, size - offset)
            chunk = self.source.read(begin + offset, length)
            if len(chunk) != length:
                raise CannotRead("damaged", f"{name} ends beyond the file: truncated, or changed while it was read?")
            yield chunk


def members_of(source: files.FileSource) -> Mapping[str, Member]:
    if source.read(0, len(LOCAL)) != LOCAL:
        raise CannotRead("damaged", "is no golden bundle")
    directory = read_directory(source, LIMITS)
    wanted = {*FILES, RECORD}
    if RECORD not in directory.inside:
        raise CannotRead("damaged", f"is no golden bundle: it has no {RECORD}")
    for problem in directory.problems:
        raise CannotRead("damaged", f"is no golden bundle as the gate writes them: {problem.text}")
    odd = sorted(wanted ^ directory.inside.keys())
    if odd:
        what = "has no" if odd[0] in wanted else "has a member that is none of a bundle's:"
        raise CannotRead("damaged", f"{what} {odd[0]!a:.100}")
    for name, member in directory.inside.items():
        if member.method != STORED or member.flags & ENCRYPTED:
            raise CannotRead("unsupported", f"{name} is packed or encrypted; the members of a bundle are stored as is")
    if (size := directory.inside[RECORD].size) > LARGEST_RECORD:
        raise CannotRead("too_large", f"{RECORD} has {size} bytes; at most {LARGEST_RECORD} are read")
    if sum(member.size for member in directory.inside.values()) > source.size:
        raise CannotRead("zip_bomb", "its members lie over each other")
    return directory.inside
