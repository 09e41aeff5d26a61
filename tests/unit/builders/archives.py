"""Archives made by hand, real ones from the golden records, files that exist only as bytes, and what is predicted of them."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.artifacts.archive.elf import DYNAMIC_SYMBOLS, GLOBAL, WEAK
from harness.artifacts.archive.schemas import parse_schema
from harness.core.archive import ArchiveFacts, ArchiveFormat, CodePlace, OperatorRegistry, OperatorUse, Schema
from harness.core.models import GivenArtifact, ModelDeclaration

PROJECT = Path(__file__).resolve().parents[3]
GOLDEN = PROJECT / "golden" / "records"

# A module without weights as torch writes it: GLOBAL, EMPTY_TUPLE, NEWOBJ, EMPTY_DICT with "training", BUILD, STOP.
MODULE = b"\x80\x02c__torch__.m\nNet\nq\x00)\x81}(X\x08\x00\x00\x00training\x88ub."
NOTHING = b"\x80\x02).."[:-1]
CODE = """class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.m.Net,
    x: Tensor) -> Tensor:
    return torch.relu(x)
"""


class BytesSource:
    """A file in memory that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.taken = 0

    def read(self, offset: int, length: int) -> bytes:
        piece = self._data[offset : offset + length]
        self.taken += len(piece)
        return piece


def zipped(members: Mapping[str, bytes | str], *, packed: bool = False) -> bytes:
    """Return a zip with these members in this order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED)
    return buffer.getvalue()


def library(machine: int, *, taken: Sequence[str] = (), offered: Sequence[str] = ()) -> bytes:
    """Return a shared library of 64 bits with nothing but its table of symbols, one of which is local and one weak."""
    strings, symbols = b"\0", bytes(24)
    for name, kind, section in (
        *((name, GLOBAL, 0) for name in taken),
        *((name, GLOBAL, 1) for name in offered),
        ("local", 0, 1),
        ("weak", WEAK, 0),
    ):
        symbols += struct.pack("<IBBHQQ", len(strings), kind << 4, 0, section, 0, 0)
        strings += name.encode() + b"\0"
    tables, parts = 3 * 64, 64
    sections = bytes(64)
    for kind, data, link in ((DYNAMIC_SYMBOLS, symbols, 2), (3, strings, 0)):
        at = parts + tables + (0 if data is symbols else len(symbols))
        sections += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, at, len(data), link, 0, 0, 0)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, 64, 0, 64, 0, 0, 64, 3, 0
    )
    return head + sections + symbols + strings


def torchscript(code: str = CODE, /, **changes: bytes | str) -> bytes:
    """Return an archive with one code file; ``changes`` replace or add members, by name with ``/`` as ``__``."""
    members: dict[str, bytes | str] = {
        "net/data.pkl": MODULE,
        "net/code/__torch__/m.py": code,
        "net/constants.pkl": NOTHING,
        "net/version": "3\n",
    }
    members |= {f"net/{name.replace('__', '/')}": content for name, content in changes.items()}
    return zipped(members)


def golden(model: str) -> bytes:
    """Return the artifact of a golden record, as torch wrote it."""
    return next((GOLDEN / model).glob("*/artifact")).read_bytes()


def given(path: Path, digest: str = "0123456789abcdef") -> ModelDeclaration:
    return ModelDeclaration(
        name="m",
        package_root=str(path.parent),
        source=path.name,
        source_digest=digest,
        how="file",
        given=GivenArtifact(path=str(path)),
    )


PLACE = CodePlace(member="code/__torch__/m.py", line=7, function="__torch__.m.Net.forward")


def use(name: str, *arguments: str, keywords: tuple[str, ...] = (), results: int = 0) -> OperatorUse:
    return OperatorUse(name=name, arguments=arguments, keywords=keywords, results=results, place=PLACE)


def facts(*uses: OperatorUse, **changes: Any) -> ArchiveFacts:
    given: dict[str, Any] = {
        "path": "net.pt",
        "size_bytes": 1000,
        "format": ArchiveFormat.TORCHSCRIPT,
        "archive_version": "3",
    }
    return ArchiveFacts(**(given | {"operators": uses} | changes))


def schema(text: str) -> Schema:
    return parse_schema(text)[1]


def registry(torch: str, *schemas: str, **changes: Any) -> OperatorRegistry:
    found: dict[str, tuple[Schema, ...]] = {}
    for text in schemas:
        name, parsed = parse_schema(text)
        found[name] = (*found.get(name, ()), parsed)
    given: dict[str, Any] = {
        "torch": torch,
        "operator_version": 10,
        "schemas": found,
        "upgraders": {},
        "custom_classes": frozenset(),
        "dtypes": frozenset(("float32", "quint4x2")),
        "type_names": frozenset(),
    }
    return OperatorRegistry(**(given | changes))
