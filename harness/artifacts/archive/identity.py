"""What of an archive is its program, and what are its weights: a digest of each, for fleets of retrained models."""

import hashlib
import re
from dataclasses import dataclass

from harness.artifacts.archive.limits import LIMITS, Source
from harness.artifacts.archive.members import CHUNK_BYTES, LOCAL, Directory, contents, read_directory, read_member

CODE = ("code/", ".py")
# The versions decide which operators are replaced by older ones while the code is loaded.
PICKLES = ("version", ".data/version", "data.pkl", "constants.pkl")
TENSORS = ("data/", "constants/", "tensors/")
# Torch numbers classes of one name by how many the exporting process had seen: it says nothing about the program.
MANGLED = re.compile(rb"___torch_mangle_(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Two sha256: over code, structure and what is no tensor; and over the bytes of all tensors."""

    program: str
    weights: str


def identity_of(source: Source) -> Identity:
    """Return what tells programs and weights apart; archives of equal identity are the same to a loader.

    A mobile flatbuffer, which no zip is, is a program as a whole. Raises ``CannotRead``: damaged, or beyond a limit.
    """
    if source.read(0, len(LOCAL)) != LOCAL:
        whole = hashlib.sha256()
        for offset in range(0, source.size, CHUNK_BYTES):
            whole.update(source.read(offset, CHUNK_BYTES))
        return Identity(program=whole.hexdigest(), weights=hashlib.sha256().hexdigest())
    directory = read_directory(source, LIMITS)
    return Identity(program=_program(source, directory), weights=_weights(source, directory))


def _program(source: Source, directory: Directory) -> str:
    """Return the digest of pickles and code, classes numbered in the order in which they are met."""
    inside = directory.inside
    begun = [name for name in PICKLES if name in inside]
    code = sorted(name for name in inside if name.startswith(CODE[0]) and name.endswith(CODE[1]))
    numbered = {match[1]: name for name in code for match in MANGLED.finditer(name.encode())}
    waiting = [*begun, *(name for name in code if not MANGLED.search(name.encode()))]
    numbers: dict[bytes, int] = {}
    digest, seen = hashlib.sha256(), set(waiting)

    def number(match: re.Match[bytes]) -> bytes:
        name = numbered.get(match[1])
        if name is not None and name not in seen:
            seen.add(name)
            waiting.append(name)
        return b"___torch_mangle_%d" % numbers.setdefault(match[1], len(numbers))

    left = LIMITS.total_code_bytes + len(PICKLES) * LIMITS.pickle_bytes
    while waiting:
        name = waiting.pop(0)
        content = MANGLED.sub(number, read_member(source, inside[name], left, LIMITS))
        left -= len(content)
        digest.update(b"%b %d " % (MANGLED.sub(number, name.encode("utf-8", "surrogateescape")), len(content)))
        digest.update(content)
    for name in sorted(set(code) - seen):  # of classes that nothing names
        content = read_member(source, inside[name], left, LIMITS)
        digest.update(b"%b %d " % (name.encode("utf-8", "surrogateescape"), len(content)) + content)
    return digest.hexdigest()


def _weights(source: Source, directory: Directory) -> str:
    digest = hashlib.sha256()
    for name in sorted(name for name in directory.inside if name.startswith(TENSORS)):
        member = directory.inside[name]
        digest.update(b"%b %d " % (name.encode("utf-8", "surrogateescape"), member.size))
        for piece in contents(source, member):
            digest.update(piece)
    return digest.hexdigest()
