"""Artifacts that are given: their requests read from files bit for bit, refused where they are wrong, or inferred."""

import io
import itertools
import json
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.checks.hang import watchdog
from harness.core.environment import EnvSpec, Environment
from harness.core.models import ArtifactKind, GivenArtifact, ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ProbeResult
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.store import probe_files
from harness.worker import wire
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

NUMBERS = itertools.count()

PROJECT = Path(__file__).resolve().parents[3]

# What only torch can write: an artifact that takes everything, one that takes a state, and request files.
MAKE = """
import sys
from typing import Dict, List, Optional, Tuple
import torch
from torch import Tensor

class Everything(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x: Tensor, names: Dict[str, Tensor], rows: List[Tuple[int, Tensor]], sizes: List[int],
                mask: Optional[Tensor] = None, word: str = "a") -> Tensor:
        return self.linear(x)

    @torch.jit.export
    def encode(self, x: Tensor, count: int) -> Tensor:
        return x[:count]

class Unguessable(torch.nn.Module):
    def forward(self, x: Tensor, features: Dict[str, Tensor]) -> Tensor:
        assert "the key" + str(len(features)) in features
        return x

class Failing(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.inv(x[0] * 0.0)

class Positive(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.log(x).sum()

class Silent(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 1e9]

    @torch.jit.export
    def rank(self, x: Tensor, key: str) -> Tensor:
        if len(key) != 4711:
            raise RuntimeError("no such key")
        return x

class Code:
    def __reduce__(self):
        return print, ("this was run",)

folder = sys.argv[1]
torch.jit.script(Everything()).save(folder + "/everything.pt")
torch.jit.script(Unguessable()).save(folder + "/unguessable.pt")
torch.jit.script(torch.nn.Linear(3, 2).half()).save(folder + "/half.pt")
torch.jit.script(Failing()).save(folder + "/failing.pt")
torch.jit.script(Positive()).save(folder + "/positive.pt")
torch.jit.script(Silent()).save(folder + "/silent.pt")
x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
rows = [(7, x.to(torch.bfloat16)), (8, x.t())]
given = (x, {}, [], [], None)
torch.save({"example": (x, {"a": x.half()}, rows, [1, 2], None, "word"), "empty": given,
            "coded": {"method": "encode", "arguments": (x, 1)}}, folder + "/good.pt")
torch.save({"x": Code()}, folder + "/code.pt")
torch.save((x,), folder + "/short.pt")
torch.save({"example": x}, folder + "/flat.pt")
torch.save({"x": x, "word": "a"}, folder + "/keywords.pt")
"""


@dataclass(frozen=True)
class Place:
    """A zygote of torch, and a folder with artifacts of one kind and request files."""

    runner: ZygoteRunner
    folder: Path
    kind: ArtifactKind = ArtifactKind.TORCHSCRIPT

    def adopt(self, name: str, inputs: str = "", **more: Any) -> ProbeResult:
        """Adopt ``name`` of the folder with a request file of it, or what ``more`` says of ``GivenArtifact``."""
        path = str(self.folder / f"{name}{self.kind.suffix}")
        given = GivenArtifact(path=path, inputs=inputs and str(self.folder / inputs), kind=self.kind, **more)
        return self.runner(replay.asked("adopt", declaration=declared(name, given)))

    def refusal(self, name: str, inputs: str = "", **more: Any) -> str:
        """Return the message of a refused request, without the path of the folder."""
        (model,) = self.adopt(name, inputs, **more).models
        assert isinstance(model.failure, Failure)
        assert (model.failure.phase, model.failure.type) == (wire.INPUTS, "BadInputs")
        return model.failure.message.replace(f"{self.folder}/", "")


def declared(name: str, given: GivenArtifact, **more: Any) -> ModelDeclaration:
    """Return a declaration of its own: the files here change under their names, and no answer stands for another."""
    return ModelDeclaration(
        name=name, package_root="", source="m", source_digest=str(next(NUMBERS)), given=given, **more
    )


@contextmanager
def made_by(program: str, python: str, folders: pytest.TempPathFactory) -> Iterator[Place]:
    """Give a zygote of ``python`` and what a program has written with it, which gets the folder as its argument."""
    folder = folders.mktemp("given")
    (folder / "make.py").write_text(program)
    subprocess.run([python, "-W", "ignore", str(folder / "make.py"), str(folder)], check=True, timeout=120)
    environment = Environment(name="here", interpreter=python, spec=EnvSpec(name="here", interpreter=python))
    runner = ZygoteRunner({"old": environment}, folders.mktemp("probes"), watchdog)
    try:
        yield Place(runner, folder)
    finally:
        runner.close()
    assert not runner.unreaped


@pytest.fixture(scope="module")
def place(old_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with made_by(MAKE, old_python, tmp_path_factory) as place:
        yield place


def inputs_of(result: ProbeResult) -> dict[str, Any]:
    """Return set name -> (method, arguments) as they lie in the inputs folder; tensors as (dtype, shape, bytes)."""
    folder = Path(result.directory) / "inputs"
    data = (folder / wire.TENSORS_BIN).read_bytes()
    lines = [json.loads(line) for line in (folder / wire.TENSORS_INDEX).read_text().splitlines()]
    return {line["set"]: (line["method"], value(line["tree"], data)) for line in lines}


def value(tree: Any, data: bytes) -> Any:
    kind, content = tree
    if kind == "tensor":
        return content["dtype"], content["shape"], data[content["offset"] : content["offset"] + content["nbytes"]]
    if kind in ("list", "tuple"):
        items = [value(item, data) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {value(key, data): value(item, data) for key, item in content}
    return float(content) if kind == "float" else content


def tensor(array: np.ndarray, dtype: str | None = None, shape: list[int] | None = None) -> tuple[str, list[int], bytes]:
    return dtype or str(array.dtype), list(array.shape) if shape is None else shape, array.tobytes()


X = np.arange(6, dtype="<f4").reshape(2, 3)


def safetensors(header: dict[str, Any] | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def test_tensors_that_torch_saved_come_back_with_their_containers(place: Place) -> None:
    result = place.adopt("everything", "good.pt")
    assert result.outcome is Outcome.COMPLETED
    assert result.data["adopted"] == {
        "input_sets": [["example", "forward"], ["empty", "forward"], ["coded", "encode"]],
        "inputs_note": "",
        "given_up": [],
    }
    bfloat16 = (X.view("<u4") >> 16).astype("<u2")
    assert inputs_of(result) == {
        "example": (
            "forward",
            (
                tensor(X),
                {"a": tensor(X.astype("<f2"))},
                [(7, tensor(bfloat16, "bfloat16")), (8, tensor(X.T.copy()))],
                [1, 2],
                None,
                "word",
            ),
        ),
        "empty": ("forward", (tensor(X), {}, [], [], None)),
        "coded": ("encode", (tensor(X), 1)),
    }


def test_arrays_of_npz_are_placed_by_name_and_position(place: Place) -> None:
    big, fortran = X.astype(">f4"), np.asfortranarray(X)
    arrays: dict[str, Any] = {"one/x": big, "one/count": np.array(2), "two/0": fortran, "two/1": np.array(1)}
    np.savez(place.folder / "a.npz", **arrays)
    result = place.adopt("everything", "a.npz", methods=("encode",))
    assert inputs_of(result) == {"one": ("encode", (tensor(X), 2)), "two": ("encode", (tensor(X), 1))}


def test_safetensors_keep_every_bit(place: Place) -> None:
    bits = np.array([0x7FC0, 0x0001, 0x8000], dtype="<u2")
    header = {
        "__metadata__": {"made": "by hand"},
        "s.encode/x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]},
        "s.encode/count": {"dtype": "I64", "shape": [], "data_offsets": [6, 14]},
    }
    (place.folder / "b.safetensors").write_bytes(safetensors(header, bits.tobytes() + struct.pack("<q", 1)))
    result = place.adopt("everything", "b.safetensors")
    assert inputs_of(result) == {"s": ("encode", (tensor(bits, "bfloat16"), 1))}


def test_python_file_is_run_with_its_folder_and_seed(place: Place) -> None:
    (place.folder / "beside.py").write_text("COUNT = 2\n")
    (place.folder / "c.py").write_text(
        "import torch\nfrom beside import COUNT\ndef inputs():\n    return torch.rand(COUNT, 3), COUNT\n"
    )
    first, again = (inputs_of(place.adopt("everything", "c.py", methods=("encode",))) for _ in range(2))
    assert first == again
    assert first["example"][1][1] == 2
    assert first["example"][1][0][:2] == ("float32", [2, 3])


def test_described_requests_are_made_by_shape_and_seed(place: Place) -> None:
    drawn = {"shape": [2, 3], "dtype": "int64", "below": 5}
    arguments = [
        {"shape": [4, 3]},
        {"dict": {"ids": drawn}},
        [{"tuple": [3, {"shape": []}]}],
        [1],
        {"none": True},
    ]
    result = place.adopt("everything", requests=({"name": "told", "method": "forward", "arguments": arguments},))
    method, (x, ids, rows, sizes, none) = inputs_of(result)["told"]
    assert (method, x[:2], sizes, none) == ("forward", ("float32", [4, 3]), [1], None)
    assert rows[0][0] == 3
    assert rows[0][1][:2] == ("float32", [])
    assert len(set(x[2])) > 10
    assert set(np.frombuffer(ids["ids"][2], "<i8")) <= set(range(5))


@pytest.mark.parametrize(
    ("described", "ends"),
    [
        ({"dtype": "uint8"}, (0, 255)),
        ({"dtype": "int8"}, (-128, 127)),
        ({"dtype": "int16"}, (-32768, 32767)),
        ({"dtype": "uint8", "below": 3}, (0, 2)),
        ({"dtype": "int32"}, (0, 1)),
        ({"dtype": "int64"}, (0, 1)),  # it may be an index
    ],
)
def test_whole_numbers_that_are_no_index_are_of_their_whole_range(
    place: Place, described: dict[str, Any], ends: tuple[int, int]
) -> None:
    told = {"name": "told", "method": "encode", "arguments": [{"shape": [40], **described}, 1]}
    _, ((dtype, _, data), _) = inputs_of(place.adopt("everything", requests=(told,)))["told"]
    numbers = np.frombuffer(data, dtype)
    assert (numbers.min(), numbers.max()) == ends


def _object_array(path: Path) -> None:
    np.savez(path, allow_pickle=True, x=np.array([{}], dtype=object))


def _damaged_array(path: Path) -> None:
    member = io.BytesIO()
    np.save(member, X)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("0.npy", member.getvalue()[:-4])


def _text(text: str | bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _zip(
    members: dict[str, bytes], method: int = 0, damage: tuple[bytes, bytes] = (b"", b"")
) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        if damage[0]:
            assert damage[0] in path.read_bytes()
            path.write_bytes(path.read_bytes().replace(*damage))

    return write


def _tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("storages"))


def _header(shape: list[int]) -> bytes:
    text = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text


ENTRY = {"x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
REFUSED = {
    "objects.npz": (_object_array, "holds Python objects, which are pickles"),
    "short.npz": (_damaged_array, "has 20 bytes, and its shape and dtype promise 24"),
    "nothing.npz": (_text("PK"), "is not an .npz archive"),
    "cut.safetensors": (_text(safetensors(ENTRY, X.tobytes()[:-1])), "ends at byte 24 of 23: the file is cut short"),
    "huge.safetensors": (_text(safetensors(b"{}", length=2**62)), "header would be 4611686018427387904 bytes long"),
    "wrong.safetensors": (_text(safetensors(ENTRY | {"x": {"dtype": "F32"}})), "is not described by"),
    "alien.safetensors": (
        _text(safetensors({"x": {"dtype": "F4", "shape": [], "data_offsets": [0, 0]}})),
        "is F4, which torch 2.1.2",
    ),
    "endless.safetensors": (
        _text(safetensors({"x": {"dtype": "F32", "shape": [0, 10**22], "data_offsets": [0, 0]}})),
        "has a shape that no tensor has",
    ),
    "named.safetensors": (
        _text(safetensors({"y": ENTRY["x"]}, X.tobytes())),
        "encode has no argument 'y'; it takes x, count",
    ),
    "raises.py": (_text("def inputs():\n    x = {}\n    return x['gone']\n"), "raises.py:3: KeyError: 'gone'"),
    "syntax.py": (_text("def inputs(:\n"), "syntax.py:1: SyntaxError"),
    "leaves.py": (_text("import sys\nsys.exit(3)\n"), "leaves.py:2: SystemExit: 3"),
    "without.py": (_text("def requests():\n    return ()\n"), "has no function inputs()"),
    "object.py": (_text("def inputs():\n    return (object(),)\n"), "inputs()[0] is object, and requests hold tensors"),
    "text.pt": (_text("not a pickle"), "text.pt"),
    "script.pt": (_zip({"r/data.pkl": b"", "r/CONSTANTS.PKL": b""}), "script.pt is TorchScript"),
    "tar.pt": (_tar, "tar.pt is a tar archive"),
    "control.safetensors": (
        _text(safetensors({"\x1b[2J/x": ENTRY["x"]}, X.tobytes())),
        r"'\x1b[2J/x' is no name: expected at most 600 characters, all of them printable",
    ),
    "surrogate.safetensors": (_text(safetensors({"x/\ud800": ENTRY["x"]}, X.tobytes())), "is no name"),
    "long.safetensors": (_text(safetensors({"s" * 201 + "/0": ENTRY["x"]}, X.tobytes())), "at most 200 characters"),
    "many.safetensors": (
        _text(safetensors({f"s{index}/0": ENTRY["x"] for index in range(1001)}, X.tobytes())),
        "many.safetensors holds 1001 input sets; the limit is 1000",
    ),
    "product.safetensors": (
        _text(safetensors({"x": {"dtype": "F32", "shape": [10**6] * 1000, "data_offsets": [0, 0]}})),
        "has a shape that no tensor has",
    ),
    "product.npz": (_zip({"0.npy": _header([10**6] * 1000)}), "has a shape that no tensor has"),
    "lzma.npz": (_zip({"0.npy": _header([2, 3])}, zipfile.ZIP_LZMA, (b"\x5d\x00", b"\xff\xff")), "or damaged"),
    "names.npz": (_zip({"n\xe4me.npy": b""}, 0, (b"n\xc3\xa4me", b"n\xff\xffme")), "or damaged"),
    "sets.py": (_text("import torch\ndef inputs():\n    return {'a\\x9b': (torch.rand(1),)}\n"), r"'a\x9b' is no name"),
    "many.py": (_text("def inputs():\n    return {str(i): (1,) for i in range(1001)}\n"), "1001 input sets"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_file_is_refused_with_what_is_wrong(place: Place, name: str) -> None:
    write, message = REFUSED[name]
    write(place.folder / name)
    refusal = place.refusal("everything", name, methods=("encode",))
    assert message in refusal
    assert name in refusal


def test_inputs_that_a_worker_has_recorded_come_back_as_they_were(place: Place) -> None:
    first = place.adopt("everything", "good.pt")
    again = place.adopt("everything", str(Path(first.directory) / "inputs" / wire.TENSORS_INDEX))
    assert inputs_of(again) == inputs_of(first)
    assert set(inputs_of(again)) == {"example", "empty", "coded"}
    assert again.data["adopted"] == first.data["adopted"]


@pytest.mark.parametrize("line", ["{}", "none", '{"set": "a", "method": "forward", "tree": ["tensor", {"offset": 0}]}'])
def test_recorded_inputs_that_are_none_are_refused(place: Place, line: str) -> None:
    folder = place.folder / "recorded"
    folder.mkdir(exist_ok=True)
    (folder / wire.TENSORS_INDEX).write_text(line + "\n")
    (folder / wire.TENSORS_BIN).write_bytes(b"")
    assert "tensors.jsonl is no index of recorded inputs: " in place.refusal("everything", "recorded/tensors.jsonl")
    (folder / wire.TENSORS_BIN).unlink()
    assert "cannot be read: No such file" in place.refusal("everything", "recorded/tensors.jsonl")


def test_pickled_code_is_not_run(place: Place) -> None:
    result = place.adopt("everything", "code.pt")
    (model,) = result.models
    assert model.failure is not None
    assert "save only tensors, numbers, strings, lists, tuples and dicts" in model.failure.message
    for name in (wire.STDERR, wire.STDOUT):
        assert b"this was run" not in probe_files.read(Path(result.directory), name)


def test_whole_numbers_alone_have_a_bound(place: Place) -> None:
    told = {"name": "a", "method": "forward", "arguments": [{"shape": [2], "below": 3}]}
    assert "below is for whole numbers, and the dtype is float32" in place.refusal("everything", requests=(told,))


def test_requests_that_do_not_fit_the_methods_are_refused(place: Place) -> None:
    assert "gives 1 arguments, and forward(" in place.refusal("everything", "short.pt")
    assert "a request whose only argument is a dict is a tuple" in place.refusal("everything", "flat.pt")
    keywords = "no keyword arguments: write a tuple in the order of the method's, (x, word): keywords.pt['x'] is"
    assert keywords in place.refusal("everything", "keywords.pt")
    missing = place.refusal("everything", methods=("embed",))
    assert missing == "everything.pt has no method 'embed'; it has forward, encode"
    told = place.refusal("everything", requests=({"name": "a", "arguments": [{"shape": [1], "dtype": "float31"}]},))
    assert "has no dtype 'float31'" in told


def test_reset_method_must_exist(place: Place) -> None:
    given = GivenArtifact(path=str(place.folder / "everything.pt"))
    result = place.runner(replay.asked("adopt", declaration=declared("everything", given, reset="clear")))
    (model,) = result.models
    assert model.failure is not None
    assert "no reset method 'clear'" in model.failure.message


def test_file_that_does_not_load_is_adopted_with_the_inputs_that_were_given(place: Place) -> None:
    (place.folder / "broken.pt").write_bytes(b"no archive")
    given = place.adopt("broken", "short.pt")
    assert given.outcome is Outcome.COMPLETED
    assert given.data["adopted"] == {"input_sets": [["example", "forward"]], "inputs_note": "", "given_up": []}
    bare = place.adopt("broken")
    assert bare.data["adopted"]["input_sets"] == []
    assert bare.data["adopted"]["inputs_note"].startswith("it does not load in this release")
    np.savez(place.folder / "d.npz", x=X)
    assert "use positions: 0, 1, ..." in place.refusal("broken", "d.npz")


def test_what_cannot_be_guessed_is_said_with_what_is_known(place: Place) -> None:
    result = place.adopt("unguessable")
    note = result.data["adopted"]["inputs_note"]
    assert result.data["adopted"]["input_sets"] == []
    assert "nothing in the graph tells the keys of features" in note
    assert note.endswith("put requests beside the file: unguessable.inputs.pt")
    events = [json.loads(line) for line in probe_files.read(Path(result.directory), wire.EVENTS).splitlines()]
    trials = [event["guess"] for event in events if event["ev"] == "begin" and event["phase"] == wire.INFER]
    assert 1 < len(trials) <= 40
    assert len(set(trials)) == len(trials)
    assert place.adopt("failing").data["adopted"]["input_sets"] == []


def test_a_dtype_that_the_release_cannot_compute_on_a_cpu_is_no_lack_of_requests(place: Place) -> None:
    adopted = place.adopt("half").data["adopted"]
    assert adopted["input_sets"] == []
    advice = "cannot compute float16 there on a CPU: run on a GPU (--device), or judge a float32 copy ("
    assert advice in adopted["inputs_note"] and "put requests" not in adopted["inputs_note"]


ZOO = (
    "dlrm", "dcn_v2_traced", "din", "feature_store", "blender", "two_tower", "word_piece", "session_lstm", "conformer",
    "resnet_frozen", "vit", "int8_conv_net", "spectral_mixer_traced", "decoder_kv_cache", "keyword_spotter", "int8_embedding_bag",
)  # fmt: skip


@pytest.mark.slow
def test_requests_are_inferred_for_models_of_every_kind(place: Place) -> None:
    declarations = [model for model in read_fixtures(PROJECT / "fixtures" / "zoo") if model.name in ZOO]
    artifacts = replay.export(place.runner, tuple(declarations))
    notes = {}
    for name, artifact in artifacts.items():
        result = place.runner(replay.asked("adopt", declaration=declared(name, GivenArtifact(path=artifact.path))))
        assert result.outcome is Outcome.COMPLETED, (name, result)
        assert result.data["adopted"]["input_sets"][:1] == [["guessed", "forward"]], (name, result.data["adopted"])
        notes[name] = result.data["adopted"]["inputs_note"]
    assert set(notes) == set(ZOO)
    assert notes["dcn_v2_traced"] == "guessed from the graph: forward(ids=int64[2, 8])"
    assert "'context': float32[2, 4]" in notes["din"]
    assert all(note.startswith("guessed from the graph: forward(") for note in notes.values())


def test_every_method_is_guessed(place: Place) -> None:
    (declaration,) = (model for model in read_fixtures(PROJECT / "fixtures" / "zoo") if model.name == "two_tower")
    artifact = replay.export(place.runner, (declaration,))["two_tower"]
    given = GivenArtifact(path=artifact.path, methods=("encode_items", "encode_users"))
    adopted = place.runner(replay.asked("adopt", declaration=declared("two_tower", given))).data["adopted"]
    assert ["guessed", "encode_items"] in adopted["input_sets"]
    assert ["guessed_encode_users", "encode_users"] in adopted["input_sets"]


def test_guess_that_is_answered_with_a_number_is_preferred(place: Place) -> None:
    adopted = place.adopt("positive").data["adopted"]
    assert adopted["inputs_note"] == "guessed from the graph: forward(x=float32[2, 16] > 0)"
    assert place.adopt("positive").data["adopted"]["given_up"] == []


def test_method_that_was_given_up_is_reported_beside_one_that_was_guessed(place: Place) -> None:
    adopted = place.adopt("silent", methods=("forward", "rank")).data["adopted"]
    assert {method for _, method in adopted["input_sets"]} == {
        "forward"
    }  # answered with nothing, and kept all the same
    assert (
        adopted["inputs_note"].startswith("guessed from the graph: forward(x=") and "rank" not in adopted["inputs_note"]
    )
    ((method, why),) = adopted["given_up"]
    assert method == "rank"
    assert "no such key" in why and why.endswith("put requests beside the file: silent.inputs.pt")
