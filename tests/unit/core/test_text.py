"""The first of many texts, and how many more there are."""

import pytest

from harness.core.text import first_few


@pytest.mark.parametrize(
    ("texts", "joint", "said"),
    [
        ([], ", ", ""),
        (["a"], ", ", "a"),
        (["a", "b"], ", ", "a, b"),
        (["a", "b", "c"], ", ", "a, b and 1 more"),
        (("a", "b", "c", "d"), " + ", "a + b and 2 more"),
        (["a, b", "c"], "; ", "a, b; c"),
        (["a, b", "c", "d"], "; ", "a, b; c; and 1 more"),
    ],
)
def test_the_first_few_are_named_and_the_rest_counted(texts: list[str], joint: str, said: str) -> None:
    assert first_few(texts, 2, joint) == said
