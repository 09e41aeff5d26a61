"""What a worker says of a rewrite, and the folder in which a patched archive is kept."""

from pathlib import Path

from harness.domain.diagnosis import Refusal, RewriteReport, RuleWords
from harness.domain.models import Artifact
from harness.domain.outcome import Outcome
from harness.domain.probe import ProbeResult
from harness.models.artifacts import PROVENANCE, keep_rewritten, rewrite_report


def probe(**mark: object) -> ProbeResult:
    data = {"rewritten": mark} if mark else {}
    return ProbeResult(key="k", side="old", outcome=Outcome.COMPLETED, directory="d", data=data)


def test_a_worker_that_said_nothing_has_said_nothing() -> None:
    assert rewrite_report(probe()) == RewriteReport()


def test_what_fits_and_what_refuses_is_read_with_its_words() -> None:
    said = rewrite_report(
        probe(
            fits=[["gelu", [3, 0, 1]]],
            refused=[["attention", [4], "it drops out at random"]],
            rules={"gelu": {"what": "its formula", "needs": ""}},
        )
    )
    assert said.fits == (("gelu", (3, 0, 1)),)
    assert said.refused == (Refusal(rule="attention", address=(4,), why="it drops out at random"),)
    assert said.rules == {"gelu": RuleWords(what="its formula")}


def test_nodes_are_read_as_a_trace_would_tell_them() -> None:
    schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    place = {"address": [3, 0, 1], "operator": "aten::add.Tensor", "schema": schema, "source": "m.py:3"}
    said = rewrite_report(
        probe(nodes=[{"rule": "fence", **place}], found=[{"method": "forward", "branch": 1, **place}])
    )
    (done,), (found,) = said.done, said.found
    assert (done.address, done.kind, done.operator) == ((3, 0, 1), "aten::add", "aten::add.Tensor")
    assert (found.branch_address, found.source) == ((3, 0), "m.py:3")


def test_a_patched_archive_is_kept_with_its_provenance(tmp_path: Path) -> None:
    made = tmp_path / "probe"
    made.mkdir()
    (made / "m.pt").write_bytes(b"archive")
    (made / PROVENANCE).write_text("{}")
    artifact = Artifact(
        model="m", path=str(made / "m.pt"), digest="0", size_bytes=7, operators=(), inputs_dir="", input_sets=()
    )
    path = keep_rewritten(artifact, tmp_path / "run" / "fence-0")
    assert path.read_bytes() == b"archive"
    assert (path.parent / PROVENANCE).read_text() == "{}"
