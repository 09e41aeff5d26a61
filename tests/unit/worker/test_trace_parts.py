"""The parts of a trace that need no torch: which node is which, where its code is, which module it belongs to."""

import importlib
from collections.abc import Sequence
from typing import Any

import pytest


node_facts: Any = importlib.import_module("harness.worker.graph.node_facts")  # needs no other module of the worker


def keys(text: str) -> list[list[str]]:
    return [[f"aten::{letter}", "", f"m.py:{index}"] for index, letter in enumerate(text)]


def shifted(text: str) -> list[list[str]]:
    """The same nodes, with sources in other words."""
    return [[kind, name, f"other/{source}"] for kind, name, source in keys(text)]


@pytest.mark.parametrize(
    ("theirs", "mine", "labels"),
    [
        pytest.param(keys("abca"), shifted("abca"), [0, 1, 2, 3], id="equal"),
        pytest.param(
            keys("abcd"),
            [*keys("ab"), ["aten::to", "", "upgrader.py:1"], *keys("abcd")[2:]],
            [0, 1, -3, 2, 3],
            id="more",
        ),
        pytest.param(keys("abcd"), [keys("abcd")[0], *keys("abcd")[2:]], [0, 2, 3], id="gone"),
        pytest.param(keys("abcd"), shifted("abxcd"), [0, 1, -3, 2, 3], id="sources in other words"),
    ],
)
def test_nodes_of_two_graphs_are_aligned_by_source_or_by_kind(
    theirs: list[list[str]], mine: list[list[str]], labels: list[int]
) -> None:
    assert node_facts.aligned(theirs, mine) == labels


SCRIPTED = '  File "/m/model.py", line 33\n        x = self.mix(x)\n        x = torch.cosh(x)\n            ~~~~~~~~~~ <--- HERE\n'
SERIALIZED = (
    '  File "", line 0\nSerialized   File "code/__torch__/m.py", line 45\n    y = f(x)\n        ~~~~ <--- HERE\n'
)
TRACED = (
    "/e/site-packages/torch/nn/conv.py(456): _conv\n/m/vision.py(185): forward\n/e/site-packages/torch/jit.py(1): t\n"
)


@pytest.mark.parametrize(
    ("text", "source", "code"),
    [
        (SCRIPTED, "/m/model.py:33", "x = torch.cosh(x)"),
        (SERIALIZED, "code/__torch__/m.py:45", "y = f(x)"),
        (TRACED, "/m/vision.py:185", ""),
        (TRACED + SERIALIZED.partition("\n")[2], "/m/vision.py:185", "y = f(x)"),
        ("", "", ""),
    ],
)
def test_where_the_code_of_a_node_is(text: str, source: str, code: str) -> None:
    assert node_facts.source_of(text) == source
    assert node_facts.code_of(text) == code


class Node:
    """A node with the modules that torch remembers of it."""

    def __init__(self, hierarchy: str) -> None:
        self._hierarchy = hierarchy

    def getModuleHierarchy(self) -> str:
        return self._hierarchy

    def inputs(self) -> Sequence[object]:
        return ()


PATHS = {("encoder",), ("encoder", "layers"), ("encoder", "layers", "0"), ("encoder", "layers", "1"), ("head",)}


@pytest.mark.parametrize(
    ("hierarchy", "module"),
    [
        ("encoder(Encoder).1(Layer)", "encoder.layers.1"),
        ("encoder(Encoder).1(Layer).UNKNOWN_INSTANCE(UNKNOWN_TYPE)", "encoder.layers.1"),
        ("head(Linear)", "head"),
        ("", ""),
        ("UNKNOWN_INSTANCE(UNKNOWN_TYPE)", ""),
        ("decoder(Decoder).1(Layer)", ""),
    ],
)
def test_the_module_of_a_node_is_the_path_that_has_its_names(hierarchy: str, module: str) -> None:
    assert node_facts.module_of(Node(hierarchy), PATHS) == module


def test_a_module_that_could_be_either_of_two_is_not_named() -> None:
    two = {("a", "layers", "0"), ("b", "layers", "0")}
    assert node_facts.module_of(Node("0(Layer)"), two) == ""
