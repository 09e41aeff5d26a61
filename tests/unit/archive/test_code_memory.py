import pytest

from harness.archive.code import CodeMemory
from harness.archive.limits import LIMITS, CannotRead


def text(name: str) -> str:
    return f"x = torch.{name}(y)\n"


def test_equal_text_is_read_once_and_told_apart_by_module() -> None:
    memory = CodeMemory()
    first = memory.read(text("f"), "__torch__.a", LIMITS)
    assert memory.read(text("f"), "__torch__.a", LIMITS) is first
    assert memory.read(text("f"), "__torch__.b", LIMITS) is not first


def test_the_oldest_is_forgotten_beyond_the_limit() -> None:
    memory = CodeMemory(limit_bytes=2 * len(text("f")))
    kept = {name: memory.read(text(name), "__torch__", LIMITS) for name in "fg"}
    assert memory.read(text("f"), "__torch__", LIMITS) is kept["f"]
    memory.read(text("h"), "__torch__", LIMITS)
    assert memory.read(text("f"), "__torch__", LIMITS) is kept["f"]
    assert memory.read(text("g"), "__torch__", LIMITS) is not kept["g"]


def test_what_cannot_be_read_is_not_remembered() -> None:
    memory = CodeMemory()
    for _ in range(2):
        with pytest.raises(CannotRead):
            memory.read("x = (", "__torch__", LIMITS)
