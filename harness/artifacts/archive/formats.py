"""Kinds of files: how each is recognised, what it is called, and what to do with it."""

from collections.abc import Container, Mapping

from harness.artifacts.archive.limits import Limits, Source
from harness.artifacts.archive.members import Directory, read_directory, read_member
from harness.artifacts.archive.pickle_facts import Built, Pickled, PickledMapping, name_of, read_pickle
from harness.artifacts.archive.programs import is_compiled
from harness.core.archive import ArchiveFormat
from harness.core.golden import ARTIFACT, RECORD

ZIP = b"PK\x03\x04"
# What torch.save wrote before it wrote zips: first a pickle of this number (MAGIC_NUMBER in torch/serialization.py).
LEGACY_SAVE = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
LFS = b"version https://git-lfs.github.com/spec/"
PREFIXES = (
    (LEGACY_SAVE, ArchiveFormat.LEGACY_SAVE),
    (LFS, ArchiveFormat.LFS_POINTER),
    (b"\x1f\x8b", ArchiveFormat.GZIP),
    (b"\x7fELF", ArchiveFormat.SHARED_LIBRARY),
    (b"\x89HDF\r\n\x1a\n", ArchiveFormat.HDF5),
    (b"\x93NUMPY", ArchiveFormat.NUMPY),
    (b"GGUF", ArchiveFormat.GGUF),
)
AT_FOUR = {b"PTMF": ArchiveFormat.FLATBUFFER, b"TFL3": ArchiveFormat.TENSORFLOW_LITE}
# ONNX is a protobuf without a magic number: ir_version, then one of the fields that exporters write next.
ONNX_NEXT = frozenset((0x12, 0x1A, 0x22, 0x28, 0x3A, 0x42))
WEB_PAGE = (b"<!doctype html", b"<html")
TEXTUAL = frozenset(range(0x20, 0x7F)) | {0x09, 0x0A, 0x0D}
REBUILT = ("torch._utils.", "torch.storage.", "torch._tensor.", "torch.nn.parameter.", "collections.")
# What torch.export writes, with and without a folder around it.
PROGRAMS = ("archive_format", "serialized_exported_program.json", "serialized_exported_program.pt", "models/model.json")
STATE_SHARE = 0.5
"""Share of tensors among the values of a dict from which on it is called a state dict."""


def recognise(source: Source, limits: Limits) -> tuple[ArchiveFormat, Directory | None]:
    """Return what ``source`` is, and its directory if it is a zip. Raises ``CannotRead``: a damaged zip."""
    head = source.read(0, 512)
    if not head:
        return ArchiveFormat.EMPTY, None
    if head.startswith(ZIP):
        directory = read_directory(source, limits)
        return _zip(source, directory, limits), directory
    return _plain(head), None


def _plain(head: bytes) -> ArchiveFormat:
    for prefix, kind in PREFIXES:
        if head.startswith(prefix):
            return kind
    if head[4:8] in AT_FOUR:
        return AT_FOUR[head[4:8]]
    if head[257:262] == b"ustar":
        return ArchiveFormat.TAR_SAVE
    if len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32:
        return ArchiveFormat.SAFETENSORS
    if head[0] == 0x80 and head[1:2] and head[1] <= 5:
        return ArchiveFormat.PICKLE
    if len(head) > 2 and head[0] == 0x08 and 0 < head[1] <= 32 and head[2] in ONNX_NEXT:
        return ArchiveFormat.ONNX
    if ZIP.startswith(head):
        return ArchiveFormat.UNKNOWN  # cut within its first bytes, of which some are letters
    if head.lstrip()[:14].lower().startswith(WEB_PAGE):
        return ArchiveFormat.WEB_PAGE
    return ArchiveFormat.TEXT if all(byte in TEXTUAL for byte in head) else ArchiveFormat.UNKNOWN


def _zip(source: Source, directory: Directory, limits: Limits) -> ArchiveFormat:
    names = directory.inside.keys()
    if "model.json" in names:  # whatever else there is, torch goes by it
        return ArchiveFormat.LEGACY_TORCHSCRIPT
    if "bytecode.pkl" in names:
        return ArchiveFormat.MOBILE
    if "constants.pkl" in names and "data.pkl" in names:
        return ArchiveFormat.TORCHSCRIPT
    if ARTIFACT in names and RECORD in names:
        return ArchiveFormat.GOLDEN_BUNDLE
    if ".data/extern_modules" in names or ".data/python_version" in names:
        return ArchiveFormat.TORCH_PACKAGE
    if any(name.endswith(PROGRAMS) for name in names) or is_compiled(directory):
        return ArchiveFormat.EXPORTED_PROGRAM
    if "data.pkl" in names:
        content = read_member(source, directory.inside["data.pkl"], limits.pickle_bytes, limits)
        return _saved(read_pickle(content, limits))
    if any(_is_model(name, names) for name in names):  # behind a member that lies elsewhere
        return ArchiveFormat.TORCHSCRIPT
    return ArchiveFormat.NUMPY if names and all(name.endswith(".npy") for name in names) else ArchiveFormat.OTHER_ZIP


def _is_model(name: str, names: Container[str]) -> bool:
    last = name.removeprefix("../").partition("/")[2]
    return last == "constants.pkl" and name.removesuffix(last) + "data.pkl" in names


def _saved(pickled: Pickled) -> ArchiveFormat:
    """Tell what ``torch.save`` was given."""
    root = pickled.root
    if name_of(root) and not name_of(root).startswith(REBUILT):
        return ArchiveFormat.PICKLED_MODULE
    entries = root.items if isinstance(root, PickledMapping) else root.entries if isinstance(root, Built) else []
    tensors = sum(name_of(value).startswith("torch._utils.") for _, value in entries)
    return ArchiveFormat.STATE_DICT if entries and tensors >= STATE_SHARE * len(entries) else ArchiveFormat.TORCH_SAVE


# What may load, or deserves a row of its own: an empty file was an artifact once.
MAY_LOAD = frozenset(
    {
        ArchiveFormat.TORCHSCRIPT,
        ArchiveFormat.MOBILE,
        ArchiveFormat.FLATBUFFER,
        ArchiveFormat.LEGACY_TORCHSCRIPT,
        ArchiveFormat.EXPORTED_PROGRAM,
        ArchiveFormat.GOLDEN_BUNDLE,
        ArchiveFormat.EMPTY,
        ArchiveFormat.UNKNOWN,
    }
)
IN_PLACE_OF_A_MODEL = frozenset(
    {
        ArchiveFormat.LFS_POINTER,
        ArchiveFormat.WEB_PAGE,
        ArchiveFormat.TEXT,
        ArchiveFormat.GZIP,
        ArchiveFormat.TAR_SAVE,
        ArchiveFormat.OTHER_ZIP,
    }
)
"""What a copy, a download or a checkout that went wrong leaves under the name of a model."""

LOAD_AND_SAVE = "torch.jit.load it in the release that wrote it, and torch.jit.save it"
SAVE_THE_MODEL = "it holds values without code: torch.export.save or torch.jit.save the model that uses them"

# What a reader calls it, and what to do; no advice where the file can be judged.
FORMATS: Mapping[ArchiveFormat, tuple[str, str]] = {
    ArchiveFormat.TORCHSCRIPT: ("TorchScript archive", ""),
    ArchiveFormat.MOBILE: ("TorchScript archive for the lite interpreter", ""),
    ArchiveFormat.LEGACY_TORCHSCRIPT: ("TorchScript archive of an old kind (model.json)", LOAD_AND_SAVE),
    ArchiveFormat.FLATBUFFER: ("mobile flatbuffer", ""),
    ArchiveFormat.STATE_DICT: ("state dict", SAVE_THE_MODEL),
    ArchiveFormat.PICKLED_MODULE: (
        "pickled module (torch.save)",
        "it needs its Python classes: torch.load it where they are, and torch.export.save or torch.jit.save it",
    ),
    ArchiveFormat.TORCH_SAVE: ("torch.save of other values", SAVE_THE_MODEL),
    ArchiveFormat.LEGACY_SAVE: ("torch.save of before 1.6", SAVE_THE_MODEL),
    ArchiveFormat.TAR_SAVE: ("tar archive", "if torch.save wrote it: " + SAVE_THE_MODEL),
    ArchiveFormat.PICKLE: ("Python pickle", "do not unpickle what you do not trust; " + SAVE_THE_MODEL),
    ArchiveFormat.TORCH_PACKAGE: ("torch.package", "load it with torch.package, script the model, and save that"),
    ArchiveFormat.EXPORTED_PROGRAM: ("exported program (.pt2)", ""),
    ArchiveFormat.GOLDEN_BUNDLE: ("golden bundle", "judge it: compat --artifacts FILE --new RELEASE"),
    ArchiveFormat.ONNX: ("ONNX model", "an upgrade of torch changes nothing for its runtime: not judged here"),
    ArchiveFormat.SAFETENSORS: ("safetensors file", SAVE_THE_MODEL),
    ArchiveFormat.HDF5: ("HDF5 file", SAVE_THE_MODEL),
    ArchiveFormat.NUMPY: ("NumPy arrays", SAVE_THE_MODEL),
    ArchiveFormat.TENSORFLOW_LITE: ("TensorFlow Lite model", "it is no model of torch"),
    ArchiveFormat.GZIP: ("gzip file", "unpack it first"),
    ArchiveFormat.LFS_POINTER: ("Git LFS pointer", "the model itself was not fetched: git lfs pull"),
    ArchiveFormat.SHARED_LIBRARY: ("shared library", "compiled code is not judged here"),
    ArchiveFormat.GGUF: ("GGUF model", "an upgrade of torch changes nothing for its runtime: not judged here"),
    ArchiveFormat.WEB_PAGE: (
        "web page",
        "a login or an error was downloaded in place of the file: get it again",
    ),
    ArchiveFormat.TEXT: (
        "text file",
        "a model is a zip archive, as torch.jit.save writes it: name that, or copy it here again",
    ),
    ArchiveFormat.OTHER_ZIP: ("zip archive without a model of torch", "name the model in it"),
    ArchiveFormat.EMPTY: ("empty file", "copy it again"),
    ArchiveFormat.UNKNOWN: ("file of an unknown kind", "check where it came from"),
}

# What to do where a file could not be read, by the kind of the failure.
FAILURES: Mapping[str, str] = {
    "damaged": "copy or export it again",
    "leads_out": "name the file itself",
    "too_large": "it is beyond what real artifacts need: check where it came from before anything loads it",
    "unreadable_file": "name a file that this user may read",
    "unsupported": "pack it as torch.jit.save does: unencrypted, stored or deflated",
    "zip_bomb": "it is made to exhaust memory: check where it came from before anything loads it",
}
