"""``inspect`` of a golden bundle reads the artifact in it."""

import gzip
from dataclasses import replace
from pathlib import Path

from harness.domain.archive import ArchiveFormat
from harness.domain.golden import ARTIFACT
from harness.domain.prediction import Inspection
from harness.models.bundles import write_bundle
from harness.models.files import find_files
from harness.report.text.inspection import render_static
from harness.static.check import inspect_file
from tests.unit.builders.archives import GOLDEN
from tests.unit.builders.requests import write_artifact
from tests.unit.builders.bundles import REMEMBERED, described, members_of, write_members


def real_bundle(folder: Path) -> tuple[Path, Path]:
    """Return a bundle with an artifact that torch wrote, and that artifact."""
    artifact = write_artifact(folder / "made-of")
    plain = Path(artifact.path)
    plain.write_bytes(gzip.decompress((GOLDEN / "din" / "artifact.pt.gz").read_bytes()))
    return write_bundle(folder, described(), artifact, REMEMBERED), plain


def test_the_artifact_in_a_bundle_is_judged_as_if_it_lay_beside(tmp_path: Path) -> None:
    path, plain = real_bundle(tmp_path)
    inside, outside = inspect_file(str(path), {}).facts, inspect_file(str(plain), {}).facts
    assert inside is not None
    assert outside is not None
    assert inside.operators
    assert replace(inside, path="", container="") == replace(outside, path="", container="")
    assert (inside.container, outside.container) == ("golden_bundle", "zip")


def test_a_reader_sees_that_it_is_a_bundle(tmp_path: Path) -> None:
    path, _ = real_bundle(tmp_path)
    text = render_static(Inspection(releases={}, files=(inspect_file(str(path), {}),)))
    assert "golden bundle: TorchScript archive" in text


def test_bundles_in_a_folder_are_found(tmp_path: Path) -> None:
    path, plain = real_bundle(tmp_path)
    assert set(find_files([str(tmp_path)])) == {str(path), str(plain)}


def test_a_bundle_that_lost_a_member_is_a_failure_and_no_crash(tmp_path: Path) -> None:
    path, _ = real_bundle(tmp_path)
    members = members_of(path)
    write_members(path, {name: data for name, data in members.items() if not name.startswith("inputs")})
    found = inspect_file(str(path), {})
    assert found.failure is not None
    assert found.failure.kind == "damaged"
    assert ARTIFACT in members


def test_an_artifact_that_is_something_else_is_named_for_what_it_is(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "made-of")
    Path(artifact.path).write_text("version https://git-lfs.github.com/spec/v1\n")
    found = inspect_file(str(write_bundle(tmp_path, described(), artifact, REMEMBERED)), {})
    assert found.facts is not None
    assert found.facts.format is ArchiveFormat.LFS_POINTER
    assert found.advice
