"""Reads ``.npz``: a zip archive of ``.npy`` members. No NumPy, and nothing is unpickled."""

import ast
import re
import struct
import zipfile
import zlib

import torch

from gate_worker.requests.flat import check_flat
from gate_worker.requests.values import BadInputs, elements_of, from_bytes, swapped

try:
    from lzma import LZMAError
except ImportError:  # this Python was built without it, and then reads no such archive
    LZMAError = EOFError
MAGIC = b"\x93NUMPY"
MOST_HEADER_BYTES = 10_000
MOST_BYTES = 1 << 34  # of one array, unpacked
# What zipfile and what it calls raise for archives that are damaged, or made to be.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, LZMAError, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, MemoryError, LookupError, OverflowError, ValueError),
)
# As NumPy writes them, without byte order and width.
KINDS = {"u": "uint", "i": "int", "f": "float", "c": "complex"}


def read(path):
    """Return name -> tensor, in the order of the archive. Fortran order and big-endian numbers are turned round.

    Raises:
        BadInputs: the file is no archive, an array is damaged, or it holds text, records or Python objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {}
            check_flat(archive.namelist(), path)
            for member in archive.infolist():
                if not member.is_dir():
                    name = member.filename[:-4] if member.filename.endswith(".npy") else member.filename
                    arrays[name] = _array(archive, member, "%s: array %r" % (path, name))
            return arrays
    except DAMAGED as error:
        raise BadInputs("%s is not an .npz archive, or damaged: %s" % (path, str(error)[:200] or type(error).__name__))


def _array(archive, member, where):
    with archive.open(member) as stream:
        descr, fortran, shape = _header(stream, where)
        order, kind, width = descr[0], descr[1], int(descr[2:])
        name = "bool" if (kind, width) == ("b", 1) else "%s%d" % (KINDS.get(kind, ""), 8 * width)
        dtype = getattr(torch, name, None)
        if not isinstance(dtype, torch.dtype):
            raise BadInputs("%s holds %s, which torch %s does not have" % (where, descr[:80], torch.__version__))
        promised = elements_of(shape, where) * width
        if promised > MOST_BYTES:
            raise BadInputs("%s would be %d bytes large; the limit is %d" % (where, promised, MOST_BYTES))
        data = stream.read(promised + 1)
    if order == ">":
        data = swapped(data, width // (2 if kind == "c" else 1)) if len(data) == promised else data
    if not fortran:
        return from_bytes(data, dtype, shape, where)
    turned = from_bytes(data, dtype, shape[::-1], where)
    return turned.permute(*range(len(shape) - 1, -1, -1)).contiguous() if len(shape) > 1 else turned


def _header(stream, where):
    magic = stream.read(8)
    if magic[:6] != MAGIC or len(magic) < 8:
        raise BadInputs("%s is no .npy array" % where)
    length = int.from_bytes(stream.read(2 if magic[6] == 1 else 4), "little")
    if length > MOST_HEADER_BYTES:
        raise BadInputs("%s has a header of %d bytes; the limit is %d" % (where, length, MOST_HEADER_BYTES))
    try:
        header = ast.literal_eval(stream.read(length).decode("utf-8").strip())
        descr, fortran, shape = header["descr"], bool(header["fortran_order"]), tuple(header["shape"])
        whole = all(type(size) is int and size >= 0 for size in shape)
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        whole = False
    if not whole:
        raise BadInputs("%s has no header that says dtype, order and shape" % where)
    if descr == "|O":
        raise BadInputs("%s holds Python objects, which are pickles; save arrays of numbers" % where)
    if not isinstance(descr, str) or not re.match(r"^[<>|=][a-zA-Z]\d+$", descr):
        raise BadInputs("%s holds records or something else that is no number: %s" % (where, str(descr)[:80]))
    if descr[1] in "USVMm":
        raise BadInputs("%s holds %s (text, bytes or dates); save arrays of numbers" % (where, descr))
    return descr, fortran, shape
