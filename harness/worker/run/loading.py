"""The ways in which a caller loads a TorchScript archive, by the names of ``serving.load``, and what each comes to.

Verb ``loaders`` tries them all on one archive: that a way is refused, or warns, does not depend on what is in it.
"""

import io
import warnings
import zipfile

import torch

from gate_worker import events, wire

DEFAULT = "torch.jit.load"


def from_buffer(path, device):
    with open(path, "rb") as stream:
        return torch.jit.load(io.BytesIO(stream.read()), map_location=device)


def with_extra_files(path, device):
    with zipfile.ZipFile(path) as archive:
        inside = [name.partition("/extra/") for name in archive.namelist()]
    files = {name: "" for _, extra, name in inside if extra}
    return torch.jit.load(path, map_location=device, _extra_files=files)


LOADERS = {
    DEFAULT: lambda path, device: torch.jit.load(path, map_location=device),
    "torch.load": lambda path, device: torch.load(path, map_location=device),
    "buffer": from_buffer,
    "extra_files": with_extra_files,
    "no_map_location": lambda path, _: torch.jit.load(path),
    "read_adapter": from_buffer,  # an adapter of one's own is C++; from a buffer torch uses one itself
}


def loaders(request, run_dir, log):
    del run_dir
    (run,) = request["runs"]
    path, device = run["artifact"]["path"], request["device"]
    try:
        with log.phase(wire.LOAD, model=run["artifact"]["model"]):
            log.mark("loaders", {name: tried(load, path, device) for name, load in LOADERS.items()})
    except events.PhaseFailed:
        pass


def tried(load, path, device):
    """Return why a way does not load, empty where it does, and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            load(path, device)
            error = ""
        except Exception as failure:
            error = "%s: %s" % (type(failure).__name__, str(failure).strip().split("\n")[0][:300])
    return {"error": error, "warns": sorted({item.category.__name__ for item in caught})}
