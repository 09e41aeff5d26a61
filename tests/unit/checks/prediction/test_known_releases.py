"""The table of what releases accept, which spares installing them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from harness.artifacts.archive.code import TYPE_WORDS
from harness.checks.prediction import known_releases
from harness.checks.prediction.known_releases import folded, is_known, known, known_registry, unfolded
from harness.core.environment import EnvSpec

ENTRIES = st.lists(st.sampled_from(["aten::a(Tensor x) -> Tensor", "b", "c d", "e-f"]), unique=True).map(sorted)
DUMPS = st.dictionaries(
    st.sampled_from(["1.13.1", "2.0.1", "2.1.2", "2.6.0", "2.15.0"]),
    st.fixed_dictionaries({"schemas": ENTRIES, "dtypes": ENTRIES, "functions": ENTRIES}),
    min_size=1,
)


def dump(lists: dict[str, list[str]], torch: str = "2.6.0+cu124") -> dict[str, Any]:
    programs = {"schema": [8, 2], "operators": [], "callables": [], "functions": lists["functions"]}
    return {
        "torch": torch,
        "operator_version": 10,
        **dict.fromkeys(known_releases.LISTS, []),
        "schemas": lists["schemas"],
        "dtypes": lists["dtypes"],
        "upgraders": [["up", 3, "text"]],
        "programs": programs,
        "torch_libraries": [],
    }


@given(lists=DUMPS)
def test_folding_loses_nothing(lists: dict[str, dict[str, list[str]]]) -> None:
    dumps = {release: dump(of, release) for release, of in sorted(lists.items(), key=lambda item: Version(item[0]))}
    table = json.loads(json.dumps(folded(dumps)))
    assert {release: unfolded(table, release) for release in dumps} == dumps


def test_an_entry_stands_once_with_the_ranges_of_releases_that_have_it() -> None:
    with_a = {"schemas": ["a"], "dtypes": [], "functions": []}
    without: dict[str, list[str]] = {"schemas": [], "dtypes": [], "functions": []}
    dumps = {"1": dump(with_a), "2": dump(with_a), "3": dump(without), "4": dump(with_a)}
    assert folded(dumps)["lists"]["schemas"] == {'"a"': "1-2 4"}


def test_table_knows_releases_in_order_and_what_they_brought_and_took() -> None:
    assert list(known()) == sorted(known(), key=Version) and {"1.13.1", "2.1.2", "2.6.0", "2.15.0"} <= set(known())
    for release in known():
        registry = known_registry(release)
        assert registry.torch.startswith(release) and "aten::add" in registry.schemas
        assert {schema.overload for schema in registry.schemas["aten::add"]} >= {"Tensor", "Scalar"}
    assert "prim::is_ort" in known_registry("2.1.2").schemas and "prim::is_ort" not in known_registry("2.6.0").schemas


def test_table_was_asked_for_the_types_that_the_reader_looks_for() -> None:
    table = json.loads(known_releases.FILE.read_text())
    assert table["type_words"] == sorted(TYPE_WORDS), "write it again: python -m benchmarks.known_releases RELEASE ..."


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"release": "2.6.0"}, True),
        ({"release": "2.6.0", "extras": ("numpy",)}, True),
        ({"release": "0.4.1"}, False),
        ({"interpreter": "/opt/python"}, False),
        ({"release": "2.6.0", "libraries": ("torchvision",)}, False),
        ({"release": "2.6.0", "index_args": ("--index-url", "https://wheels.example")}, False),
    ],
)
def test_what_an_own_index_or_a_library_brings_is_asked_of_its_environment(
    changes: dict[str, Any], answer: bool
) -> None:
    assert is_known(EnvSpec(name="new", **changes)) is answer
