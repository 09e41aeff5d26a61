"""``diff``: what exists is compared by the rules of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cli import main

X = np.linspace(-2.0, 2.0, 32, dtype="f4").reshape(4, 8)


def recorded(folder: Path, **models: Any) -> str:
    """Write a file of outputs for each model, and return the folder."""
    folder.mkdir()
    for name, array in models.items():
        np.savez(folder / f"{name}.npz", score=array)
    return str(folder)


@pytest.mark.parametrize(
    ("new", "code", "word"),
    [
        ({"ranker": X}, 0, "same bits"),
        ({"ranker": X * (1 + 1e-7)}, 0, "within tolerance"),
        ({"ranker": X + 0.1}, 1, "beyond tolerance"),
        ({"ranker": np.where(X > 1.9, np.nan, X)}, 1, "beyond tolerance"),
        ({"ranker": X[:2]}, 1, "other structure"),
        ({"ranker": X.astype("f8")}, 1, "other structure"),
        ({"ranker": X, "tagger": X}, 1, "new"),
        ({"tagger": X}, 1, "gone"),
    ],
)
def test_outputs_are_compared_by_the_tolerances_of_a_run(
    new: dict[str, Any], code: int, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old_folder, new_folder = recorded(tmp_path / "old", ranker=X), recorded(tmp_path / "new", **new)
    assert main(["diff", old_folder, new_folder]) == code
    assert word in capsys.readouterr().out.splitlines()[-1]


def test_a_tolerance_that_is_given_takes_the_place_of_the_dtypes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = recorded(tmp_path / "old", ranker=X), recorded(tmp_path / "new", ranker=X * 1.005)
    assert [main(["diff", *sides]), main(["diff", *sides, "--tolerance", "1e-2"])] == [1, 0]
    for nonsense in ("1.5", "0", "nan", "much"):
        with pytest.raises(SystemExit) as left:
            main(["diff", *sides, "--tolerance", nonsense])
        assert left.value.code == 2
        assert f"expected a number above 0 and at most 0.1, got {nonsense}" in capsys.readouterr().err


def test_two_files_are_of_one_model_whatever_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "ranker-2.1.npz", score=X)
    np.savez(tmp_path / "ranker-2.6.npz", score=X)
    assert main(["diff", str(tmp_path / "ranker-2.1.npz"), str(tmp_path / "ranker-2.6.npz")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 model: 1 same bits"


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(tmp_path / "gone"), str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {tmp_path}/gone: no such file or folder; name")
