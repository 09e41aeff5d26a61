import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.provenance import read_provenance, write_provenance
from harness.core.verdict import Fix, Provenance
from tests.unit.builders.archives import zipped
from tests.unit.builders.verdicts import ratio

NOTE: dict[str, Any] = {
    "made_by": "torchscript gate: rewrite",
    "torch": "2.1.2",
    "model": "thumbnails",
    "from_digest": "aa" * 32,
    "rules": {"resize-bicubic": {"what": "matrices", "needs": ""}},
    "nodes": [],
    "before": None,
}
PRICED = Provenance(
    origin="thumbnails",
    from_digest="aa" * 32,
    old="torch 2.1.2",
    new="torch 2.6.0",
    fix=Fix(name="resize-bicubic", rewrites=True, price=ratio(8.9, 10.1, 9.5), call_s=(1.2e-5, 1.14e-4)),
)
ALONE = replace(PRICED, new="", fix=Fix(name="resize-bicubic", rewrites=True))


def archive(path: Path, note: Any = NOTE) -> str:
    """Write an archive with a note; return the digest of its bytes."""
    members: dict[str, bytes | str] = {
        "m/data.pkl": b"",
        **({} if note is None else {"m/extra/provenance.json": json.dumps(note)}),
    }
    path.write_bytes(zipped(members))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_note_beside_has_the_price_of_the_archive_that_it_is_about(tmp_path: Path) -> None:
    given, copy = tmp_path / "thumbnails.pt", tmp_path / "copy.pt"
    sha256 = archive(given)
    archive(copy)
    assert read_provenance(str(copy), str(given), sha256) == ALONE
    write_provenance(given, PRICED)
    assert given.with_name("thumbnails.provenance.json").is_file()
    assert read_provenance(str(copy), str(given), sha256) == PRICED
    assert read_provenance(str(copy), str(given), "another") == ALONE
    given.with_name("thumbnails.provenance.json").write_text("{")
    assert read_provenance(str(copy), str(given), sha256) == ALONE


def test_several_steps_lead_to_the_first_archive(tmp_path: Path) -> None:
    step: dict[str, Any] = {
        **NOTE,
        "from_digest": "bb" * 32,
        "rules": {"cut-branch": {}},
        "before": {**NOTE, "rules": {}},
    }
    sha256 = archive(tmp_path / "m.pt", step)
    known = read_provenance(str(tmp_path / "m.pt"), str(tmp_path / "m.pt"), sha256)
    assert known == replace(ALONE, fix=Fix(name="cut-branch", rewrites=True))


@pytest.mark.parametrize("note", [None, "a text", {"torch": "2.1.2"}, {**NOTE, "rules": 3}, [NOTE]])
def test_what_is_no_such_note_says_nothing(tmp_path: Path, note: Any) -> None:
    sha256 = archive(tmp_path / "m.pt", note)
    assert read_provenance(str(tmp_path / "m.pt"), str(tmp_path / "m.pt"), sha256) is None
