"""What a text tells about the machine is taken out, and nothing else."""

import pytest

from harness.core.text import without_places


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/jo/work/secret/model.py:33", ".../model.py:33"),
        ("~/work/secret/model.py", ".../model.py"),
        ("at /srv/x/lib/python3.11/site-packages/torch/nn/functional.py:4028,", "at .../torch/nn/functional.py:4028,"),
        ("cannot open '/data/run-1/probes/ab/m.pt'", "cannot open '.../m.pt'"),
        ("/a/b/c/ and (/d/e/f)", ".../c and (.../f)"),
        ("code/__torch__/models.py", "code/__torch__/models.py"),
        ("1/2/3 and a / b", "1/2/3 and a / b"),
        ("https://github.com/pytorch/pytorch/issues", "https://github.com/pytorch/pytorch/issues"),
        ("aten::add(Tensor self, *, Tensor other)", "aten::add(Tensor self, *, Tensor other)"),
        ("models.py:3", "models.py:3"),
    ],
)
def test_folders_of_absolute_paths_are_left_out(text: str, shown: str) -> None:
    assert without_places(text) == shown
