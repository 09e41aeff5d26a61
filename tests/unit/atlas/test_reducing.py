"""What becomes of differences between releases: planted ones are named and made small, noise is none."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from benchmarks.atlas.arguments import edges, features, logical, tensors
from benchmarks.atlas.differences import difference
from benchmarks.atlas.reducing import Four, entries
from harness.core.atlas import Kind

Release = Callable[[list[float]], Any]


def call(*values: float, alpha: float = 1.0) -> dict[str, Any]:
    tensor = {"dtype": "float32", "shape": [len(values)], "values": list(values)}
    return {"operator": "aten::planted", "arguments": [tensor, alpha, "kept"], "keywords": {}}


def answer(values: Sequence[float], **changes: Any) -> dict[str, Any]:
    tensor = {"dtype": "float32", "shape": [len(values)], "values": list(values), **changes}
    return {"outputs": [tensor], "aliases": [None], "changed": [], "drawn": False}


def asking(*four: Release) -> Callable[[Sequence[Any]], Iterator[Four]]:
    """Return what asks four sessions (old, new, and both again), each a function of a call's elements."""

    def ask(calls: Sequence[Any]) -> Iterator[Four]:
        for one in calls:
            elements = logical(tensors(one)[0])
            old, new, old_again, new_again = [
                made if isinstance(made := release(elements), dict) else answer(made) for release in four
            ]
            yield old, new, old_again, new_again

    return ask


def same(values: list[float]) -> list[float]:
    return values


def loses_nan(values: list[float]) -> list[float]:
    return [0.0 if math.isnan(item) else item for item in values]


def grows(values: list[float]) -> list[float]:
    return [item * 1.5 if item > 2 else item for item in values]


def test_a_planted_difference_is_made_small_and_named_by_what_it_needs() -> None:
    calls = [call(0.5, 1.25, 3.0, 4.0), call(0.25, math.nan, 7.0, math.inf), call(1.5, 0.5)]
    found, counts = entries(calls, asking(same, loses_nan, same, loses_nan))
    (entry,) = found
    assert (entry["kind"], entry["features"]) == (Kind.NAN, ["NaN"])
    (tensor,) = tensors({**entry["call"]})
    assert len(tensor["values"]) == 2
    assert any(math.isnan(item) for item in tensor["values"])
    assert (entry["calls"], counts["calls"], counts["noise"]) == (1, 3, 0)


def test_plain_arguments_that_show_it_make_the_edges_superfluous() -> None:
    calls = [call(0.5, 3.0), call(3.5, -0.0), call(math.inf, 3.0, 5.0)]
    (entry,) = entries(calls, asking(same, grows, same, grows))[0]
    assert (entry["kind"], entry["features"], entry["calls"]) == (Kind.VALUES, [], 3)
    assert entry["tolerances"] > 1000


@pytest.mark.parametrize("noisy", [0, 1], ids=["old", "new"])
def test_what_a_release_does_not_answer_twice_alike_is_its_noise(noisy: int) -> None:
    sessions = [same, grows, same, grows]
    sessions[noisy + 2] = loses_nan if noisy else grows
    found, counts = entries([call(3.0, math.nan)], asking(*sessions))
    assert found == []
    assert counts["noise"] == 1


def test_alike_releases_show_nothing() -> None:
    found, counts = entries([call(1.0, math.nan), call(3.0)], asking(same, same, same, same))
    assert (found, counts["noise"]) == ([], 0)


def test_what_ends_a_process_is_told_without_its_arguments() -> None:
    def ends(values: list[float]) -> Any:
        return {"lost": "ended"}

    (entry,) = entries([call(1.0, 2.0)], asking(same, ends, same, ends))[0]
    assert (entry["kind"], entry["call"], entry["old"], entry["new"]) == (
        Kind.LOST,
        None,
        {"lost": ""},
        {"lost": "ended"},
    )


def test_a_constant_that_all_have_and_the_others_have_not_is_named() -> None:
    calls = [call(3.0, alpha=0.5), call(4.0, 5.0, alpha=0.5), call(1.0, alpha=2.0), call(1.5, 0.5, alpha=0.5)]
    (entry,) = entries(calls, asking(same, grows, same, grows))[0]
    assert entry["when"] == {"1": 0.5}


TWO = [1.0, 2.0]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (answer(TWO), answer(TWO), None),
        (answer(TWO), answer([1.0, 2.00001]), None),
        (answer(TWO), answer([1.0, 2.1]), Kind.VALUES),
        (answer(TWO), answer([2.0, 1.0]), Kind.ORDER),
        (answer(TWO), answer([1.0, math.nan]), Kind.NAN),
        (answer(TWO), answer([1.0, math.inf]), Kind.INFINITY),
        (answer([math.inf]), answer([-math.inf]), Kind.INFINITY),
        (answer(TWO), answer(TWO, dtype="float64"), Kind.DTYPE),
        (answer(TWO), answer(TWO, shape=[1, 2]), Kind.SHAPE),
        (answer(TWO), answer(TWO, strides=[2]), Kind.STRIDES),
        (answer(TWO), {**answer(TWO), "aliases": [0]}, Kind.ALIASING),
        (answer(TWO), {**answer([3.0, 4.0]), "drawn": True}, Kind.VALUES),
        ({**answer(TWO), "drawn": True}, {**answer([3.0, 4.0]), "drawn": True}, Kind.STREAM),
        (answer(TWO), {"error": "RuntimeError", "text": "no"}, Kind.REFUSED),
        ({"error": "RuntimeError", "text": "no"}, answer(TWO), Kind.ACCEPTED),
        ({"error": "RuntimeError", "text": "no"}, {"error": "IndexError", "text": "never"}, None),
        ({"error": "RuntimeError", "text": "no"}, {"lost": "ended"}, Kind.LOST),
        ({"missing": True}, answer(TWO), None),
    ],
)
def test_the_gravest_difference_is_named(old: dict[str, Any], new: dict[str, Any], kind: Kind | None) -> None:
    apart = difference(old, new)
    assert (apart.kind if apart is not None else None) is kind


def test_edges_of_a_plain_call_are_peculiar_each_in_its_way() -> None:
    plain = {
        "operator": "aten::planted",
        "arguments": [{"dtype": "float32", "shape": [2, 1, 2, 2], "values": [float(at) for at in range(1, 9)]}],
        "keywords": {},
    }
    assert features(plain) == ()
    met = {feature for edge in edges(plain) for feature in features(edge)}
    assert met >= {"NaN", "infinity", "-0.0", "denormal", "huge", "empty", "0-d", "one element", "expanded"}
    assert met >= {"channels-last", "not contiguous"}
    assert {tensors(edge)[0]["dtype"] for edge in edges(plain)} >= {"float16", "bfloat16", "float64", "int64", "bool"}
    layouts = [edge for edge in edges(plain) if features(edge) in (("channels-last",), ("not contiguous",))]
    assert [logical(tensors(edge)[0]) for edge in layouts] == [logical(tensors(plain)[0])] * len(layouts)
