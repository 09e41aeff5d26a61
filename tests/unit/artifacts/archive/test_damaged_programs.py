"""Whatever becomes of a .pt2 or a package, it is read or refused with one clear line, soon: never a failure of ours."""

import io
import json
import random
import struct
import time
import zipfile
from collections.abc import Callable

import pytest

from harness.artifacts.archive.formats import FAILURES
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.archive.reading import read_artifact
from harness.core.archive import ArchiveFacts, Processor
from harness.checks.prediction.predict import predict
from tests.unit.artifacts.archive.test_programs import archive, older, package
from tests.unit.builders.archives import BytesSource
from tests.unit.checks.prediction.test_predict_programs import NEVER, NEW, OLD, STRICT

WHOLE = (archive(), older(), package(0x3E, AOTI_DEVICE_KEY="cpu", AOTI_MACHINE="x86_64", AOTI_CPU_ISA="AVX2"))
HERE = Processor(machine="x86_64", instructions=frozenset({"avx2"}))
TIMES, LONGEST_S = 1000, 5.0
NAMES = (
    *(
        "../../etc/passwd",
        "/abs",
        "a\\b",
        "net/models/model.json",
        "models/model.json",
        "version",
        "net/archive_version",
    ),
    *(
        "x" * 5000,
        "\u202e.json",
        "C:evil",
        "net/data/aotinductor/model/m.so",
        "data/aotinductor/../m_metadata.json",
        "",
    ),
)
VALUES: tuple[str, ...] = (
    *("null", "true", "-1", "NaN", "-Infinity", "1e999", "9" * 5000, "9" * 4000, '"\\ud800"', '""', "[]", "{}", "[[]]"),
    *("[" * 100_000, '{"a":' * 5000, '{"major": 8.5}', '{"major": "8", "minor": null}', '{"target": ["torch.ops.a"]}'),
    *('{"dtype": 1e30, "sizes": 3}', '{"nodes": [{"node": {"target": {}}}]}', '{"outputs": [{"as_tensors": 1}]}'),
)


def flipped(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 9)):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(data: bytes, draw: random.Random) -> bytes:
    begin, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return draw.choice((data[:begin], data[begin:], data[:begin] + data[end:], data + data[begin:end]))


def numbers_changed(data: bytes, draw: random.Random) -> bytes:
    """Change a field of the zip's own tables, or of the library's."""
    changed = bytearray(data)
    marks = [at for mark in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"\x7fELF") if (at := data.rfind(mark)) >= 0]
    at = min(draw.choice(marks) + draw.randrange(64), len(data) - 4)
    value = draw.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, draw.getrandbits(32)))
    struct.pack_into(*draw.choice((("<I", changed, at, value), ("<H", changed, at, value & 0xFFFF))))
    return bytes(changed)


def members_changed(data: bytes, draw: random.Random) -> bytes:
    """Pack it again with members that are missing, twice there, named otherwise, or hold something else."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(target, "w") as changed:
        for item in source.infolist():
            content = source.read(item)
            name = draw.choice((item.filename, item.filename, item.filename, draw.choice(NAMES)))
            for _ in range(draw.choice((0, 1, 1, 1, 1, 2))):
                how = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
                changed.writestr(zipfile.ZipInfo(name), draw.choice((content, content, b"", b"\xff")), how)
    return target.getvalue()


def hostile_json(data: bytes, draw: random.Random) -> bytes:
    """Put a value of another kind, or none, in some place of its JSON."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(target, "w") as changed:
        for item in source.infolist():
            content = source.read(item)
            if item.filename.endswith(".json"):
                text = content.decode()
                places = [at for at, character in enumerate(text) if character in ":,[{"]
                at = draw.choice(places or [0]) + 1
                gone = draw.randrange(6)
                content = (text[:at] + draw.choice(VALUES) + draw.choice((",", "", "}")) + text[at + gone :]).encode()
                content = draw.choice(
                    (content, json.dumps([draw.choice(NAMES)]).encode(), draw.choice(VALUES).encode())
                )
            changed.writestr(zipfile.ZipInfo(item.filename), content)
    return target.getvalue()


def read(data: bytes) -> ArchiveFacts | None:
    try:
        return read_artifact(BytesSource(data), "net.pt2")
    except CannotRead as error:
        assert error.kind in FAILURES
        assert len(error.text) < 20_000
        return None


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("damage", [flipped, cut, numbers_changed, members_changed, hostile_json])
def test_damaged_programs_and_packages_are_read_or_refused(damage: Callable[[bytes, random.Random], bytes]) -> None:
    draw, refused = random.Random(damage.__name__), 0
    for number in range(TIMES):
        data = damage(WHOLE[number % len(WHOLE)], draw)
        begin = time.monotonic()
        facts = read(data)
        if facts is None:
            refused += 1
        else:
            for release in (OLD, NEW, STRICT, NEVER):
                predict(facts, {"new": release}, HERE)
        assert time.monotonic() - begin < LONGEST_S
    assert 0 < refused < TIMES
