"""Requests that follow from Triton's configuration: bound as its PyTorch backend binds them, and wide enough to tell."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.environment import Environment, EnvSpec
from harness.core.outcome import Outcome
from harness.core.probe import ProbeResult
from harness.apps.fleet.stores.triton import read_config
from harness.checks.hang import watchdog
from harness.probing.runner import ZygoteRunner
from tests.integration.artifacts.test_adopting import Place, inputs_of

pytestmark = pytest.mark.integration

MAKE = """
import sys
from typing import Dict, List, Optional
import torch
from torch import Tensor

class Args(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.lin = torch.nn.Embedding(50, 8), torch.nn.Linear(4, 8)
    def forward(self, ids: Tensor, dense: Tensor) -> Tensor:
        return self.emb(ids).sum(1) + self.lin(dense)

class Keys(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 2), torch.nn.Linear(3, 2)
    def forward(self, features: Dict[str, Tensor]) -> Tensor:
        return self.a(features["user__0"]) + self.b(features["item__7"])

class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table: Dict[str, int] = {"red": 1, "blue": 2}
    def forward(self, words: List[str], weights: Tensor) -> Tensor:
        ids: List[int] = []
        for word in words:
            ids.append(self.table[word])
        return torch.tensor(ids) * weights[: len(ids)]

class Three(torch.nn.Module):
    def forward(self, x: Tensor, start: Tensor, state: Tensor) -> Tensor:
        assert start.dim() == 2 and start.size(1) == 1
        return x * (1 - start) + state

class Ends(torch.nn.Module):
    def forward(self, values: Tensor, ends: Tensor) -> Tensor:
        assert int(ends[-1]) == values.numel()
        return values.cumsum(0)[ends.long() - 1]

class Bags(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.EmbeddingBag(7, 5, mode="sum")
    def forward(self, ids: Tensor, offsets: Tensor) -> Tensor:
        return self.emb(ids, offsets)

class Image(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Conv2d(3, 4, 11, stride=4), torch.nn.Conv2d(4, 4, 9)
    def forward(self, image: Tensor) -> Tensor:
        return self.two(self.one(image))

class Flat(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = torch.nn.Conv2d(1, 1, 3), torch.nn.Linear(46 * 46, 3)
    def forward(self, image: Tensor) -> Tensor:
        return self.lin(self.conv(image).flatten(1))

class Bytes(torch.nn.Module):
    def forward(self, image: Tensor) -> Tensor:
        return torch.nn.functional.interpolate(image, scale_factor=2.0, mode="bicubic")

class Hashed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(300, 4))
    def forward(self, ids: Tensor) -> Tensor:
        if bool((ids < 0).any()) or bool((ids >= 300).any()):
            raise RuntimeError("no such id")
        return self.table.sum() * ids

class Counted(torch.nn.Module):
    def forward(self, n: Tensor) -> Tensor:
        total = torch.zeros(1)
        for i in range(int(n.max())):
            total = total + i
        return total

class Until(torch.nn.Module):
    def forward(self, n: Tensor) -> Tensor:
        x = torch.zeros_like(n)
        while bool((x < n).any()):
            x = x + 1
        return x

class Maybe(torch.nn.Module):
    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        return x if mask is None else x * mask

class One(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(1, 4) + 1

folder = sys.argv[1]
torch.manual_seed(0)
for kind in (Args, Keys, Words, Three, Ends, Bags, Image, Flat, Bytes, Hashed, Counted, Until, Maybe, One):
    torch.jit.script(kind().eval()).save("%s/%s.pt" % (folder, kind.__name__.lower()))
"""


@pytest.fixture(scope="module")
def place(old_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "make.py").write_text(MAKE)
    subprocess.run([old_python, "-W", "ignore", str(folder / "make.py"), str(folder)], check=True, timeout=120)
    environment = Environment(name="here", interpreter=old_python, spec=EnvSpec(name="here", interpreter=old_python))
    runner = ZygoteRunner({"old": environment}, tmp_path_factory.mktemp("probes"), watchdog)
    try:
        yield Place(runner, folder)
    finally:
        runner.close()
    assert not runner.unreaped


def served(place: Place, name: str, config: str, **more: Any) -> ProbeResult:
    read = read_config(f'backend: "pytorch"\n{config}', file="config.pbtxt", **more)
    assert read.requests, read.notes
    result = place.adopt(name, requests=read.requests)
    assert result.outcome is Outcome.COMPLETED
    return result


def taken(name: str, dtype: str, dims: str, more: str = "") -> str:
    return f'input {{ name: "{name}" data_type: TYPE_{dtype} dims: [ {dims} ] {more} }}\n'


def shapes(value: Any) -> Any:
    """Return arguments with (dtype, shape) in place of tensors."""
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[2], bytes):
        return value[0], value[1]
    if isinstance(value, dict):
        return {key: shapes(item) for key, item in value.items()}
    return [shapes(item) for item in value] if isinstance(value, tuple | list) else value


BATCH = "max_batch_size: 8\n"
DENSE, IDS = taken("dense", "FP32", "4"), taken("ids", "INT64", "3")
SWAPPED = [("int64", [2, 3]), ("float32", [2, 4])]
STATE = 'state { input_name: "S__2" output_name: "T__1" data_type: TYPE_FP32 dims: 4 }'
START = 'control_input { name: "C__1" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }'


@pytest.mark.parametrize(
    ("name", "config", "example"),
    [
        ("args", BATCH + DENSE + IDS, SWAPPED),
        ("args", BATCH + taken("b__1", "FP32", "4") + taken("a__0", "INT64", "3"), SWAPPED),
        ("args", BATCH + taken("b__1", "FP32", "4") + taken("a__", "INT64", "3"), SWAPPED),  # as atoi has it
        # Neither all names of arguments, nor all with a position behind the first __: their order counts.
        ("args", BATCH + taken("my__in__1", "INT64", "3") + taken("my__in__0", "FP32", "4"), SWAPPED),
        ("args", BATCH + taken("dense", "INT64", "3") + taken("x", "FP32", "4"), SWAPPED),
        ("args", BATCH + taken("b__1", "INT64", "3") + taken("ids", "FP32", "4"), SWAPPED),
        ("args", BATCH + 'runtime: "model.py"' + taken("dense", "INT64", "3") + taken("ids", "FP32", "4"), SWAPPED),
        (
            "keys",
            BATCH + taken("item__7", "FP32", "3") + taken("user__0", "FP32", "4"),
            [{"item__7": ("float32", [2, 3]), "user__0": ("float32", [2, 4])}],
        ),
        ("words", taken("words", "STRING", "3") + taken("weights", "FP32", "-1"), None),
        (
            "words",
            BATCH + taken("words", "STRING", "1", "reshape { }") + taken("weights", "FP32", "1", "reshape { }"),
            None,
        ),
        (
            "three",
            f"{BATCH}{taken('X__0', 'FP32', '4')} sequence_batching {{ {START} {STATE} }}",
            [("float32", [2, 4]), ("float32", [2, 1]), ("float32", [2, 4])],
        ),
        (
            "ends",
            BATCH
            + taken("V__0", "FP32", "-1", "allow_ragged_batch: true")
            + 'batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "E__1" data_type: TYPE_FP32'
            + ' source_input: "V__0" }',
            [("float32", [8]), ("float32", [2])],
        ),
        ("bags", taken("ids", "INT64", "6") + taken("offsets", "INT64", "2"), [("int64", [6]), ("int64", [2])]),
        ("flat", BATCH + taken("image", "FP32", "1, -1, -1"), [("float32", [2, 1, 48, 48])]),
        ("flat", taken("image", "FP32", "2, 1, 48, -1"), [("float32", [2, 1, 48, 48])]),
        ("one", BATCH + taken("x", "FP32", "4"), [("float32", [1, 4])]),  # it takes no batch but of one
    ],
)
def test_inputs_become_the_arguments_that_the_backend_would_pass(
    place: Place, name: str, config: str, example: Any
) -> None:
    result = served(place, name, config)
    note = result.data["adopted"]["inputs_note"]
    assert note.startswith("guessed from config.pbtxt: forward("), note
    method, arguments = inputs_of(result)["example"]
    assert method == "forward"
    if example is not None:
        assert shapes(arguments) == example
    if name == "words":
        assert set(arguments[0]) <= {"red", "blue"}


def test_open_sizes_grow_until_a_convolution_takes_them(place: Place) -> None:
    result = served(place, "image", BATCH + taken("image", "FP32", "3, -1, -1"))
    (argument,) = inputs_of(result)["example"][1]
    assert argument[1][:2] == [2, 3] and min(argument[1][2:]) >= 43
    assert [name for name, _ in result.data["adopted"]["input_sets"]] == ["example", "larger"]


def test_the_sizes_and_values_of_a_warm_up_are_used(place: Place) -> None:
    warm = 'model_warmup { name: "zeros" inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 1, 4 ] zero_data: true } } }'
    found = inputs_of(served(place, "one", taken("x", "FP32", "-1, 4") + warm))
    assert found["warmup_zeros"][1][0] == ("float32", [1, 4], bytes(16))
    stored = warm.replace("zero_data: true", 'input_data_file: "x"')
    data = np.arange(4, dtype="<f4").tobytes()
    found = inputs_of(served(place, "one", taken("x", "FP32", "-1, 4") + stored, warmup_file={"x": data}.get))
    assert found["warmup_zeros"][1][0] == ("float32", [1, 4], data)
    short = served(place, "one", taken("x", "FP32", "-1, 4") + stored, warmup_file={"x": data[:-1]}.get)
    assert "warmup_zeros is refused" in short.data["adopted"]["inputs_note"]


@pytest.mark.parametrize(
    ("name", "config", "why"),
    [
        ("args", BATCH + IDS, "the configuration has no input for dense"),
        ("args", BATCH + IDS + DENSE + taken("y", "FP32", "1"), "y is argument 2, and forward takes 2"),
        ("args", BATCH + taken("a__0", "INT64", "3") + taken("b__5", "FP32", "4"), "b__5 is argument 5"),
        (
            "args",
            BATCH + taken("a__0", "INT64", "3") + taken("b__00", "FP32", "4"),
            "a__0 and b__00 are both argument 0",
        ),
        ("args", BATCH + taken("a__0", "INT64", "3") + taken(f"b__{'9' * 40}", "FP32", "4"), "is argument 1000000000"),
        (
            "three",
            f"{BATCH}{taken('x', 'FP32', '4')} sequence_batching {{ {START.replace('__1', '')} }}",
            "C ends with no",
        ),
        ("maybe", BATCH + taken("x", "FP32", "4"), "mask = None is neither"),
        (
            "args",
            BATCH + taken("ids", "INT64", "3") + taken("dense", "FP32", "5"),
            "no request of these shapes succeeds",
        ),
        (
            "ends",
            BATCH + IDS + 'batch_input { target_name: "n" data_type: TYPE_FP32 source_input: "q" }',
            "q, which is no",
        ),
    ],
)
def test_what_the_backend_would_not_serve_is_said(place: Place, name: str, config: str, why: str) -> None:
    adopted = served(place, name, config).data["adopted"]
    assert adopted["input_sets"] == []
    assert why in adopted["inputs_note"]


def numbers(result: ProbeResult, name: str, position: int = 0) -> np.ndarray:
    dtype, _, data = inputs_of(result)[name][1][position]
    return np.frombuffer(data, dtype)


def test_whole_numbers_cover_their_dtype(place: Place) -> None:
    result = served(place, "bytes", BATCH + taken("image", "UINT8", "3, 8, 8"))
    drawn = numbers(result, "range")
    assert (drawn.min(), drawn.max()) == (0, 255) and len(np.unique(drawn)) > 100
    assert result.data["adopted"]["inputs_note"].endswith("and with image from 0 to 255")


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "INT64"])
def test_signed_numbers_have_both_ends(place: Place, dtype: str) -> None:
    result = served(place, "one", taken("x", dtype, "4"))
    drawn = numbers(result, "range")
    info = np.iinfo(dtype.lower())
    assert (drawn.min(), drawn.max()) == (info.min, info.max)


def test_ids_fit_the_table_that_the_graph_shows(place: Place) -> None:
    result = served(place, "args", BATCH + DENSE + IDS)
    assert set(inputs_of(result)) == {"example", "larger"}  # the graph knows that there are 50: nothing is wider
    assert numbers(result, "example").max() > 1


def test_ids_fit_a_table_that_only_the_release_knows(place: Place) -> None:
    result = served(place, "hashed", taken("ids", "INT64", "16"))
    drawn = numbers(result, "range")
    assert (drawn.min(), drawn.max()) == (0, 299)
    note = result.data["adopted"]["inputs_note"]
    assert "ids from 0 to 299, more is refused: " in note


@pytest.mark.parametrize("name", ["counted", "until"])
def test_what_counts_a_loop_stays_small(place: Place, name: str) -> None:
    result = served(place, name, taken("n", "INT64", "2"))
    drawn = numbers(result, "range")
    assert drawn.max() == 255
    assert "no more, since it may be a size or count a loop" in result.data["adopted"]["inputs_note"]


def test_guesses_without_a_configuration_are_as_wide(place: Place) -> None:
    adopted = place.adopt("hashed").data["adopted"]
    assert [name for name, _ in adopted["input_sets"]][-1] == "guessed_range"
    assert "ids from 0 to 299" in adopted["inputs_note"]
