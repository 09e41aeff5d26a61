"""Risks of a model out of the atlas: what reading cannot exclude, the gravest first, and never a verdict."""

from typing import Any

import pytest

from harness.checks.prediction.atlas import atlas, changed_between
from harness.checks.prediction.risks import MOST, risks
from harness.checks.prediction.semantics import CHANGES, changes_between
from harness.core.archive import StorageGroup
from harness.core.atlas import Atlas, Kind, OperatorChange
from harness.core.prediction import ANSWERS_OTHERWISE, InspectedFile, Inspection, Prediction, StaticVerdict, Weight
from harness.report.formats import INSPECTION
from tests.unit.builders.archives import facts, use


def change(operator: str = "aten::planted", kind: Kind = Kind.NAN, **changes: Any) -> OperatorChange:
    return OperatorChange(
        operator=operator, kind=kind, **{"old": "2.1.2", "new": "2.6.0", "dtypes": ("float32",), **changes}
    )


def told(*changes: OperatorChange, **about: Any) -> list[str]:
    names = ("aten::planted", "aten::other", "aten::third", "aten::fourth")
    found = risks(facts(*(use(name, "Tensor") for name in names), **about), changes, "2.1.2", "2.6.0")
    assert {(item.kind, item.weight) for item in found} <= {(ANSWERS_OTHERWISE, Weight.NOTE)}
    return [f"{item.subject}: {item.text}" for item in found]


def test_a_planted_change_is_told_with_what_it_needs() -> None:
    (text,) = told(change("aten::planted.Tensor", features=("NaN",), when={"mode": 1}))
    assert text == "aten::planted: answers otherwise on NaN with mode=1 since 2.6.0: NaN elsewhere"


@pytest.mark.parametrize(
    "healthy",
    [
        change("aten::absent"),
        change(dtypes=("float16",)),
        change(features=("expanded",)),
        change(features=("NaN", "not contiguous")),
        change(kind=Kind.ACCEPTED),
        change(kind=Kind.STRIDES),
        change(kind=Kind.VALUES, tolerances=2.0),
    ],
)
def test_what_the_file_or_nobody_will_meet_is_not_told(healthy: OperatorChange) -> None:
    assert told(healthy) == []


def test_a_dtype_of_the_weights_counts() -> None:
    half = StorageGroup(dtype="float16", device="cpu", count=1, nbytes=2)
    assert len(told(change(dtypes=("float16",)), storages=(half,))) == 1


def test_each_operator_once_and_few_in_all() -> None:
    names = ("aten::planted", "aten::planted.out", "aten::other", "aten::third", "aten::fourth")
    assert [text.partition(": ")[0] for text in told(*map(change, names))] == [
        "aten::planted",
        "aten::other",
        "aten::third",
    ]
    assert MOST == 3


def test_a_change_with_a_link_is_told_once_and_elsewhere() -> None:
    known = facts(use("aten::softshrink", "Tensor"))
    assert risks(known, [change("aten::softshrink")], "2.1.2", "2.6.0") == ()
    assert len(risks(known, [change("aten::softshrink")], "2.6.0", "2.15.0")) == 1


MEASURED = Atlas(
    releases=("2.1.2", "2.6.0", "2.15.0"),
    measured="here",
    calls={},
    changes=(change(kind=Kind.REFUSED, before="[1]", after="no"), change("aten::late", old="2.6.0", new="2.15.0")),
)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("2.1.2", "2.6.0+cpu", ["aten::planted"]),
        ("2.1.2", "2.15.0", ["aten::planted", "aten::late"]),
        ("2.0.1", "2.16.0", ["aten::planted", "aten::late"]),
        ("2.3.1", "2.6.0", []),
        ("2.6.0", "2.6.0", []),
        ("2.6.0", "2.7.0", []),
        ("our-own-build", "2.6.0", []),
    ],
)
def test_only_what_surely_lies_between_counts(old: str, new: str, names: list[str]) -> None:
    assert [item.operator for item in changed_between(MEASURED, old, new)] == names


def test_the_way_back_is_turned_around() -> None:
    (back,) = changed_between(MEASURED, "2.6.0", "2.1.2")
    assert (back.kind, back.old, back.new, back.before, back.after) == (Kind.ACCEPTED, "2.6.0", "2.1.2", "no", "[1]")


def test_the_shipped_atlas_is_whole() -> None:
    shipped = atlas()
    assert shipped.changes
    assert {(item.old, item.new) for item in shipped.changes} <= set(zip(shipped.releases, shipped.releases[1:]))
    assert {item.operator for item in shipped.changes} <= shipped.calls.keys()
    assert all(bool(item.call) is (item.kind is not Kind.LOST) for item in shipped.changes)


def test_every_shipped_change_that_plain_arguments_show_is_a_risk_of_who_calls_the_operator() -> None:
    named = 0
    for item in atlas().changes:
        plain = not item.features and "float32" in item.dtypes and item.kind in (Kind.REFUSED, Kind.NAN)
        if plain and item.name not in {known.operator for known, _ in changes_between(item.old, item.new)}:
            (risk,) = risks(
                facts(use(item.name, "Tensor")), changed_between(atlas(), item.old, item.new), item.old, item.new
            )
            named += risk.subject == item.name
    assert named > 3


def shown(*changes: OperatorChange) -> str:
    about = facts(use("aten::planted", "Tensor"))
    findings = risks(about, changes, "2.1.2", "2.6.0")
    verdict = StaticVerdict(torch="2.6.0", direction="backward", prediction=Prediction.LOADS, findings=findings)
    file = InspectedFile(path="net.pt", facts=about, verdicts={"new": verdict})
    return INSPECTION.render("text", Inspection(releases={"old": "2.1.2", "new": "2.6.0"}, files=(file,)))


def test_an_inspection_shows_risks_beside_a_prediction_that_stays() -> None:
    text = shown(change(features=("NaN",)))
    assert "will load" in text
    assert "aten::planted: answers otherwise on NaN since 2.6.0" in text
    assert "operators --old 2.1.2 --new 2.6.0 --operator planted" in text
    assert "answers otherwise" not in shown()


# Its samples are too small to have a border that shows it.
UNSEEN = {"aten::upsample_bicubic2d"}


def test_what_links_document_of_measured_releases_was_measured_as_well() -> None:
    pairs = {(item.old, item.new) for item in atlas().changes}
    documented = {item.operator for item in CHANGES if not item.drawn and (item.after, item.by) in pairs}
    assert documented - {item.name for item in atlas().changes if item.kind is not Kind.ACCEPTED} == UNSEEN
