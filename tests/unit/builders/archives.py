"""Archives made by hand, real ones from the golden records, and files that exist only as bytes."""

import gzip
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path


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
    return gzip.decompress((GOLDEN / model / "artifact.pt.gz").read_bytes())
