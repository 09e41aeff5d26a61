"""What is cut off by the limit of time is what tells least."""

from harness.core.devices import CPU, TABLE
from tests.gpu.parts import PARTS


def test_graphs_are_captured_before_anything_is_timed_where_the_device_has_them() -> None:
    words = {part.name: part.words_on(TABLE["cuda"]) for part in PARTS}
    assert list(words) == ["models", "timing", "scenarios"]
    assert "cuda_graphs" in words["models"] and "cuda_graphs" in words["timing"]
    assert all("cuda_graphs" not in part.words_on(CPU) for part in PARTS)
