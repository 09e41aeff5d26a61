"""Files that are made from a good artifact to do harm, or to be broken."""

import binascii
import struct
import zipfile
import zlib
from pathlib import Path

PIECE_BYTES = 16 << 20


def truncated(good: Path, target: Path) -> Path:
    """Write the first half of a file."""
    data = good.read_bytes()
    target.write_bytes(data[: len(data) // 2])
    return target


def bit_flipped(good: Path, target: Path) -> Path:
    """Flip one bit of the code, as it is stored."""
    data = bytearray(good.read_bytes())
    with zipfile.ZipFile(good) as archive:
        info = next(item for item in archive.infolist() if item.filename.endswith(".py"))
    name, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
    data[info.header_offset + 30 + name + extra + info.compress_size // 2] ^= 0x10
    target.write_bytes(data)
    return target


def bomb(good: Path, target: Path, unpacked_bytes: int) -> Path:
    """Write the archive with a tensor's bytes that unpack to ``unpacked_bytes`` of zeros from a thousandth of that."""
    pieces = unpacked_bytes // PIECE_BYTES
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    zeros = bytes(PIECE_BYTES)
    packer.compress(zeros)
    packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)  # may be repeated
    checksum = 0
    for _ in range(pieces):
        checksum = binascii.crc32(zeros, checksum)
    members = []
    with zipfile.ZipFile(good) as archive:
        for info in archive.infolist():
            content, size, crc, method = archive.read(info), info.file_size, info.CRC, zipfile.ZIP_STORED
            if "/data/" in info.filename or "/constants/" in info.filename:
                content, size, crc, method = piece * pieces + b"\x03\x00", pieces * PIECE_BYTES, checksum, 8
            members.append((info.filename.encode(), content, size, crc, method))
    target.write_bytes(_zip(members))
    return target


def _zip(members: list[tuple[bytes, bytes, int, int, int]]) -> bytes:
    """Return a zip of finished contents: name, what is stored, size, checksum, method."""
    body, directory = b"", b""
    for name, content, size, crc, method in members:
        common = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0x21, crc, len(content), size, len(name), 0)
        directory += (
            b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name
        )
        body += b"PK\x03\x04" + common + name + content
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end
