"""An issue tells what upstream asks for, and nothing of where it was found."""

from dataclasses import replace

from harness.search.reproduce.issue import upstream_issue
from harness.core.diagnosis import Issue, TracedNode
from harness.core.environment import Fingerprint

NODE = TracedNode(
    place=(4,),
    kind="aten::cosh",
    schema="aten::cosh(Tensor self) -> Tensor",
    source="/home/jo/secret/model.py:33",
    code="x = torch.cosh(x) | y",
    inputs=("float32[3, 4]",),
)
ISSUE = Issue(
    what="aten::cosh",
    does="does not return",
    expected="every call returns",
    actual=("call 1 does not return", "cannot open /home/jo/runs/7/m.pt"),
    schema=NODE.schema,
    nodes=(NODE,),
    code="def forward(x):\n    return torch.cosh(x)",
    settings=("cpu_fusion: on",),
    answers=(("torch 2.1.2", "as recorded (exit code 0)"), ("torch 2.6.0", "hangs (exit code 1)")),
    cures=("profiling off",),
    files=(("minimal.pt", "the archive"),),
    old=Fingerprint(torch="2.1.2", git_revision="a1"),
    new=Fingerprint(torch="2.6.0", git_revision="b2", cpu="Some CPU"),
    remarks=("It was searched for an hour.",),
)


def test_an_issue_holds_what_upstream_asks_for() -> None:
    text = upstream_issue(ISSUE)
    assert text.startswith("# [JIT] aten::cosh does not return in torch 2.6.0 (fine in 2.1.2)\n")
    parts = [
        "### 🐛 Describe the bug",
        "Schema: `aten::cosh(Tensor self) -> Tensor`",
        "```python\ndef forward(x):\n    return torch.cosh(x)\n```",
        "| `aten::cosh` | 1 | `float32[3, 4]` | `.../model.py:33` | `x = torch.cosh(x) \\| y` |",
        "- `cpu_fusion: on`",
        "- `minimal.pt`: the archive",
        "git bisect run",
        "#### Expected\n\nevery call returns",
        "#### Actual\n\n- call 1 does not return",
        "| torch 2.6.0 | hangs (exit code 1) |",
        "#### What takes it away\n\n- profiling off",
        "- It was searched for an hour.",
        "### Versions",
        "| PyTorch version | 2.1.2 | 2.6.0 |",
        "| CPU | none | Some CPU |",
        "python -m torch.utils.collect_env",
    ]
    assert [part for part in parts if part not in text] == []
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


def test_a_program_that_needs_no_file_stands_in_place_of_the_archives_code() -> None:
    text = upstream_issue(replace(ISSUE, snippet="import torch\nprint(1)\n"))
    assert "By itself, as seen in torch 2.6.0:\n\n```python\nimport torch\nprint(1)\n```" in text
    assert "as torch prints it" not in text


def test_a_reader_is_warned_and_no_place_is_reported() -> None:
    text = upstream_issue(ISSUE)
    assert "may hold confidential data" in text
    assert "/home/jo" not in text


def test_a_program_that_names_a_place_of_this_machine_is_not_shown() -> None:
    text = upstream_issue(replace(ISSUE, snippet="import torch\nopen('/home/jo/secret/key')\n"))
    assert "/home/jo" not in text and "as torch prints it" in text


def test_hostile_text_ends_no_block_begins_no_tag_and_steers_no_terminal() -> None:
    evil = "``` <!-- \x1b[31m </b><img src=x>\u202e\n# Heading"
    code = "def f():\n    return '````` \u202e\x1b[2J'\n\n# <b>"
    text = upstream_issue(
        replace(ISSUE, code=code, actual=(evil,), remarks=(evil,), cures=(evil,), answers=((evil, evil),), what=evil)
    )
    assert "\n``````python\n" in text and "\n``````\n" in text
    outside = text.replace(text[text.index("\n``````python") : text.index("\n``````\n") + 8], "")
    assert outside.count("<!--") == outside.count("\\<!--") + 2, "the two comments that are ours"
    assert "<img" not in outside.replace("\\<img", "")
    assert "\n# Heading" not in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_what_the_settings_make_is_not_blamed_on_the_release() -> None:
    text = upstream_issue(replace(ISSUE, by_settings=("cpu_fusion: on",)))
    assert text.startswith("# [JIT] aten::cosh does not return with cpu_fusion: on\n")
    assert "in torch 2.6.0 as in torch 2.1.2. Without that it is fine." in text
    assert "(fine in 2.1.2)" not in text


def test_what_both_releases_show_is_told_beside_what_is_fine() -> None:
    text = upstream_issue(replace(ISSUE, what="TS2EPConverter", does="gives up", fine="TorchScript itself answers."))
    assert text.startswith(f"# [export] TS2EPConverter gives up in torch {ISSUE.new.torch}\n")
    assert f"TS2EPConverter gives up in torch {ISSUE.new.torch}. TorchScript itself answers." in text
    assert "fine in" not in text
    assert "| | exporter | converter |" in text


def test_what_is_not_known_leaves_no_empty_heading() -> None:
    bare = replace(ISSUE, schema="", nodes=(), code="", settings=(), answers=(), cures=(), remarks=())
    text = upstream_issue(bare)
    for part in ("Schema", "Its nodes", "as torch prints it", "settings", "What takes it away", "Remarks"):
        assert part not in text
    assert text.startswith("# aten::cosh does not return")


def test_what_was_not_shown_is_not_ready_to_be_posted() -> None:
    assert "Not ready to be posted" in upstream_issue(replace(ISSUE, shown=False))
    assert "Not ready to be posted" not in upstream_issue(ISSUE)


def test_nodes_of_one_line_are_reported_once() -> None:
    text = upstream_issue(replace(ISSUE, nodes=(NODE, replace(NODE, place=(5,)), replace(NODE, source="x.py:1"))))
    assert text.count("`aten::cosh`") == 2
    assert "| `aten::cosh` | 2 |" in text


def test_long_programs_are_cut_and_say_so() -> None:
    many = tuple(replace(NODE, source=f"model.py:{line}") for line in range(100))
    text = upstream_issue(replace(ISSUE, code="\n".join(["x = 1"] * 500), nodes=many))
    assert "# and 380 more lines" in text
    assert "| and 60 more |" in text
    assert len(text) < 20_000
