"""``golden`` from a project's folder: proposals, diffs, decisions, the state of all records, and what is left over."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cli import main
from harness.apps.upgrade import plan as planning
from harness.apps.golden import records as golden
from harness.project import Project
from harness.core.comparison import OutputComparison
from harness.core.golden import RECORD, VALUES, RecordChange
from harness.core.models import Artifact
from harness.core.plan import Plan
from harness.core.report import ModelReport, SideReport
from harness.core.errors import GoldenError
from harness.artifacts.golden_index import INDEX, PROPOSED, RECORDS
from harness.artifacts.golden_records import GoldenStore
from harness.store.run_folder import RunDir, StoredBaseline
from harness.artifacts.tensors.outputs import Outputs
from harness.worker import wire
from tests.unit.builders.requests import PRODUCER, float32, golden_outputs, write_artifact
from tests.unit.builders.golden_records import accept, propose, three

MODELS = """
from fixtures.declare import model

""" + "\n".join(f'@model("{name}")\ndef {name}():\n    return None\n' for name in "abm")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three models, their accepted records, and somebody at work."""
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ann")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ann@example.com")
    (tmp_path / "pyproject.toml").write_text('[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\nfixtures = "models"\n')
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "three.py").write_text(MODELS)
    three(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_golden(capsys: pytest.CaptureFixture[str], project: Path, *words: str, code: int = 0) -> str:
    """Run ``golden`` and return what it said."""
    assert main(["--project", str(project), "golden", *words]) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.err if code == 2 and words[0] != "status" else said.out


def record_of(project: Path, model: str) -> Path:
    """Return the folder of an accepted record."""
    return GoldenStore(project / "golden").record_folder(model)


def test_a_proposal_is_compared_with_the_accepted_record(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    propose(project, "b", float32(1, 2, 3.5), torch="2.6.0", run="tried")
    said = run_golden(capsys, project, "diff")
    assert "1 model: 1 beyond tolerance" in said
    assert "1 of 1 tensor differs, 1 beyond tolerance: off by up to 0.17 of the largest value" in " ".join(said.split())
    assert "torch 2.1.2+cu121 -> 2.6.0" in " ".join(said.split())
    answer = json.loads(run_golden(capsys, project, "diff", "b", "--format", "json"))
    (tensor,) = answer["diffs"][0]["comparison"]["calls"][0]["tensors"]
    assert (tensor["max_abs"], tensor["mismatched"], answer["diffs"][0]["change"]) == (0.5, 1, "beyond tolerance")
    assert run_golden(capsys, project, "diff", "--format", "markdown").startswith(
        "# Golden records\n\n**1 model: 1 beyond tolerance**"
    )
    assert run_golden(capsys, project, "diff", "--format", "html").startswith("<!doctype html>")


def test_diffs_come_gravest_first_and_a_new_model_is_new(project: Path) -> None:
    propose(project, "a", float32(1, 2, 3 + 1e-6))
    propose(project, "b", float32(1, 2))
    propose(project, "m", float32(1, 2, 9))
    propose(project, "n")
    found = golden.diff(Project(folder=project)).diffs
    assert [(diff.model, diff.change) for diff in found] == [
        ("b", RecordChange.STRUCTURE),
        ("m", RecordChange.BEYOND),
        ("a", RecordChange.WITHIN),
        ("n", RecordChange.NEW),
    ]


def test_the_tolerance_is_that_of_the_declared_model(project: Path) -> None:
    """What computes in float16 may be off by more."""
    propose(project, "b", float32(1, 2, 3.001))
    assert golden.diff(Project(folder=project)).diffs[0].change is RecordChange.BEYOND
    text = (project / "pyproject.toml").read_text() + '[tool.compat.computes_in]\nb = "float16"\n'
    (project / "pyproject.toml").write_text(text)
    assert golden.diff(Project(folder=project)).diffs[0].change is RecordChange.WITHIN


def test_accept_keeps_who_why_and_what_it_changed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    propose(project, "b", float32(1, 2, 3.5), run="tried")
    said = run_golden(capsys, project, "accept", "b", "--reason", "agreed\nwith the ads team")
    assert said.startswith("accepted b (beyond tolerance: 1 of 1 tensor differs")
    status = " ".join(run_golden(capsys, project, "status").split())
    assert "by Ann <ann@example.com>: agreed with the ads team" in status
    assert json.loads((project / "golden" / INDEX).read_text())["records"]["b"]["run"] == "tried"
    assert run_golden(capsys, project, "diff").endswith("\nnothing differs\n")


def test_a_damaged_record_is_mended_by_another_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (record_of(project, "b") / VALUES).write_bytes(b"x")
    propose(project, "b", float32(1, 2, 3))
    said = " ".join(run_golden(capsys, project, "diff").split())
    assert "differs, size unknown b what the accepted record cannot be compared: " in said
    run_golden(capsys, project, "accept", "b", "--reason", "the file was damaged")
    assert "3 records as accepted" in run_golden(capsys, project, "status")


def test_accept_all_takes_every_proposal_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    propose(project, "a", float32(4))
    propose(project, "b", float32(4))
    assert run_golden(capsys, project, "accept", "all", "--reason", "x").count("accepted ") == 2
    propose(project, "b", float32(5))
    assert run_golden(capsys, project, "accept", "b", "b", "--reason", "x").count("accepted ") == 1


def test_accepting_needs_a_reason_and_a_proposal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no proposal is waiting" in run_golden(capsys, project, "accept", "all", "--reason", "x", code=2)
    propose(project, "b", float32(5))
    assert "--reason TEXT" in run_golden(capsys, project, "accept", "b", "--reason", " ", code=2)
    assert "proposals waiting: b" in run_golden(capsys, project, "accept", "c", "--reason", "x", code=2)


def test_status_verifies_and_lists_everything(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    propose(project, "b", float32(5))
    said = " ".join(run_golden(capsys, project, "status").split())
    assert "3 records as accepted; 1 proposal waiting" in said
    answer = json.loads(run_golden(capsys, project, "status", "--format", "json"))
    assert (answer["problems"], len(answer["accepted"]), len(answer["waiting"])) == ([], 3, 1)


def test_an_empty_folder_says_how_to_begin(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(project / "golden")
    assert "no golden records yet: golden propose RUN" in run_golden(capsys, project, "status")


def test_every_damaged_record_is_a_problem_with_a_way_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (record_of(project, "a") / VALUES).write_bytes(b"x")
    (record_of(project, "m") / RECORD).unlink()
    said = run_golden(capsys, project, "status", code=2)
    assert said.count("PROBLEM") == said.count("do this ") == 2
    assert "git checkout" in said
    answer = json.loads(run_golden(capsys, project, "status", "--format", "json", code=2))
    assert [problem["model"] for problem in answer["problems"]] == ["a", "m"]


def test_a_damaged_index_is_the_only_problem(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = project / "golden" / INDEX
    index.write_text(index.read_text().replace("{", "", 1))
    answer = json.loads(run_golden(capsys, project, "status", "--format", "json", code=2))
    (problem,) = answer["problems"]
    assert "index.json is damaged" in problem["message"]
    assert answer["accepted"] == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (INDEX, '"release": "2.1.2+cu121"', '"release": "2.1.2"', "index.json says torch 2.1.2 and run"),
        (INDEX, '"schema_version": 3', '"schema_version": 2', "is of schema 2, from an earlier version"),
        (RECORD, "aten::add", "aten::sub", "record.json was changed after it was accepted"),
        (VALUES, "\x00\x00", "\x00\x01", "values was changed after it was accepted"),
    ],
)
def test_a_run_by_records_that_somebody_edited_never_begins(
    project: Path, capsys: pytest.CaptureFixture[str], name: str, old: str, new: str, said: str
) -> None:
    path = (project / "golden" if name == INDEX else record_of(project, "a")) / name
    path.write_bytes(path.read_bytes().replace(old.encode("latin-1"), new.encode("latin-1"), 1))
    words = ["--project", str(project), "compat", "--golden", "--device", "cpu", "--out", str(project / "runs")]
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not (project / "runs").exists()


def test_records_made_under_another_profile_are_noted(project: Path) -> None:
    text = (
        project / "pyproject.toml"
    ).read_text() + "[tool.compat.serving.profiles.fused]\nswitches.cpu_fusion = true\n"
    (project / "pyproject.toml").write_text(text)
    options = Project(folder=project, golden="golden", overrides={"device": "cpu"})
    assert planning.make_plan(options).notes == ()
    (note,) = planning.make_plan(replace(options, overrides={"device": "cpu", "profile": "fused"})).notes
    assert note.startswith("the golden outputs of a, b, m were made under another serving profile than fused")


def test_a_damaged_proposal_is_a_problem(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    propose(project, "b", float32(5))
    (project / "golden" / PROPOSED / "b" / VALUES).write_bytes(b"x")
    assert "changed after it was proposed" in " ".join(run_golden(capsys, project, "status", code=2).split())


def test_a_name_with_a_record_accepts_that_record_only(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was looked at may have been proposed anew since, by another terminal."""
    propose(project, "b", float32(1, 2, 3.5))
    shown = golden.diff(Project(folder=project), ["b"]).diffs[0].new
    assert shown is not None
    seen = shown.record[:12]
    assert f"record {seen}" in run_golden(capsys, project, "diff")
    propose(project, "b", float32(1, 2, 9))
    said = run_golden(capsys, project, "accept", f"b@{seen}", "--reason", "looked at", code=2)
    assert f", not {seen}" in said and "golden diff b" in said
    assert "3 records as accepted; 1 proposal waiting" in " ".join(run_golden(capsys, project, "status").split())
    propose(project, "b", float32(1, 2, 3.5))
    assert run_golden(capsys, project, "accept", f"b@{seen}", "--reason", "looked at").startswith("accepted b (")


def test_since_an_earlier_commit(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a pull request changed, in numbers."""
    before = tmp_path / "before"
    shutil.copytree(project / "golden", before)
    propose(project, "b", float32(1, 2, 3.5))
    accept(propose(project, "c"), "b", "c", reason="agreed")
    said = run_golden(capsys, project, "diff", "--since", str(before))
    assert "2 models: 1 beyond tolerance, 1 new" in said
    assert "new accepted now" in " ".join(said.split())
    back = golden.diff(Project(folder=project), ["a"], str(before))
    assert [(diff.model, diff.change) for diff in back.diffs] == [("a", RecordChange.SAME)]
    with pytest.raises(GoldenError, match="no golden record of zz"):
        golden.diff(Project(folder=project), ["zz"], str(before))
    with pytest.raises(GoldenError, match="there is no such folder"):
        golden.diff(Project(folder=project), (), str(tmp_path / "absent"))


def test_gc_names_everything_and_removes_nothing_without_yes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project / "golden"
    propose(project, "gone", float32(1))
    accept(propose(project, "gone", float32(2)), "gone")
    propose(project, "stranger")
    propose(project, "b", float32(5))
    shutil.copytree(record_of(project, "a"), folder / PROPOSED / "a")  # what was accepted on another machine
    (folder / PROPOSED / "torn").mkdir()
    (folder / RECORDS / ".a.replaced").mkdir()
    (record_of(project, "m") / "notes.txt").write_text("x")
    shutil.copytree(record_of(project, "a"), folder / RECORDS / "b" / "0123456789ab")  # of an accept that was killed
    before = sorted(folder.rglob("*"))
    said = " ".join(run_golden(capsys, project, "gc").split())
    for path, why in (
        ("records/gone", "an accepted record, and no model is called so any more"),
        ("records/.a.replaced", "the index does not name it"),
        ("records/b/0123456789ab", "the index does not name it"),
        (f"records/m/{record_of(project, 'm').name}/notes.txt", "the record does not name it"),
        ("proposed/a", "the accepted record says the same"),
        ("proposed/stranger", "a proposal, and no model is called so any more"),
        ("proposed/torn", "no whole proposal"),
    ):
        assert f"would remove golden/{path}" in said and why in said
    assert said.count("would remove") == 7
    assert sorted(folder.rglob("*")) == before
    assert "golden gc would remove 7 things" in " ".join(run_golden(capsys, project, "status").split())


def test_gc_removes_what_it_named_and_keeps_the_rest(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accept(propose(project, "gone", float32(2)), "gone")
    (record_of(project, "m") / "notes.txt").write_text("x")
    assert run_golden(capsys, project, "gc", "--yes").count("removed golden/") == 2
    said = " ".join(run_golden(capsys, project, "status").split())
    assert "3 records as accepted" in said and "gc would" not in said
    assert run_golden(capsys, project, "gc", "--yes") == "nothing is left over\n"


def test_gc_drops_what_another_branch_removed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The merge kept the index of the one branch, and the files that both have."""
    accept(propose(project, "gone", float32(2)), "gone")
    shutil.rmtree(project / "golden" / RECORDS / "gone")
    assert "cannot be read" in run_golden(capsys, project, "status", code=2)
    assert "removed golden/records/gone" in run_golden(capsys, project, "gc", "--yes")
    assert "3 records as accepted" in run_golden(capsys, project, "status")


def test_gc_never_takes_the_copy_of_a_record_whose_folder_is_gone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project / "golden" / RECORDS
    (folder / "a").rename(folder / ".a.replaced")
    assert "cannot be read" in run_golden(capsys, project, "gc", "--yes", code=2)
    assert list((folder / ".a.replaced").glob(f"*/{RECORD}"))


def test_gc_never_takes_what_was_accepted_since_it_looked(project: Path) -> None:
    """As by an accept that has laid out a record, and has not written the index yet."""
    options = Project(folder=project)
    store = propose(project, "b", float32(5))
    new = hashlib.sha256((project / "golden" / PROPOSED / "b" / RECORD).read_bytes()).hexdigest()
    place = shutil.copytree(project / "golden" / PROPOSED / "b", store.folder / RECORDS / "b" / new[:12])
    found = golden.left_over(options)
    assert [Path(item.path).name for item in found] == [place.name]
    accept(store, "b")
    golden.collect(options, found)
    assert store.record_folder("b") == place
    store.record("b")


def test_gc_keeps_records_where_no_model_is_known(project: Path) -> None:
    """Models may be given on the command line: then nobody here knows which there are."""
    for path in (project / "models").iterdir():
        path.unlink()
    (project / "models" / "other.py").write_text(MODELS.replace('@model("', '@model("other_'))
    assert golden.left_over(Project(folder=project)) == ()


def test_without_any_model_records_are_verified_and_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(project / "models")
    said = " ".join(run_golden(capsys, project, "status").split())
    assert "3 records as accepted" in said and "gc would" not in said


def test_gc_takes_nothing_from_a_folder_that_was_tampered_with(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (record_of(project, "a") / RECORD).write_text("{}")
    assert "was changed after it was accepted" in run_golden(capsys, project, "gc", "--yes", code=2)


class Finished:
    """A run of the old release whose golden outputs lie where it says."""

    def __init__(self, folder: Path, models: Sequence[str], unstable: Sequence[str] = ()) -> None:
        self.folder = folder
        self.outputs: dict[str, Outputs] = {name: golden_outputs(float32(1, 2, 3)) for name in models}
        self.artifacts: dict[str, Artifact] = {name: write_artifact(folder / name, name) for name in models}
        self.unstable = unstable
        self.interrupted = ""

    def plan(self, project: Path, **changes: Any) -> Plan:
        made = planning.make_plan(Project(folder=project, overrides={"device": "cpu"}))
        return replace(made, **changes)

    def report(self) -> Any:
        comparison = OutputComparison(model="b", scenario="alone", unstable=tuple(self.unstable))
        models = (ModelReport(model="b", comparisons=(comparison,)),)
        old = SideReport(name="torch 2.1.2", fingerprint=PRODUCER)
        judgement = SimpleNamespace(interrupted=self.interrupted)
        return SimpleNamespace(report=SimpleNamespace(old=old, models=models, judgement=judgement))


@pytest.fixture
def stored(project: Path, monkeypatch: pytest.MonkeyPatch) -> Finished:
    """A stored run of ``a`` and ``b``; ``m`` did not answer in the old release."""
    with RunDir.create(project / "reports", "2.1.2-to-2.6.0", datetime(2026, 11, 22, 8, 30, tzinfo=UTC)) as run:
        finished = Finished(run.probes, ["a", "b"])
        run.save_plan(finished.plan(project))
        run.save_old_answers(
            {
                name: StoredBaseline(artifact=found, directory=str(run.probes / name))
                for name, found in finished.artifacts.items()
            }
        )
    monkeypatch.setattr(golden, "read_report", lambda *_: finished.report())
    monkeypatch.setattr(golden, "legible_outputs", lambda _, model: finished.outputs[model])
    return finished


def test_propose_says_what_waits_what_is_the_same_and_what_is_left_out(
    project: Path, stored: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    stored.outputs["b"] = golden_outputs(float32(1, 2, 4))
    said = run_golden(capsys, project, "propose", "last")
    assert said.startswith("as accepted  a\n")
    assert said.endswith("look at the numbers: golden diff\n")
    told = " ".join(said.split())
    assert "left out m: the old release gave no outputs in this run, or they are no longer in its folder" in told
    assert "proposed b: beyond tolerance what 1 of 1 tensor differs, 1 beyond tolerance" in told
    (diff,) = golden.diff(Project(folder=project)).diffs
    assert diff.new is not None and diff.new.run == "2026-11-22T08-30-00-2.1.2-to-2.6.0"


def test_an_interrupted_run_proposes_nothing(
    project: Path, stored: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    stored.interrupted = "timing"
    assert "was interrupted; finish it: --resume" in run_golden(capsys, project, "propose", "last", code=2)


def test_propose_leaves_out_what_the_old_release_itself_does_not_repeat(project: Path, stored: Finished) -> None:
    stored.unstable = ("output['noise']",)
    stored.outputs["b"] = golden_outputs(float32(1, 2, 4))
    found = golden.propose(Project(folder=project, expression="b"), "last")
    assert found.left_out == (("b", "output['noise'] differs between repeats of the old release itself"),)
    assert not (project / "golden" / PROPOSED / "b").exists()


def test_a_run_folder_without_its_artifacts_has_nothing_to_propose(project: Path, stored: Finished) -> None:
    """As one that was downloaded from CI."""
    Path(stored.artifacts["a"].path).unlink()
    shutil.rmtree(stored.artifacts["b"].inputs_dir)
    found = golden.propose(Project(folder=project), "last")
    assert [name for name, _ in found.left_out] == ["a", "b", "m"]
    assert (found.diffs, found.same) == ((), ())
    assert not list((project / "golden" / PROPOSED).glob("*/"))


@pytest.mark.parametrize("what", ["path", "inputs_dir", "directory", "a link"])
def test_no_other_file_than_the_runs_own_becomes_a_proposal(
    project: Path, stored: Finished, tmp_path: Path, what: str
) -> None:
    """A run may come from elsewhere, and golden records are committed."""
    (run,) = (project / "reports").glob("2*")
    artifact, directory = stored.artifacts["b"], str(run / "probes" / "b")
    stored.outputs["b"] = golden_outputs(float32(9))
    secret = tmp_path / "secret"
    secret.mkdir()
    if what == "a link":
        index = Path(artifact.inputs_dir) / wire.TENSORS_INDEX
        index.rename(secret / index.name)
        index.symlink_to(secret / index.name)
    elif what == "directory":
        directory = str(secret)
    else:
        own = Path(getattr(artifact, what))
        moved = str(shutil.move(own, secret / own.name))
        artifact = replace(artifact, path=moved) if what == "path" else replace(artifact, inputs_dir=moved)
    RunDir(run).save_old_answers({"b": StoredBaseline(artifact=artifact, directory=directory)})
    found = golden.propose(Project(folder=project, expression="b"), "last")
    ((name, why),) = found.left_out
    assert name == "b" and f"{secret if what != 'a link' else run}" in why and f"lies outside of {run}" in why


@pytest.mark.parametrize("model", ["../../home", "", ".part", "a/b"])
def test_a_model_of_another_name_becomes_no_proposal_and_nothing_is_removed(
    project: Path, stored: Finished, model: str
) -> None:
    (run,) = (project / "reports").glob("2*")
    (project / "home").mkdir()
    plan = stored.plan(project)
    RunDir(run).save_plan(replace(plan, models=(replace(plan.models[0], name=model),)))
    artifact = replace(stored.artifacts["a"], model=model)
    RunDir(run).save_old_answers({model: StoredBaseline(artifact=artifact, directory=str(run / "probes" / "a"))})
    stored.outputs[model] = golden_outputs(float32(9))
    found = golden.propose(Project(folder=project), "last")
    assert found.left_out == ((model, f"{model!a} is no name of a model; name it as the project declares it"),)
    assert (project / "home").is_dir()


def test_a_run_by_golden_records_has_nothing_to_propose(project: Path, stored: Finished) -> None:
    folder = next((project / "reports").glob("2*"))
    RunDir(folder).save_plan(stored.plan(project, golden="golden"))
    with pytest.raises(GoldenError, match="was judged by golden records"):
        golden.propose(Project(folder=project), "last")


def test_a_record_keeps_the_profile_of_its_run_without_its_variables(project: Path, stored: Finished) -> None:
    stored.outputs["b"] = golden_outputs(float32(9))
    plan = stored.plan(project)
    profile = replace(plan.settings.profile, name="fused", switches={"cpu_fusion": True}, env={"TOKEN": "secret"})
    folder = next((project / "reports").glob("2*"))
    RunDir(folder).save_plan(replace(plan, settings=replace(plan.settings, profile=profile)))
    golden.propose(Project(folder=project, expression="b"), "last")
    text = (project / "golden" / PROPOSED / "b" / RECORD).read_text()
    assert '"name":"fused"' in text and '"cpu_fusion":true' in text and "secret" not in text
