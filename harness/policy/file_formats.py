"""What each kind of file is called, and what to do with one that holds no TorchScript code."""

from collections.abc import Mapping

from harness.domain.archive import ArchiveFormat

LOAD_AND_SAVE = "torch.jit.load it in the release that wrote it, and torch.jit.save it"
SCRIPT_IT = "it holds values without code: script or trace the model that uses them, and save that with torch.jit.save"

# What a reader calls it, and what to do; no advice where the file can be judged.
FORMATS: Mapping[ArchiveFormat, tuple[str, str]] = {
    ArchiveFormat.TORCHSCRIPT: ("TorchScript archive", ""),
    ArchiveFormat.MOBILE: ("TorchScript archive for the lite interpreter", ""),
    ArchiveFormat.LEGACY_TORCHSCRIPT: ("TorchScript archive of an old kind (model.json)", LOAD_AND_SAVE),
    ArchiveFormat.FLATBUFFER: ("mobile flatbuffer", "it is for the lite interpreter: export the model it was made of"),
    ArchiveFormat.STATE_DICT: ("state dict", SCRIPT_IT),
    ArchiveFormat.PICKLED_MODULE: (
        "pickled module (torch.save)",
        "it needs its Python classes: load it where they are, script or trace it, and save it with torch.jit.save",
    ),
    ArchiveFormat.TORCH_SAVE: ("torch.save of other values", SCRIPT_IT),
    ArchiveFormat.LEGACY_SAVE: ("torch.save of before 1.6", SCRIPT_IT),
    ArchiveFormat.TAR_SAVE: ("tar archive", "if torch.save wrote it: " + SCRIPT_IT),
    ArchiveFormat.PICKLE: ("Python pickle", "do not unpickle what you do not trust; " + SCRIPT_IT),
    ArchiveFormat.TORCH_PACKAGE: ("torch.package", "load it with torch.package, script the model, and save that"),
    ArchiveFormat.EXPORTED_PROGRAM: ("exported program (.pt2)", "torch.export has rules of its own: not judged here"),
    ArchiveFormat.GOLDEN_BUNDLE: ("golden bundle", "judge it: python -m harness compat --artifacts FILE --new RELEASE"),
    ArchiveFormat.ONNX: ("ONNX model", "its runtime is another one: not judged here"),
    ArchiveFormat.SAFETENSORS: ("safetensors file", SCRIPT_IT),
    ArchiveFormat.HDF5: ("HDF5 file", SCRIPT_IT),
    ArchiveFormat.NUMPY: ("NumPy arrays", SCRIPT_IT),
    ArchiveFormat.TENSORFLOW_LITE: ("TensorFlow Lite model", "it is no model of torch"),
    ArchiveFormat.GZIP: ("gzip file", "unpack it first"),
    ArchiveFormat.LFS_POINTER: ("Git LFS pointer", "the model itself was not fetched: git lfs pull"),
    ArchiveFormat.SHARED_LIBRARY: ("shared library", "compiled code is not judged here"),
    ArchiveFormat.TEXT: ("text file", "it is no model"),
    ArchiveFormat.OTHER_ZIP: ("zip archive without a model of torch", "name the model in it"),
    ArchiveFormat.EMPTY: ("empty file", "copy it again"),
    ArchiveFormat.UNKNOWN: ("file of an unknown kind", "check where it came from"),
}

# What to do where a file could not be read, by the kind of the failure.
FAILURES: Mapping[str, str] = {
    "damaged": "copy or export it again",
    "too_large": "it is beyond what real artifacts need: check where it came from before anything loads it",
    "unreadable_file": "name a file that this user may read",
    "unsupported": "pack it as torch.jit.save does: unencrypted, stored or deflated",
    "zip_bomb": "it is made to exhaust memory: check where it came from before anything loads it",
}
