"""Every rule keeps the values in both releases; breaks between the releases are fixed; what is wrong is not offered."""

import hashlib
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.provenance import read_provenance
from harness.artifacts.given import requests_beside
from harness.search.bisect.divergence import trace_request
from harness.search.bisect.traces import read_trace
from harness.search.bisect.load_error import edited, pruned, refusals, refused_operators, smallest_refusing
from harness.search.rewrite import nodes
from harness.search.rewrite.attempt import ask
from harness.search.rewrite.nodes import rewrite, verified
from harness.core.diagnosis import Culprit, RewriteReport, Rewritten, TracedNode
from harness.core.probe import RewriteOrder, TraceOrder
from harness.probing.facts import Effects, Attributed
from tests.integration.search.judging import judged

pytestmark = pytest.mark.integration

HERE = Path(__file__).with_name("rewritten")
# No release that the tests build has the operators of these; the last one is for one branch at a time.
NOT_HERE = {"rms-norm", "symeig", "cut-branch"}
# It is for bytes: applied to other images it is the wrong rule that the comparison has to catch.
WRONG_HERE = "resize-bicubic-cut-off"
# What changes a list in place is none of its business.
REFUSING = {"out-of-place"}


def said(python: str, *arguments: str, script: str = "every_rule.py") -> dict[str, Any]:
    command = [python, str(HERE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_every_rule_keeps_the_values_in_both_releases(old_python: str, new_python: str, tmp_path: Path) -> None:
    applied = said(old_python, "make", str(tmp_path))
    fitting = {name for name, (nodes, _) in applied.items() if nodes}
    assert set(applied) - fitting == NOT_HERE
    assert {name for name, (_, refused) in applied.items() if refused} == REFUSING
    for python in (old_python, new_python):
        found = said(python, "read", str(tmp_path))
        assert set(found) == {*fitting, "plain"}
        assert {name for name, off in found.items() if off > 1e-5} == {WRONG_HERE}


def test_what_is_never_reached_is_pruned_and_the_rest_answers_as_before(old_python: str, tmp_path: Path) -> None:
    found = said(old_python, str(tmp_path), script="prunes.py")
    assert sorted(found["before"]) == [["forward", 1], ["forward", 1], ["forward", 1], ["other", 1]]
    assert found["emptied"] == ["part.forward"]
    assert found["cut"] == []
    assert found["same"] == found["kept"] == found["raises"] == [True, True]
    assert found["beside"] == {"labels.txt": "cat"}
    assert found["outside"] == "it is in no branch"


@pytest.mark.slow
def test_breaks_are_fixed_and_wrong_rewrites_are_not_offered(
    old_python: str, new_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "TIME_S", 300.0)  # a busy machine may take longer
    pythons = old_python, new_python
    with judged(HERE, pythons, tmp_path, floor_s=2, new_profile="cpu_fusion") as (facts, effects):
        the_right_rule_for_an_operator_is_found(facts, effects)
        a_rule_that_does_not_fit_makes_no_archive(facts, effects)
        fences_fix_a_fused_program_that_hangs(facts, effects)
        what_is_refused_is_found_and_pruned(facts, effects)
        what_fails_only_after_many_calls_is_no_fix(facts, effects)


def nodes_of(model: str, facts: Attributed, effects: Effects) -> list[TracedNode]:
    order = TraceOrder(input_set="example", call=0)
    return list(read_trace(effects.runner(trace_request(model, "old", order, facts)).directory).nodes.values())


def the_right_rule_for_an_operator_is_found(facts: Attributed, effects: Effects) -> None:
    resized = [node for node in nodes_of("thumbnail", facts, effects) if "upsample" in node.kind]
    right, wrong = rewrite("thumbnail", [resized], facts, effects, repeats=2)
    assert (right.rule, right.fixes) == ("resize-bicubic-cut-off", True)
    assert (wrong.rule, wrong.fixes, wrong.artifact) == ("resize-bicubic", False, "")
    assert "not the same in" in wrong.note
    patched = effects.run_dir.path / right.artifact
    assert requests_beside(str(patched)) == str(patched.with_suffix(".inputs.pt"))
    with zipfile.ZipFile(patched) as archive:
        (inside,) = (name for name in archive.namelist() if name.endswith("extra/provenance.json"))
        note = json.loads(archive.read(inside))
    assert (note["model"], note["from_digest"]) == ("thumbnail", facts.artifact("thumbnail").digest)
    assert [node["operator"] for node in note["nodes"]] == ["aten::upsample_bicubic2d.vec"]
    sha256 = hashlib.sha256(patched.read_bytes()).hexdigest()
    provenance = read_provenance(str(patched), str(patched), sha256)
    assert provenance is not None and (provenance.origin, provenance.old) == (
        "thumbnail",
        f"torch {facts.fingerprints['old'].torch}",
    )
    assert (provenance.fix.name, provenance.fix.price) == ("resize-bicubic-cut-off", right.steady)


def a_rule_that_does_not_fit_makes_no_archive(facts: Attributed, effects: Effects) -> None:
    artifact = facts.artifact("thumbnail")
    moved = next(node for node in nodes_of("thumbnail", facts, effects) if node.kind == "aten::to")
    told, patched, why = ask(artifact, RewriteOrder(edits=(("out-of-place", moved.address),)), facts, effects)
    assert (patched, told.refused[0].address) == (None, moved.address)
    assert why == "out-of-place does not fit: it does not answer with what it changes"
    (nothing,) = rewrite("thumbnail", [[moved]], facts, effects, repeats=2)
    assert nothing == Rewritten(rule="", what="no rule rewrites aten::to.dtype", nodes=(moved,))


def fences_fix_a_fused_program_that_hangs(facts: Attributed, effects: Effects) -> None:
    fused = [node for node in nodes_of("fused", facts, effects) if node.kind.startswith("aten::")]
    best, *others = rewrite("fused", [fused], facts, effects, repeats=2)
    assert (best.rule, best.fixes, best.repeats) == ("fence", True, 2)
    assert best.steady is None  # this run times nothing
    assert all(item.rank >= best.rank for item in others if item.fixes)


def what_fails_only_after_many_calls_is_no_fix(facts: Attributed, effects: Effects) -> None:
    words, artifact = Rewritten(rule="none", what="as it is"), facts.artifact("worn_out")
    found = verified("worn_out", artifact, words, facts, effects, repeats=2, method="forward")
    assert (found.fixes, found.repeats, found.artifact) == (False, 2, "")
    assert "called many times" in found.note and "worn out" in found.note


def what_is_refused_is_found_and_pruned(facts: Attributed, effects: Effects) -> None:
    artifact = facts.artifact("legacy")
    operators = refused_operators(refusals(artifact.path, effects)[0])
    smallest = smallest_refusing("legacy", operators, facts, effects)
    assert isinstance(smallest, Culprit)
    assert [node.operator for node in smallest.nodes] == ["prim::is_ort"]
    assert (smallest.old, "prim::is_ort" in smallest.new) == ("it loads", True)
    assert Path(smallest.artifact).stat().st_size < facts.artifact("legacy").size_bytes

    equivalent = pruned("legacy", operators, facts, effects)
    assert equivalent is not None
    assert (equivalent.rule, equivalent.fixes) == ("device-test", True)
    assert equivalent.needs == "no request reaches prim::is_ort: that the values are the same there was not seen"

    folding = RewriteOrder(operators=operators, fold=True)
    told, folded, _ = ask(artifact, folding, facts, effects)
    assert isinstance(told, RewriteReport)
    assert folded is not None
    cut = edited("legacy", folded, told.found, facts, effects, cut_first=True)
    assert (cut.rule, cut.fixes, cut.needs) == ("cut-branch", True, "no request ever takes this branch")
