"""What ``--list`` prints."""

from dataclasses import replace

import pytest

from harness.core.models import GivenArtifact, ModelDeclaration
from harness.report.text.models import asked_with, render_models

DECLARED = ModelDeclaration(
    name="dlrm",
    package_root="/p",
    module="zoo.dlrm",
    factory="build",
    source="zoo/dlrm.py",
    line=3,
    source_digest="0",
    tags=("ranking", "ads"),
)
RANKER = GivenArtifact(path="/m/ranker.pt")
REQUEST = {"name": "example", "method": "forward", "arguments": [1]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (RANKER, "no requests: guessed"),
        (replace(RANKER, methods=("encode",)), "no requests to encode: guessed"),
        (replace(RANKER, inputs="/m/ranker.inputs.pt"), "requests of ranker.inputs.pt"),
        (replace(RANKER, inputs="/data/r.npz", methods=("a", "b")), "requests of /data/r.npz to a, b"),
        (replace(RANKER, requests=(REQUEST,)), "1 request of its manifest"),
        (replace(RANKER, requests=(REQUEST, REQUEST)), "2 requests of its manifest"),
        (replace(RANKER, bundle=True), "its own requests"),
    ],
)
def test_a_given_model_says_what_it_is_asked_with(given: GivenArtifact, said: str) -> None:
    assert asked_with(given) == said
    (line,) = render_models([replace(DECLARED, how="file", given=given)]).splitlines()
    assert line.split()[:2] == ["dlrm", "file"]
    assert line.endswith(f"  {said}  /m/ranker.pt")


def test_a_declared_model_says_where_it_is_and_notes_come_last() -> None:
    lines = render_models([DECLARED], ["x.pt was left out"]).splitlines()
    assert lines[0].split() == ["dlrm", "script", "ranking", "ads", "zoo/dlrm.py:3"]
    assert lines[1:] == ["note: x.pt was left out"]


def test_a_line_steers_no_terminal() -> None:
    given = replace(RANKER, path="/m/\x1b[2J.pt", inputs="/m/\x9b31m.pt")
    text = render_models([replace(DECLARED, how="file", given=given)], ["\u202eleft\nout"])
    assert all(line.isprintable() for line in text.splitlines())
    assert text.endswith("note: \\u202eleft\\nout\n")
