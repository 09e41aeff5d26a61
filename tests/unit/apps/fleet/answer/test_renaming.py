"""A result under another name: whatever an artifact is called, its names change and nothing else does."""

import dataclasses
import typing
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.core.fleet import FleetResult
from harness.core.outcome import Status
from harness.core.report import Explained, ScenarioReport, ScenarioSide
from harness.core.verdict import Mitigation
from harness.apps.fleet.answer.renaming import NAMED, renamed
from harness.store import codec
from tests.unit.builders.pages import comparison, tensor
from tests.unit.builders.planted_causes import red, refused
from tests.unit.builders.reports import cell_id, latency, ratio
from tests.unit.apps.fleet.answers import answer, artifact, plan_of, result_of, statuses

# Words that stand in results for something else: of enums, kinds of findings, fields, scenarios, devices, labels.
WORDS = (
    *("model", "new", "old", "full", "weights", "torch", "PASS", "FAIL", "values", "cpu", "alone", "concurrent", "all"),
    *(
        "default",
        "backward",
        "float32",
        "python",
        "ads",
        "example",
        "output",
        "s",
        "bytes",
        "steady",
        "completed",
        "key",
    ),
    *(
        "name",
        "cell",
        "program",
        "torchscript",
        "None",
        "true",
        "nan",
        "inf",
        "alone_",
        "net",
        "what",
        "A",
        "B",
        "differs",
    ),
)


def result(name: str) -> FleetResult:
    """A result with names of models wherever one can stand, and all kinds of other texts."""
    planned = plan_of(artifact(name))
    cell = replace(red(name, "values", "differs"), note=name, judged=Status.FAIL)
    finding = replace(cell.findings[0], quantity=name, detail={name: "kept"}, story=(("what", name),), where=name)
    tried = Mitigation(
        cell=cell_id(name, "alone"), model=name, name=name, switches={name: True}, mitigates=False, breaks=("b", name)
    )
    _, facts = refused(name, "prim::is_ort")
    facts = replace(
        facts,
        model=name,
        group=name,
        tags=(name, "ads"),
        comparisons=(replace(comparison(tensor()), model=name),),
        latency=latency(name, ratio(1.02)),
    )
    made = result_of(planned, name, replace(cell, findings=(finding,)), facts=facts, mitigations=(tried,))
    side = ScenarioSide(rounds=1, failed=0, ready=1)
    group = ScenarioReport(scenario="concurrent", group=name, worker="python", threads=4, models=1, new=side)
    explained = Explained(cell=cell_id(name, "alone"), model=name, by="bisect", answer=name, lines=((name, name),))
    return replace(made, key="k", content={"program": name}, scenarios=(group,), explained=(explained,))


def texts(value: Any, path: str = "$") -> Iterator[tuple[str, str]]:
    """Each text of a result with where it stands."""
    if isinstance(value, str):
        yield path, str(value)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from texts(getattr(value, field.name), f"{path}.{type(value).__name__}.{field.name}")
    elif isinstance(value, dict):
        for at, (key, item) in enumerate(value.items()):
            yield f"{path}[{at}]", str(key)
            yield from texts(item, f"{path}[{at}]")
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            yield from texts(item, f"{path}[{at}]")


@pytest.mark.parametrize("word", WORDS)
def test_an_artifact_called_like_any_word_changes_its_names_and_nothing_else(word: str) -> None:
    before, after = result(word), renamed(result(word), "ranker_7")
    names = tuple(f"{type_.__name__}.{field}" for type_, found in NAMED.items() for field in found)
    for (path, was), (other, now) in zip(texts(before), texts(after), strict=True):
        assert path == other
        is_name = path.split("[")[-2 if path.endswith("]") else -1].endswith(names) or path.endswith(names)
        if not is_name or was == "b":
            assert now == was, path
        else:
            assert now == ("ranker_7" if was == word else "ranker_7" + was[len(word) :]), path
    assert codec.canonical(renamed(after, word)) == codec.canonical(before)


def test_every_field_that_may_hold_a_name_is_known() -> None:
    """A new field that is called like one fails here until somebody says what it holds."""

    def walk(kind: Any, seen: set[type]) -> Iterator[tuple[type, str]]:
        for part in typing.get_args(kind):
            yield from walk(part, seen)
        if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind not in seen:
            seen.add(kind)
            for name, hint in typing.get_type_hints(kind).items():
                if name in ("model", "cell", "group", "breaks", "cells") or (kind is FleetResult and name == "name"):
                    yield (kind, name) if "str" in str(hint) else (kind, "")
                yield from walk(hint, seen)

    found = {pair for pair in walk(FleetResult, set()) if pair[1]}
    assert found == {(kind, name) for kind, names in NAMED.items() for name in names}


def test_a_name_that_begins_like_another_is_another() -> None:
    planned = plan_of(artifact("net"))
    cell = red("net", "values", "net_large is not renamed")
    found = renamed(result_of(planned, "net", cell), "ranker")
    assert found.name == found.row.model == found.facts.model == "ranker"
    assert found.row.cells[0].cell == cell_id("ranker", "alone")
    assert found.row.cells[0].findings[0].message == "net_large is not renamed"


@pytest.mark.parametrize("word", ["model", "new", "full", "torch", "PASS", "values", "cpu", "alone"])
def test_a_copy_of_an_artifact_called_like_a_word_has_its_verdict(word: str) -> None:
    planned = plan_of(artifact(word, weights="W"), artifact("zz_copy", weights="W"))
    cell, facts = refused(word, "prim::is_ort")
    made = answer(planned, result_of(planned, word, cell, facts=facts))
    assert statuses(made) == {word: Status.FAIL, "zz_copy": Status.FAIL}
    assert made.report is not None
    own, copy = made.report.judgement.rows
    assert [finding.kind for finding in copy.cells[0].findings] == [finding.kind for finding in own.cells[0].findings]
