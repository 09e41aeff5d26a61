"""An inspection in its three forms, against accepted outputs."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.core.archive import (
    ArchiveFacts,
    ArchiveFormat,
    ArchiveProblem,
    CodePlace,
    OperatorUse,
    Reach,
    StorageGroup,
)
from harness.core.prediction import InspectedFile, Inspection, Prediction, StaticFinding, StaticVerdict, Weight
from harness.report.ci.sarif import render_sarif
from harness.report.json.results import dump_inspection
from harness.report.text.inspection import render_static
from tests.unit.builders.readers import valid
from tests.unit.builders.snapshots import check_snapshot

PLACE = CodePlace(member="code/__torch__/ranker.py", line=12, function="__torch__.ranker.Ranker.forward")
CHOLESKY = OperatorUse(name="aten::cholesky", arguments=("Tensor",), place=PLACE, count=2, reach=Reach.BRANCH)
FACTS = ArchiveFacts(
    path="models/ranker.pt",
    size_bytes=3057,
    format=ArchiveFormat.TORCHSCRIPT,
    container="zip",
    archive_version="3",
    members=8,
    code_bytes=575,
    root_class="__torch__.ranker.Ranker",
    methods=("forward", "warm_up"),
    classes=1,
    custom_classes=("quantized.LinearPackedParamsBase",),
    runs_at_load=("__torch__.ranker.Table",),
    storages=(StorageGroup(dtype="float32", device="cpu", count=1, nbytes=144),),
    operators=(CHOLESKY,),
    problems=(ArchiveProblem(kind="duplicate_member", text="'ranker/version' is there more than once"),),
)


def verdict(torch: str, direction: str, prediction: Prediction, *findings: StaticFinding) -> StaticVerdict:
    return StaticVerdict(torch=torch, direction=direction, prediction=prediction, findings=findings)


GONE = StaticFinding(
    kind="operator_missing",
    weight=Weight.STOPS,
    subject="aten::cholesky",
    text="torch 2.15.0 does not have it",
    what_to_do="export again",
    place=PLACE,
    count=2,
    reach=Reach.BRANCH,
)
CHANGED = StaticFinding(
    kind="semantics_changed",
    weight=Weight.WARNING,
    subject="aten::multinomial",
    text="another random stream",
    place=replace(PLACE, line=30),
    count=1,
    reach=Reach.UNCALLED,
    source="https://github.com/pytorch/pytorch/pull/146174",
)
NOTE = StaticFinding(kind="runs_at_load", weight=Weight.NOTE, subject="__torch__.ranker.Table", text="runs")
PAIR = Inspection(
    releases={"old": "2.6.0", "new": "2.15.0"},
    files=(
        InspectedFile(
            path="models/ranker.pt",
            facts=FACTS,
            verdicts={
                "old": verdict("2.6.0", "forward", Prediction.LOADS, NOTE),
                "new": verdict("2.15.0", "backward", Prediction.FAILS, GONE, CHANGED, NOTE),
            },
        ),
        InspectedFile(
            path="models/weights.pt",
            facts=replace(FACTS, path="models/weights.pt", format=ArchiveFormat.STATE_DICT, operators=()),
            advice="script the model that uses them",
            verdicts={},
        ),
        InspectedFile(
            path="models/bad\udcff\x1b[31m name.pt",
            failure=ArchiveProblem(kind="damaged", text="'a\x1b[2Jb' ends beyond the file: truncated?"),
            advice="copy or export it again",
            verdicts={},
        ),
    ),
)
ALONE = Inspection(releases={}, files=(InspectedFile(path="models/ranker.pt", facts=FACTS, verdicts={}),))
RENDERERS: dict[str, Callable[[Inspection], str]] = {
    "txt": render_static,
    "json": dump_inspection,
    "sarif": render_sarif,
}


@pytest.mark.parametrize("suffix", RENDERERS)
@pytest.mark.parametrize(("name", "inspection"), [("inspect_pair", PAIR), ("inspect_facts", ALONE)])
def test_output_is_the_accepted_one(name: str, inspection: Inspection, suffix: str) -> None:
    check_snapshot(f"{name}.{suffix}", RENDERERS[suffix](inspection))


def test_names_of_hostile_files_bring_no_control_characters() -> None:
    hostile = "é\x1b[31m\x9b31m\x7f\u202e\U000e0001"
    facts = replace(FACTS, root_class=hostile, problems=(ArchiveProblem(kind="unsafe_name", text=hostile),))
    one = Inspection(releases={}, files=(InspectedFile(path=hostile, facts=facts, verdicts={}),))
    for inspection in (PAIR, one):
        for render in (render_static, dump_inspection, render_sarif):
            assert all(line.isprintable() for line in render(inspection).split("\n"))
    assert json.loads(dump_inspection(one))["files"][0]["facts"]["root_class"] == hostile
    json.loads(render_sarif(one))
    assert dump_inspection(one).isascii()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_are_as_wide_as_asked_except_what_is_copied(width: int) -> None:
    path = "models/" + "/".join(["deep"] * 40) + "/ranker.pt"
    problem = ArchiveProblem(kind="duplicate_member", text=f"'{'q' * 60_000}' is there " + "more than once " * 20)
    facts = replace(FACTS, path=path, problems=(problem,))
    long = replace(GONE, text="torch 2.15.0 does not have it " * 20)
    pair = replace(PAIR.files[0], path=path, verdicts={"new": verdict("2.15.0", "backward", Prediction.FAILS, long)})
    alone = Inspection(releases={}, files=(replace(ALONE.files[0], path=path, facts=facts),))
    for inspection in (alone, Inspection(releases={"new": "2.15.0"}, files=(pair,))):
        lines = render_static(inspection, width=width).splitlines()
        wide = [line for line in lines if len(line) > max(width, 80)]
        assert all(len(line.split()) == 1 for line in wide)
        assert path in wide
        assert max(map(len, wide)) < 4100


def test_many_findings_are_cut_in_text_only() -> None:
    many = verdict("2.15.0", "backward", Prediction.FAILS, *[GONE] * 30)
    file = replace(PAIR.files[0], verdicts={"new": many})
    one = Inspection(releases={"new": "2.15.0"}, files=(file,))
    assert render_static(one).count("operator_missing") == 12
    assert "and 18 more" in render_static(one)
    assert render_sarif(one).count('"level"') == 30


def test_sarif_has_a_rule_per_kind_and_leaves_notes_out() -> None:
    log = json.loads(render_sarif(PAIR))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["not_torchscript", "operator_missing", "semantics_changed", "unreadable"]
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels["operator_missing"] == levels["unreadable"] == "error"
    assert all(rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"])
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert uris[-1] == "models/bad%FF%1B%5B31m%20name.pt"


@pytest.mark.parametrize("inspection", [PAIR, ALONE], ids=["pair", "alone"])
def test_sarif_is_what_its_schema_says(inspection: Inspection) -> None:
    log = valid(render_sarif(inspection), "sarif-2.1.0-rtm.5.json")
    assert len(log["runs"]) == 1
    with pytest.raises(Exception, match="is not one of"):
        valid(render_sarif(PAIR).replace('"level": "error"', '"level": "red"'), "sarif-2.1.0-rtm.5.json")


def test_sarif_keeps_the_worst_of_more_results_than_code_scanning_takes_and_counts_the_others() -> None:
    many = verdict("2.15.0", "backward", Prediction.FAILS, *[CHANGED] * 5, *[GONE] * 2)
    pair = Inspection(releases={"new": "2.15.0"}, files=(replace(PAIR.files[0], verdicts={"new": many}),))
    log = valid(render_sarif(pair, most_results=3), "sarif-2.1.0-rtm.5.json")
    (run,) = log["runs"]
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("4 more results")
    assert "invocations" not in json.loads(render_sarif(pair))["runs"][0]


def test_sarif_names_absolute_paths_as_files_and_leaves_no_links_in_messages() -> None:
    problem = ArchiveProblem(kind="damaged", text="'[here](http://x) {0}' is damaged")
    file = InspectedFile(path="//tmp/a:b.pt", failure=problem, verdicts={})
    (run,) = json.loads(render_sarif(Inspection(releases={}, files=(file,))))["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///tmp/a%3Ab.pt"
    assert result["message"]["text"] == "damaged: '[here] (http://x) {{0}}' is damaged"


def test_releases_are_legible_in_80_columns() -> None:
    named = replace(PAIR, releases={"old": "2.6.0+cu124", "new": "2.15.0+cu130"})
    table = render_static(named, width=80).partition("\n\n")[0]
    assert "2.6.0+cu124" in table and "2.15.0+cu130" in table
    assert max(map(len, table.splitlines())) <= 80
