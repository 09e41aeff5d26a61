"""Files of outputs that were recorded elsewhere."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.artifacts.output_files import output_files, read_outputs_file
from harness.artifacts.tensors.decode import decode
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.trees import leaves
from harness.core.errors import GoldenError


def safetensors(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def values(outputs: Outputs) -> dict[tuple[str, str], list[object]]:
    """Return (input set, path) -> the values, as lists."""
    return {
        (input_set, path): decode(spec, outputs.buffer).values.tolist()
        for (input_set, _), tree in outputs.calls.items()
        for path, spec in leaves(tree)
    }


def test_safetensors_are_read_with_the_dtypes_that_numpy_has_not(tmp_path: Path) -> None:
    one_and_two = bytes.fromhex("803f0040")
    header = {
        "__metadata__": {"made": "elsewhere"},
        "score": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        "monday/ids": {"dtype": "I64", "shape": [1, 1], "data_offsets": [4, 12]},
        "monday/none": {"dtype": "F32", "shape": [0], "data_offsets": [12, 12]},
    }
    (tmp_path / "m.safetensors").write_bytes(safetensors(header, one_and_two + struct.pack("<q", -7)))
    outputs = read_outputs_file(tmp_path / "m.safetensors")
    assert list(outputs.calls) == [("example", 0), ("monday", 0)]
    assert values(outputs) == {
        ("example", "output['score']"): [1.0, 2.0],
        ("monday", "output['ids']"): [[-7]],
        ("monday", "output['none']"): [],
    }


def test_npz_is_read_whatever_the_order_of_its_bytes_and_axes(tmp_path: Path) -> None:
    rows = np.arange(6, dtype=">f8").reshape(2, 3)
    arrays: dict[str, Any] = {"b/y": np.asfortranarray(rows), "b/flag": np.array(True)}
    np.savez(tmp_path / "m.npz", x=rows, **arrays)
    assert values(read_outputs_file(tmp_path / "m.npz")) == {
        ("example", "output['x']"): [[0, 1, 2], [3, 4, 5]],
        ("b", "output['y']"): [[0, 1, 2], [3, 4, 5]],
        ("b", "output['flag']"): True,
    }


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.safetensors", b"short", "its header is longer than the file"),
        ("m.safetensors", safetensors({}, length=1 << 40), "its header is longer than the file"),
        ("m.safetensors", safetensors([]), "cannot be read"),
        ("m.safetensors", safetensors({}), "holds no output"),
        (
            "m.safetensors",
            safetensors({"x": {"dtype": "X9", "shape": [], "data_offsets": [0, 1]}}),
            "no dtype of torch",
        ),
        (
            "m.safetensors",
            safetensors({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"),
            "x: 4 bytes are not float32 of shape [2]",
        ),
        ("m.npz", b"no zip", "cannot be read"),
    ],
)
def test_what_is_no_file_of_outputs_is_refused_by_its_name(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GoldenError, match=re.escape(said)) as refused:
        read_outputs_file(tmp_path / name)
    assert str(tmp_path / name) in str(refused.value)


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", x=np.array([{}], dtype=object))
    with pytest.raises(GoldenError, match="cannot be read"):
        read_outputs_file(tmp_path / "m.npz")


def test_files_of_a_folder_are_models_by_their_paths(tmp_path: Path) -> None:
    for name in ("ads/ranker.npz", "ads/notes.txt", "ranker.safetensors"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert output_files(tmp_path) == {
        "ads/ranker": tmp_path / "ads" / "ranker.npz",
        "ranker": tmp_path / "ranker.safetensors",
    }
    assert output_files(tmp_path / "ranker.safetensors") == {"ranker": tmp_path / "ranker.safetensors"}
    (tmp_path / "ranker.npz").touch()
    with pytest.raises(GoldenError, match="are of one model"):
        output_files(tmp_path)
    with pytest.raises(GoldenError, match=r"gone: no such file or folder; name a golden folder"):
        output_files(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(GoldenError, match=r"empty: no \.safetensors or \.npz file and no golden folder"):
        output_files(tmp_path / "empty")
