"""The files of one golden record: written, and read with every byte verified.

``record.json`` holds specs, provenance and the digests of the files beside it: artifact, inputs and output values.
``golden/records/MODEL/DIGEST`` holds what was accepted, ``golden/proposed/MODEL`` what waits.
"""

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.domain.environment import Fingerprint
from harness.domain.golden import GoldenRecord, Source
from harness.domain.models import Artifact
from harness.errors import GoldenError
from harness.models.artifacts import has_digest
from harness.models.bundles import check_spec, checked_tree
from harness.store import codec
from harness.store.json import JsonError, from_json
from harness.tensors.decode import DecodeError, Spec
from harness.tensors.outputs import Outputs
from harness.tensors.recorded import DAMAGE, parsed
from harness.tensors.samples import sampled
from harness.tensors.trees import Tree
from harness.worker import wire

RECORDS = "records"
PROPOSED = "proposed"
RECORD = "record.json"
IGNORED = ".gitignore"
"""Written into ``PROPOSED``, so that proposals are never committed."""
ARTIFACT = "artifact.pt.gz"
INPUTS = "inputs.bin.gz"
VALUES = "values.bin.gz"
FILES = (ARTIFACT, INPUTS, VALUES)
AGAIN = "propose and accept it again"
MAX_ARTIFACT_BYTES = 256 * 1024
CHUNK_BYTES = 1 << 20


def can_have_folder(model: str) -> bool:
    """Whether a model of this name can have a folder of its own here; names come from files that anybody may write."""
    return not (model == "" or model.startswith(".") or "/" in model or "\0" in model)


def accepted_record(folder: Path, model: str, sha256: str) -> GoldenRecord:
    """Return the record of ``model`` in ``folder``, every byte verified; ``sha256`` is that of its ``record.json``.

    Raises:
        GoldenError: it is not what was accepted.
    """
    return own_record(folder, model, sha256=sha256, since="accepted")[0]


def own_record(
    folder: Path, model: str, *, sha256: str | None = None, since: str = "proposed"
) -> tuple[GoldenRecord, str]:
    """Return a record of ``model``, and the sha256 of its ``record.json``; its files are verified.

    Args:
        sha256: what that of ``record.json`` must be; None for a record that nobody accepted yet.
        since: what fixed the files, for errors: "changed after it was proposed".

    Raises:
        GoldenError: it is damaged, or its files are not those that it names.
    """
    data = _bytes_of(folder / RECORD, sha256, since=since)
    record = _record(folder, model, data)
    _verify_files(folder, record, since=since)
    return record, hashlib.sha256(data).hexdigest()


def outputs_of(folder: Path, record: GoldenRecord) -> Outputs:
    """Return the outputs of a verified record; large tensors are samples."""
    calls = {(input_set, call): tree for input_set, call, tree in record.calls}
    return Outputs(calls=calls, buffer=unpacked(folder, record, VALUES))


def unpacked(folder: Path, record: GoldenRecord, name: str) -> bytes:
    """Return the content of a gzip file of a record: never more than ``record.json`` says.

    Raises:
        GoldenError: it was changed, is damaged, or holds more.
    """
    return _unzipped(folder / name, record, _bytes_of(folder / name, record.files[name], since="recorded"))


def write_record(
    folder: Path,
    artifact: Artifact,
    outputs: Outputs,
    *,
    producer: Fingerprint,
    device: str,
    source: Source | None = None,
) -> GoldenRecord:
    """Write a record from an artifact with its recorded inputs and its golden outputs; return it."""
    small = sampled(outputs)
    index = Path(artifact.inputs_dir) / wire.TENSORS_INDEX
    content = {VALUES: bytes(small.buffer)}
    try:
        inputs = [parsed(line) for line in index.read_text(encoding="utf-8").splitlines()]
        content[INPUTS] = (Path(artifact.inputs_dir) / wire.TENSORS_BIN).read_bytes()
        if artifact.size_bytes <= MAX_ARTIFACT_BYTES:
            content[ARTIFACT] = Path(artifact.path).read_bytes()
    except OSError as error:
        raise GoldenError(f"{error.filename} cannot be read: {error.strerror or error}", AGAIN) from error
    except (ValueError, RecursionError) as error:
        raise GoldenError(f"{index} is damaged: {error}", "run again, then propose") from error
    for name, data in content.items():
        codec.write_atomically(folder / name, gzip.compress(data, 9, mtime=0))
    record = GoldenRecord(
        model=artifact.model,
        device=device,
        producer=replace(producer, env_vars={}),
        artifact=replace(artifact, path="", inputs_dir=""),
        inputs=inputs,
        calls=[(input_set, call, tree) for (input_set, call), tree in sorted(small.calls.items())],
        files={name: sha256_of(folder / name) for name in sorted(content)},
        source=source,
    )
    codec.write_atomically(folder / RECORD, codec.canonical(record))
    return record


def run_of(record: GoldenRecord) -> str:
    """Return the name of the run that a record comes from; empty if it was not recorded."""
    return record.source.run if record.source is not None else ""


def same_content(one: GoldenRecord, other: GoldenRecord) -> bool:
    """Whether two records judge alike: same torch, inputs, outputs and device."""
    profiles = [record.profile for record in (one, other) if record.profile is not None]
    return content_digest(one) == content_digest(other) and (len(profiles) < 2 or profiles[0] == profiles[1])


def content_digest(record: GoldenRecord) -> str:
    """Return a digest that stays the same if the same torch answers the same again, in whatever run."""
    # Not the archive's own file: saved again, it has other bytes with the same members.
    files = {name: digest for name, digest in record.files.items() if name != ARTIFACT}
    kept, archive = ARTIFACT in record.files, record.artifact.digest
    return codec.digest((files, kept, archive, record.inputs, record.calls, record.producer.identity, record.device))


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _record(folder: Path, model: str, data: bytes) -> GoldenRecord:
    path = folder / RECORD
    try:
        record = from_json(data, GoldenRecord)
    except JsonError as error:
        raise GoldenError(f"{path} is damaged or from another version: {error}", AGAIN) from error
    if record.model != model:
        raise GoldenError(f"{path} is the record of {record.model}, in another model's folder", f"git checkout {path}")
    if not {INPUTS, VALUES} <= set(record.files) <= set(FILES):
        raise GoldenError(f"{path} names other files than {', '.join(FILES)}", AGAIN)
    return record


def _verify_files(folder: Path, record: GoldenRecord, *, since: str) -> None:
    """Raise ``GoldenError`` unless the files are those that the record names, with the content that it describes.

    Diffs and runs trust the digests of tensors and archive in ``record.json``.
    """
    for name, file_sha256 in record.files.items():
        path = folder / name
        content = _unzipped(path, record, _bytes_of(path, file_sha256, since=since))
        if name == ARTIFACT:
            _verify_archive(path, record, content)
            continue
        for spec in _specs(_described(record, name)):
            sha256 = spec.get("sha256")
            if sha256 and hashlib.sha256(content[spec["offset"] : _end(spec)]).hexdigest() != sha256:
                raise GoldenError(f"{path} holds other numbers than {RECORD} says", AGAIN)
        _verify_trees(folder, record, name, content)


def _verify_archive(path: Path, record: GoldenRecord, content: bytes) -> None:
    same = len(content) == record.artifact.size_bytes
    if not same or not has_digest(record.artifact.digest, io.BytesIO(content), len(content), path):
        raise GoldenError(f"{path} holds another artifact than {RECORD} says", AGAIN)


def _verify_trees(folder: Path, record: GoldenRecord, name: str, content: bytes) -> None:
    """Raise ``GoldenError`` unless inputs and outputs can be read and compared, whoever has written them."""
    try:
        for tree in _trees(record, name):
            checked_tree(tree, lambda spec: _check(spec, content))
    except (DecodeError, *DAMAGE) as error:
        what = "inputs" if name == INPUTS else "outputs"
        raise GoldenError(f"{folder / RECORD} tells of {what} that none can be: {error}", AGAIN) from error


def _trees(record: GoldenRecord, name: str) -> list[Tree]:
    """Return the trees of values whose bytes a file holds."""
    return [entry["tree"] for entry in record.inputs] if name == INPUTS else [tree for _, _, tree in record.calls]


def _check(spec: Spec, content: bytes) -> None:
    """Raise ``DecodeError`` unless ``spec`` describes a tensor in ``content``, or the sample of one."""
    full = spec.get("full")
    if full is not None:
        shape, step = full["shape"], full["step"]
        if not isinstance(shape, list) or type(step) is not int or step < 1 or not isinstance(full["sha256"], str):
            raise DecodeError("a sample has the shape, the digest and the step of its tensor")
    check_spec({name: value for name, value in spec.items() if name != "full"}, content)


def _unzipped(path: Path, record: GoldenRecord, data: bytes) -> bytes:
    specs = _specs(_described(record, path.name))
    limit = record.artifact.size_bytes if path.name == ARTIFACT else max(map(_end, specs), default=0)
    content = bytearray()
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            while len(content) <= limit and (chunk := stream.read(CHUNK_BYTES)):  # the record may promise any size
                content += chunk
    except (OSError, EOFError, zlib.error) as error:
        raise GoldenError(f"{path} is damaged: {error}", AGAIN) from error
    if len(content) > limit:
        raise GoldenError(f"{path} unpacks to more than the {limit} bytes that {RECORD} says", AGAIN)
    return bytes(content)


def _described(record: GoldenRecord, name: str) -> list[Any]:
    """Return the part of the record that describes the bytes of a file."""
    return list(record.inputs) if name == INPUTS else [tree for _, _, tree in record.calls]


def _specs(described: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every spec that points into a file, however deeply nested."""
    waiting = [described]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if "nbytes" in found or "sha256" in found:
                yield found
            waiting += [value for name, value in found.items() if name != "full"]
        elif isinstance(found, list):
            waiting += found


def _end(spec: Mapping[str, Any]) -> int:
    offset, nbytes = spec.get("offset"), spec.get("nbytes")
    if type(offset) is not int or type(nbytes) is not int or offset < 0 or nbytes < 0:
        raise GoldenError(f"{RECORD} points outside of its files: {nbytes} bytes at {offset}", AGAIN)
    return offset + nbytes


def _bytes_of(path: Path, sha256: str | None, *, since: str) -> bytes:
    """Return the bytes of a record's file; ``sha256`` is what they must be."""
    restore = f"git checkout {path}" if since == "accepted" else "propose it again"
    if path.is_symlink() or path.parent.is_symlink() or (path.exists() and not path.is_file()):
        raise GoldenError(f"{path} is a link or no file: a record is files of its own", restore)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise GoldenError(f"{path} cannot be read: {error.strerror or error}", restore) from error
    actual = hashlib.sha256(data).hexdigest()
    if sha256 not in (None, actual):
        raise GoldenError(
            f"{path} was changed after it was {since} (sha256 {actual[:12]}, {since} was {(sha256 or '')[:12]})",
            f"restore it ({restore}) or propose and accept it again with a reason" if since == "accepted" else restore,
        )
    return data
