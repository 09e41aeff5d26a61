"""A graph walked node by node, with a torch that has no operators: containers, branches, loops, who is told of what."""

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def worker(imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The interpreter beside a torch without operators."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=type("Tensor", (), {})))
    return imported("graph.interpreter")


class Value:
    def __init__(self, name: str) -> None:
        self._name = name

    def debugName(self) -> str:
        return self._name


class Block:
    def __init__(self, inputs: str, nodes: Sequence[Any], outputs: str) -> None:
        self._inputs, self._nodes, self._outputs = inputs, nodes, outputs

    def inputs(self) -> list[Value]:
        return [Value(name) for name in self._inputs.split()]

    def outputs(self) -> list[Value]:
        return [Value(name) for name in self._outputs.split()]

    def nodes(self) -> Sequence[Any]:
        return self._nodes


class Node(Block):
    def __init__(self, kind: str, inputs: str, outputs: str, *blocks: Block, value: object = None) -> None:
        super().__init__(inputs, (), outputs)
        self._kind, self._blocks, self._value = kind, blocks, value

    def kind(self) -> str:
        return self._kind

    def blocks(self) -> Sequence[Block]:
        return self._blocks

    def outputsSize(self) -> int:
        return len(self.outputs())

    def output(self) -> Any:
        return SimpleNamespace(toIValue=lambda: self._value)


ADD = Node("aten::add", "list more", "sum")
BRANCH = Node(
    "prim::If",
    "condition",
    "picked",
    Block("", [Node("aten::len", "list", "length")], "length"),
    Block("", [Node("prim::Constant", "", "other", value=-1)], "other"),
)
LOOP = Node(
    "prim::Loop",
    "limit go list",
    "grown",
    Block("turn carried", [Node("aten::add", "carried more", "next")], "go next"),
)


def called(worker: Any, observer: Any, graph: Block, *arguments: object, defaults: tuple[object, ...] = ()) -> object:
    """Call a method whose last parameters have ``defaults``."""
    declared = [None] * (1 + len(arguments)) + list(defaults)
    schema = SimpleNamespace(arguments=[SimpleNamespace(default_value=value) for value in declared])
    module = SimpleNamespace(forward=SimpleNamespace(inlined_graph=graph, schema=schema))
    return worker.Interpreter(observer).call(module, "forward", arguments)


@pytest.mark.parametrize(("arguments", "defaults"), [(([1, 2], [3, 4]), ()), (([1, 2],), ([3, 4],))])
def test_nodes_pass_values_on_and_what_a_request_leaves_out_has_its_default(
    worker: Any, arguments: tuple[object, ...], defaults: tuple[object, ...]
) -> None:
    graph = Block("self list more", [ADD, Node("aten::len", "sum", "length")], "length")
    assert called(worker, worker.Observer(), graph, *arguments, defaults=defaults) == 4


@pytest.mark.parametrize(("condition", "picked"), [(True, 2), (False, -1)])
def test_one_branch_is_run(worker: Any, condition: bool, picked: int) -> None:
    graph = Block("self condition list", [BRANCH], "picked")
    assert called(worker, worker.Observer(), graph, condition, [7, 8]) == picked


@pytest.mark.parametrize(("limit", "go", "grown"), [(3, True, [0, 1, 1, 1]), (0, True, [0]), (3, False, [0])])
def test_a_loop_carries_its_values(worker: Any, limit: int, go: bool, grown: list[int]) -> None:
    graph = Block("self limit go list more", [LOOP], "grown")
    assert called(worker, worker.Observer(), graph, limit, go, [0], [1]) == grown


def event_log(worker: Any, **changes: Any) -> Any:
    """Return an observer that notes places, and does what ``changes`` say."""

    class EventLog(worker.Observer):  # type: ignore[misc]
        def __init__(self) -> None:
            self.places: list[tuple[int, ...]] = []

        def before(self, place: tuple[int, ...], step: Any, inputs: list[Any]) -> list[Any]:
            self.places.append(place)
            return inputs

    for name, change in changes.items():
        setattr(EventLog, name, change)
    return EventLog()


def test_places_hold_branch_and_turn(worker: Any) -> None:
    graph = Block("self limit go list more condition", [LOOP, BRANCH], "grown picked")
    observer = event_log(worker)
    called(worker, observer, graph, 2, True, [0], [1], False)
    assert observer.places == [(0,), (0, 0, 0), (0, 1, 0), (1,), (1, 1, 0)]


def test_labels_are_those_of_the_observer(worker: Any) -> None:
    observer = event_log(worker, labels=lambda self, address, steps: [5 + index for index in range(len(steps))])
    called(worker, observer, Block("self list more", [ADD], "sum"), [1], [2])
    assert observer.places == [(5,)]


def test_choices_may_be_forced(worker: Any) -> None:
    graph = Block("self condition list", [BRANCH], "picked")
    observer = event_log(worker, chosen=lambda self, place, step, choice: True)
    assert called(worker, observer, graph, False, [7, 8]) == 2


def test_an_error_goes_on_up_unless_there_are_outputs_for_it(worker: Any) -> None:
    graph = Block("self list more", [ADD], "sum")
    with pytest.raises(TypeError):
        called(worker, worker.Observer(), graph, [1], 2)
    observer = event_log(worker, failed=lambda self, place, step, inputs, error: ["instead"])
    assert called(worker, observer, graph, [1], 2) == "instead"


def test_a_node_may_be_left_out(worker: Any) -> None:
    graph = Block("self list more", [ADD], "sum")
    observer = event_log(worker, instead=lambda self, place, step: ["known"])
    assert called(worker, observer, graph, [1], 2) == "known"
