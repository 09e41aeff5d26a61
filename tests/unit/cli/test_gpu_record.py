"""What of a GPU record follows from its command line alone."""

from pathlib import Path

import pytest

from harness.cli.entry import main


@pytest.mark.parametrize("more", [[], ["--device", "cpu"]])
def test_a_record_to_go_on_with_is_named_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert main(["--project", str(tmp_path), "gpu-record", "--resume", "last", *more]) == 2
    assert "there is no GPU record 'last'" in capsys.readouterr().err


def test_device_that_nobody_knows_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\n')
    assert main(["--project", str(tmp_path), "gpu-record", "--device", "nothing"]) == 2
    assert 'got "nothing"' in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()
