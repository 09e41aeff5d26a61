"""Reads the directory of a zip archive and single members of it, within limits. Weights are read only where packed.

Written out rather than taken from ``zipfile``: what torch's own reader (miniz) would open is wanted, every limit has to
hold before memory is spent, and nothing in a name is ever used as a path.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from harness.artifacts.archive.limits import CannotRead, Limits, Source
from harness.core.archive import ArchiveProblem

END = b"PK\x05\x06"
END_BYTES = 22
LONGEST_COMMENT = 0xFFFF
LOCATOR64 = b"PK\x06\x07"
END64 = b"PK\x06\x06"
ENTRY = b"PK\x01\x02"
LOCAL = b"PK\x03\x04"
LOCAL_BYTES = 30
KNOWN_FLAGS = 0x0808
"""Sizes and checksum follow the member (torch writes them behind what has bytes), and its name is UTF-8."""
FOLLOWED = 0x0008
ZIP64_EXTRA = 0x0001
STORED, DEFLATED = 0, 8
CHUNK_BYTES = 1 << 20
ENCRYPTED = 0x1
SERIALIZATION_ID = ".data/serialization_id"
SPELT = frozenset(
    ("bytecode.pkl", "byteorder", "constants.pkl", "data.pkl", "model.json", "version", ".data/version")
) | {SERIALIZATION_ID}
SYMLINK_MODE = 0o120000
UNIX = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One entry of the directory."""

    name: str
    size: int
    packed: int
    offset: int
    method: int
    flags: int
    crc: int
    raw: bytes
    disk: int
    attributes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Directory:
    """All entries. ``root`` is the folder of the first one, as torch's reader takes it; names below it in ``inside``.

    Without such a folder ``root`` is empty and the names are whole.

    Attributes:
        fingerprint: of all members before the serialization id, as torch computes it when it writes an archive.
    """

    root: str
    inside: dict[str, Member]
    count: int
    fingerprint: int
    problems: tuple[ArchiveProblem, ...]


def read_directory(source: Source, limits: Limits) -> Directory:
    """Return the directory of a zip. Raises ``CannotRead``: there is none, it is damaged, or it is beyond a limit."""
    count, size, offset, foreign = _end_of_directory(source)
    if count > limits.members:
        raise CannotRead("too_large", f"the archive lists {count} members; at most {limits.members} are read")
    if size > limits.directory_bytes:
        raise CannotRead("too_large", f"the archive's directory has {size} bytes; {limits.directory_bytes} are read")
    if offset + size > source.size or size < count * 46:
        raise CannotRead("damaged", "the archive's directory lies outside the file: truncated?")
    inside: dict[str, Member] = {}
    seen: set[str] = set()  # torch's reader does not tell capitals apart
    root = ""
    problems = {"foreign_zip": foreign} if foreign else {}
    fingerprint, written = 0, True
    for index, (member, odd) in enumerate(_entries(source.read(offset, size), count)):
        if odd:
            problems.setdefault(odd, f"{member.name!r}")
        folder, slash, rest = member.name.partition("/")
        if index == 0 and slash:
            root = folder
        if member.offset >= offset or member.offset + LOCAL_BYTES + member.packed > source.size:
            raise CannotRead("damaged", f"{member.name!r} lies outside the archive")
        if member.method == STORED and member.size != member.packed:
            raise CannotRead("damaged", f"{member.name!r} is not packed and has two sizes")
        key = member.name if not root else rest if folder == root else f"../{member.name}"
        foreign = _foreign(source, member, offset) if can_unpack(member) else ""
        if foreign:
            problems.setdefault("foreign_zip", f"{member.name!r} {foreign}")
        written = written and key != SERIALIZATION_ID
        if written and member.size:  # of what has bytes, whoever packed it
            fingerprint = _combined(fingerprint, member.crc)
        if not can_unpack(member):
            problems.setdefault("unsupported", _packing(member))
        if key.lower() in SPELT and key not in SPELT:
            problems.setdefault("misspelt_name", f"{member.name!r}")
        folded = member.name.lower()
        if folded in seen:
            problems.setdefault("duplicate_member", f"{member.name!r} is there more than once")
        seen.add(folded)
        inside.setdefault(key, member)  # torch's reader may take either: the problem makes every prediction unknown
    reported = tuple(ArchiveProblem(kind=kind, text=_words(kind, text)) for kind, text in sorted(problems.items()))
    return Directory(root=root, inside=inside, count=count, fingerprint=fingerprint, problems=reported)


def _combined(seed: int, value: int) -> int:
    """Return what ``c10::hash_combine`` (c10/util/hash.h) makes of two numbers of 64 bits."""
    return seed ^ ((value + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & 0xFFFFFFFFFFFFFFFF)


def _foreign(source: Source, member: Member, end: int) -> str:
    """Return in what a member's own header is not as torch or an ordinary zip writes it; empty if in nothing."""
    head = source.read(member.offset, LOCAL_BYTES + len(member.raw))
    if len(head) < LOCAL_BYTES + len(member.raw) or head[:4] != LOCAL:
        return "is not where the directory says"
    flags, method, crc, packed, size, name_bytes, extra_bytes = struct.unpack("<6xHH4xIIIHH", head[:LOCAL_BYTES])
    if member.flags & ~KNOWN_FLAGS or member.disk or member.attributes & 0xFFFF:  # of DOS: 0x10 is a folder
        return "has flags or attributes, or lies on a disk, that torch does not write"
    listed_here = (member.flags, member.method, member.raw, len(member.raw))
    if (flags, method, head[LOCAL_BYTES:], name_bytes) != listed_here:
        return "is described in two ways"
    facts = zip((crc, packed, size), (member.crc, member.packed, member.size), strict=True)
    if any(own not in (listed, 0xFFFFFFFF) and (own or not flags & FOLLOWED) for own, listed in facts):
        return "is described in two ways"
    if member.offset + LOCAL_BYTES + name_bytes + extra_bytes + member.packed > end:
        return "overlaps the directory"
    return ""


def read_member(source: Source, member: Member, limit: int, limits: Limits) -> bytes:
    """Return a member's content. Raises ``CannotRead``: not packed as torch does, or beyond ``limit`` bytes."""
    if not can_unpack(member):
        raise CannotRead("unsupported", _packing(member))
    if member.size > limit:
        raise CannotRead("too_large", f"{member.name!r} unpacks to {member.size} bytes; at most {limit} are read")
    if member.size > limits.ratio * max(member.packed, 64):
        raise CannotRead("zip_bomb", f"{member.name!r} unpacks from {member.packed} to {member.size} bytes")
    packed = source.read(_begin(source, member), min(member.packed, limit + (limit >> 8) + 1024))
    if len(packed) < member.packed:
        raise CannotRead("damaged", f"{member.name!r} ends beyond the file: truncated?")
    data = packed if member.method == STORED else _inflate(packed, member)
    if len(data) != member.size:
        raise CannotRead("damaged", f"{member.name!r} has {len(data)} bytes where {member.size} were promised")
    if zlib.crc32(data) != member.crc:
        raise CannotRead("damaged", f"{member.name!r} does not match its checksum")
    return data


def contents(source: Source, member: Member) -> Iterator[bytes]:
    """Yield what a member holds, piece by piece, its checksum unread as in torch. Raises ``CannotRead``: damaged."""
    if not can_unpack(member):
        raise CannotRead("unsupported", _packing(member))
    begin, engine, left = _begin(source, member), zlib.decompressobj(-zlib.MAX_WBITS), member.size
    for offset in range(begin, begin + member.packed, CHUNK_BYTES):
        waiting = source.read(offset, min(CHUNK_BYTES, begin + member.packed - offset))
        while waiting:
            try:
                piece = waiting if member.method == STORED else engine.decompress(waiting, CHUNK_BYTES)
            except zlib.error as error:
                raise CannotRead("damaged", f"{member.name!r} cannot be unpacked: {error}") from None
            left -= len(piece)
            if left < 0:
                raise CannotRead(
                    "damaged", f"{member.name!r} holds more than the {member.size} bytes that were promised"
                )
            yield piece
            waiting = b"" if member.method == STORED else engine.unconsumed_tail
    if left or (member.method == DEFLATED and not engine.eof):
        raise CannotRead("damaged", f"{member.name!r} does not hold the {member.size} bytes that were promised")


@dataclass(frozen=True, slots=True)
class Part:
    """A member that is not packed, to be read in place."""

    source: Source
    begin: int
    size: int

    def read(self, offset: int, length: int) -> bytes:
        return self.source.read(self.begin + offset, max(0, min(length, self.size - offset)))


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A member's content, to be read as a file."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


def open_member(source: Source, member: Member, limits: Limits) -> Source:
    """Return one member as a file: checked where it can be read whole, in place where it is large and not packed."""
    if member.method != STORED or member.size <= limits.program_bytes or not can_unpack(member):
        return Unpacked(read_member(source, member, limits.program_bytes, limits))
    return Part(source, _begin(source, member), member.size)


def _begin(source: Source, member: Member) -> int:
    head = source.read(member.offset, LOCAL_BYTES)
    if len(head) < LOCAL_BYTES or head[:4] != LOCAL:
        raise CannotRead("damaged", f"{member.name!r} is not where the directory says")
    names, extra = struct.unpack("<HH", head[26:30])
    return member.offset + LOCAL_BYTES + int(names) + int(extra)


def can_unpack(member: Member) -> bool:
    return not member.flags & ENCRYPTED and member.method in (STORED, DEFLATED)


def _packing(member: Member) -> str:
    return f"{member.name!r} is encrypted, or packed with method {member.method}"


def _inflate(packed: bytes, member: Member) -> bytes:
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        return engine.decompress(packed, member.size + 1)
    except zlib.error as error:
        raise CannotRead("damaged", f"{member.name!r} cannot be unpacked: {error}") from None


def _end_of_directory(source: Source) -> tuple[int, int, int, str]:
    """Return how many entries the directory has, its size, where it begins, and what torch would not have written."""
    length = min(source.size, END_BYTES + LONGEST_COMMENT)
    tail = source.read(source.size - length, length)
    at = tail.rfind(END)
    if at < 0 or len(tail) - at < END_BYTES:
        raise CannotRead("damaged", "a zip archive without its directory: truncated?")
    disk, first_disk, here, count, size, offset, comment = struct.unpack("<4H2IH", tail[at + 4 : at + END_BYTES])
    whole = (disk, first_disk, here) == (0, 0, count) and at + END_BYTES + comment == len(tail)
    foreign = "" if whole else "its directory says that the archive has several disks, or a comment that is not there"
    locator = tail[at - 20 : at] if at >= 20 else b""
    if locator[:4] != LOCATOR64:
        return count, size, offset, foreign
    of_disk, where, disks = struct.unpack("<IQI", locator[4:])
    record = source.read(where, 56) if where < source.size else b""
    if len(record) < 56 or record[:4] != END64:
        raise CannotRead("damaged", "the archive's 64-bit directory is not where it should be")
    # Torch's reader takes these whatever stands above.
    long_form: tuple[int, int, int] = struct.unpack("<QQQ", record[32:56])
    record_bytes, disk, first_disk, here = struct.unpack("<Q4xIIQ", record[4:32])
    if (of_disk, disks, record_bytes, disk, first_disk, here) != (0, 1, 44, 0, 0, long_form[0]):
        foreign = "its 64-bit directory says that the archive has several disks, or has another size"
    for short, long, marker in zip((count, size, offset), long_form, (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF), strict=True):
        if short not in (long, marker):
            raise CannotRead("damaged", "the archive's two directories differ")
    return *long_form, foreign


def _entries(data: bytes, count: int) -> Iterator[tuple[Member, str]]:
    at = 0
    for _ in range(count):
        head = data[at : at + 46]
        if len(head) < 46 or head[:4] != ENTRY:
            raise CannotRead("damaged", "the archive's directory is damaged")
        made_by, flags, method, crc, packed, size, name_bytes, extra_bytes, comment_bytes = struct.unpack(
            "<5xB2xHH4xIIIHHH12x", head
        )
        disk, mode, offset = struct.unpack("<H2xII", head[34:46])
        end = at + 46 + name_bytes
        raw, extra = data[at + 46 : end], data[end : end + extra_bytes]
        if 0xFFFFFFFF in (packed, size, offset):
            size, packed, offset = _zip64(extra, size, packed, offset)
        name = raw.decode("utf-8", "backslashreplace")
        member = Member(
            name=name,
            size=size,
            packed=packed,
            offset=offset,
            method=method,
            flags=flags,
            crc=crc,
            raw=raw,
            disk=disk,
            attributes=mode,
        )
        yield member, _odd(raw, name, (mode >> 16) & 0o170000 if made_by == UNIX else 0)
        at = end + extra_bytes + comment_bytes


def _zip64(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack("<HH", extra[at : at + 4])
        if kind == ZIP64_EXTRA:
            field = extra[at + 4 : at + 4 + length]
            numbers = iter(struct.unpack(f"<{len(field) // 8}Q", field[: len(field) // 8 * 8]))
            return tuple(next(numbers, item) if item == 0xFFFFFFFF else item for item in (size, packed, offset))  # type: ignore[return-value]
        at += 4 + length
    return size, packed, offset


def _odd(raw: bytes, name: str, kind: int) -> str:
    if kind == SYMLINK_MODE:
        return "symlink"
    if raw.startswith(b"/") or b"\\" in raw or b".." in raw.split(b"/") or raw[1:2] == b":" or b"\0" in raw:
        return "unsafe_name"
    return "" if name.isprintable() and raw.decode("utf-8", "ignore").encode() == raw else "unreadable_name"


def _words(kind: str, text: str) -> str:
    return {
        "symlink": f"{text} is a symbolic link",
        "unsafe_name": f"{text} would leave the folder it is unpacked into",
        "unreadable_name": f"{text} is no UTF-8 name",
        "misspelt_name": f"{text} is taken by torch for the same name without capitals",
    }.get(kind, text)
