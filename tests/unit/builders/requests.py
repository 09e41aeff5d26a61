"""Event lines as a worker writes them, artifacts on disk, golden outputs."""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.core.environment import Fingerprint
from harness.core.models import Artifact, InputSet, ModelDeclaration
from harness.artifacts.adopted import archive_identity
from harness.probing.events import EventLog
from harness.artifacts.tensors.outputs import Outputs
from harness.worker import wire

PRODUCER = Fingerprint(torch="2.1.2+cu121", git_revision="abc", env_vars={"SECRET": "token"})


def event(ev: str, ns: int = 0, **fields: Any) -> str:
    """Return one line of ``events.jsonl``."""
    return json.dumps({**fields, "ev": ev, "ns": ns})


def begin(phase: str, model: str = "m", *, ns: int = 0, thread: int = 0, ident: int = 0x70, **fields: Any) -> str:
    """Return the begin of a phase."""
    return event("begin", ns, phase=phase, model=model, thread=thread, ident=ident, **fields)


def end(phase: str, model: str = "m", *, ns: int = 0, thread: int = 0, **fields: Any) -> str:
    """Return the end of a phase."""
    return event("end", ns, phase=phase, model=model, thread=thread, **fields)


def error(
    phase: str, model: str = "m", *, type_: str = "RuntimeError", message: str = "boom", ns: int = 0, **fields: Any
) -> str:
    """Return an error that ended a phase."""
    return event(
        "error",
        ns,
        phase=phase,
        model=model,
        type=type_,
        message=message,
        traceback="Traceback",
        **{"thread": 0, **fields},
    )


def event_log(*lines: str) -> EventLog:
    """Return the event_log of ``lines``."""
    found = EventLog()
    found.feed(lines)
    return found


def declaration(**changes: Any) -> ModelDeclaration:
    """Return a model's declaration."""
    defaults: dict[str, Any] = {
        "name": "m",
        "package_root": "/p",
        "module": "fixtures.m",
        "factory": "m",
        "source": "fixtures/m.py",
        "line": 3,
        "source_digest": "0",
    }
    return ModelDeclaration(**{**defaults, **changes})


def write_archive(path: Path, root: str = "m", changes: Mapping[str, str | None] | None = None) -> Path:
    """Write a TorchScript-like zip; ``changes`` replaces members, None leaves one out."""
    members: dict[str, str | None] = {
        "version": "3\n",
        ".data/version": "10\n",
        ".data/serialization_id": "4242",
        "code/model.py": "def forward(self): pass",
        "code/model.py.debug_pkl": "paths",
        "data.pkl": "pickle",
    }
    members.update(changes or {})
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(zipfile.ZipInfo(f"{root}/{name}"), content)  # equal bytes whatever the time
    return path


def write_artifact(folder: Path, model: str = "m", **changes: Any) -> Artifact:
    """Write an archive with recorded inputs and return its artifact."""
    path = write_archive(folder / f"{model}.pt", model)
    inputs = folder / "inputs"
    inputs.mkdir(exist_ok=True)
    (inputs / wire.TENSORS_BIN).write_bytes(b"\x01\x02")
    spec = {"dtype": "uint8", "shape": [2], "offset": 0, "nbytes": 2}
    line = {"set": "example", "method": "forward", "tree": ["tensor", spec]}
    (inputs / wire.TENSORS_INDEX).write_text(json.dumps(line) + "\n")
    defaults: dict[str, Any] = {
        "model": model,
        "path": str(path),
        "digest": archive_identity(path)[0],
        "size_bytes": path.stat().st_size,
        "operators": ("aten::add.Tensor",),
        "inputs_dir": str(inputs),
        "input_sets": (InputSet(name="example"),),
        "reset": "reset_state",
        "seed": 7,
    }
    return Artifact(**{**defaults, **changes})


def golden_outputs(*values: Any, input_set: str = "example") -> Outputs:
    """Return one call per value, each answering with one tensor that the worker hashed."""
    calls: dict[tuple[str, int], Any] = {}
    buffer = b""
    for index, value in enumerate(values):
        array = np.asarray(value)
        data = array.tobytes()
        calls[input_set, index] = [
            "tensor",
            {
                "dtype": array.dtype.name,
                "shape": list(array.shape),
                "stride": [1] * array.ndim,
                "offset": len(buffer),
                "nbytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            },
        ]
        buffer += data
    return Outputs(calls=calls, buffer=buffer)


def float32(*values: float) -> npt.NDArray[np.float32]:
    """Return a float32 vector."""
    return np.array(values, dtype=np.float32)
