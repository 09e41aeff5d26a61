"""The code of an archive as a reader sees it; what cannot be read is left out."""

import zipfile
from pathlib import Path

from harness.models.artifacts import MOST_BYTES, archive_code


def archive(path: Path, **texts: str) -> str:
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr("m/version", "3")
        for name, text in texts.items():
            stream.writestr(f"m/code/{name}.py", text)
            stream.writestr(f"m/code/{name}.py.debug_pkl", "binary")
    return str(path)


def test_one_file_is_reported_as_it_is(tmp_path: Path) -> None:
    assert archive_code(archive(tmp_path / "a.pt", one="def f():\n  pass\n\n")) == "def f():\n  pass"


def test_several_are_reported_by_name(tmp_path: Path) -> None:
    assert archive_code(archive(tmp_path / "a.pt", b="two", a="one")) == "# code/a.py\none\n\n# code/b.py\ntwo"


def test_what_nobody_would_read_or_nobody_can_is_left_out(tmp_path: Path) -> None:
    assert archive_code(archive(tmp_path / "large.pt", a="x" * (MOST_BYTES + 1))) == ""
    (tmp_path / "none.pt").write_text("no archive")
    assert archive_code(str(tmp_path / "none.pt")) == ""
    assert archive_code(str(tmp_path / "missing.pt")) == ""
