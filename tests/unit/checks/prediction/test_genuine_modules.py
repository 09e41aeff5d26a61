"""The grammar that draws genuine modules: each is a program of Python, equal chances draw equal ones."""

import ast
import random

from hypothesis import given, strategies as st

from benchmarks.faults._genuine_modules import module_source
from tests.integration.checks.prediction.genuine_kinds import KINDS


@given(st.randoms(use_true_random=False))
def test_each_module_is_a_program(chance: random.Random) -> None:
    text = module_source(chance)
    assert "class Net(torch.nn.Module):" in text
    ast.parse(text)


def test_equal_seeds_draw_equal_modules() -> None:
    drawn = [[module_source(random.Random(f"7 {index}")) for index in range(20)] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 20


def test_each_kind_is_a_program() -> None:
    for text in KINDS.values():
        ast.parse(text)
