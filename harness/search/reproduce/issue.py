"""A finding as an issue for PyTorch, in the order of its own template for bug reports."""

import re
from collections.abc import Iterator, Sequence

from harness.core.diagnosis import Issue, TracedNode
from harness.core.environment import Fingerprint
from harness.core.text import prose, visible, without_places

TAG = re.compile(r"<(?=[A-Za-z!/?])")
MOST_ROWS = 40
MOST_CODE_LINES = 120
WARNING = """\
<!--
Read before posting: the archive and the recorded inputs may hold confidential data (weights, constants, requests), and
the archive's debug information the paths and lines of the code that it was made from.
Search for the operator first: https://github.com/pytorch/pytorch/issues?q=is%3Aissue
-->
"""
UNPROVEN = "**Not ready to be posted: `reproduce.py` does not tell the two releases apart where it was made.**\n"
COLLECT = """\
<!-- Run this in the bad environment and add what it prints:
python -m torch.utils.collect_env
-->
"""


def upstream_issue(issue: Issue) -> str:
    """Return the issue as Markdown, ready to paste; without paths of this machine."""
    parts = [
        f"# {_line(_title(issue))}\n",
        WARNING,
        *([] if issue.shown else [UNPROVEN]),
        "### 🐛 Describe the bug\n",
        f"{_line(_summary(issue))}\n",
        *_program(issue),
        *_settings(issue),
        *_running(issue),
        *_outcomes(issue),
        *_list("What takes it away", issue.mitigations),
        *_list("Remarks", issue.remarks),
        "### Versions\n",
        _versions(issue),
        COLLECT,
    ]
    return "\n".join(parts)


def _title(issue: Issue) -> str:
    area = "[JIT] " if issue.code else ""
    if issue.fine:
        return f"[export] {issue.what} {issue.does} in torch {issue.new.torch}"
    if issue.by_settings:
        return f"{area}{issue.what} {issue.does} with {', '.join(issue.by_settings)}"
    return f"{area}{issue.what} {issue.does} in torch {issue.new.torch} (fine in {issue.old.torch})"


def _summary(issue: Issue) -> str:
    if issue.fine:
        return f"{issue.what} {issue.does} in torch {issue.new.torch}. {issue.fine}"
    if issue.by_settings:
        under = ", ".join(issue.by_settings)
        return (
            f"{issue.what} {issue.does} with {under}, in torch {issue.new.torch} as in torch {issue.old.torch}. "
            "Without that it is fine."
        )
    return f"{issue.what} {issue.does} in torch {issue.new.torch}. In torch {issue.old.torch} it is fine."


def _program(issue: Issue) -> Iterator[str]:
    if issue.schema:
        yield f"Schema: `{_code(issue.schema)}`\n"
    if issue.snippet and without_places(issue.snippet) == issue.snippet:  # as it was seen, or not at all
        yield f"By itself, as seen in torch {issue.new.torch}:\n"
        yield _fenced(issue.snippet.rstrip(), "python")
    elif issue.code:
        lines = issue.code.splitlines()
        kept = lines[:MOST_CODE_LINES]
        more = [f"# and {len(lines) - len(kept)} more lines"] if len(lines) > len(kept) else []
        yield "The program, as torch prints it:\n"
        yield _fenced("\n".join(without_places(visible(line.expandtabs())) for line in (*kept, *more)), "python")
    if issue.nodes:
        yield "Its nodes, by the lines that they were exported from:\n"
        yield (
            "\n".join(["| node | times | inputs | source | code |", "|---|---|---|---|---|", *_rows(issue.nodes)])
            + "\n"
        )


def _rows(nodes: Sequence[TracedNode]) -> Iterator[str]:
    """Yield a row for each place of the source: a loop that was traced is many nodes."""
    alike: dict[tuple[str, tuple[str, ...], str], list[TracedNode]] = {}
    for node in nodes:
        alike.setdefault((node.operator, node.inputs, node.source), []).append(node)
    for (operator, inputs, source), same in list(alike.items())[:MOST_ROWS]:
        texts = (operator, ", ".join(inputs), without_places(source), same[0].code)
        first, *rest = (f"`{_code(text)}`" if text else "" for text in texts)
        yield f"| {' | '.join((first, str(len(same)), *rest))} |"
    if len(alike) > MOST_ROWS:
        yield f"| and {len(alike) - MOST_ROWS} more | | | | |"


def _settings(issue: Issue) -> Iterator[str]:
    if issue.settings:
        yield "It runs under these settings, which `reproduce.py` makes itself:\n"
        yield "\n".join(f"- `{_code(text)}`" for text in issue.settings) + "\n"


def _running(issue: Issue) -> Iterator[str]:
    files = "".join(f"\n- `{name}`: {what}" for name, what in issue.files)
    yield "#### To reproduce\n"
    yield f"`reproduce.py` needs torch and nothing else. Beside it lie{files}\n"
    yield _fenced("python reproduce.py", "sh")
    yield (
        "It exits with 0 where this does not show, with 1 where it does, and with 125 where that cannot be tested, so "
        "that `git bisect run python /path/to/reproduce.py` works. `--help` lists its options.\n"
    )


def _outcomes(issue: Issue) -> Iterator[str]:
    yield "#### Expected\n"
    yield f"{_line(issue.expected)}\n"
    yield "#### Actual\n"
    yield "\n".join(f"- {_line(text)}" for text in issue.actual) + "\n"
    if issue.answers:
        rows = "\n".join(f"| {_cell(where)} | {_cell(answer)} |" for where, answer in issue.answers)
        yield f"| `reproduce.py` in | says |\n|---|---|\n{rows}\n"


def _list(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield f"#### {title}\n"
        yield "\n".join(f"- {_line(text)}" for text in texts) + "\n"


def _versions(issue: Issue) -> str:
    rows = "\n".join(f"| {label} | {old} | {new} |" for label, old, new in _compared(issue.old, issue.new))
    old, new = ("exporter", "converter") if issue.fine else ("good", "bad")
    return f"| | {old} | {new} |\n|---|---|---|\n{rows}\n"


def _compared(old: Fingerprint, new: Fingerprint) -> Iterator[tuple[str, str, str]]:
    names = {
        "PyTorch version": "torch",
        "Git revision": "git_revision",
        "CUDA used to build PyTorch": "cuda",
        "cuDNN version": "cudnn",
        "GPU": "gpu",
        "Nvidia driver version": "driver",
        "Python version": "python",
        "Libc version": "glibc",
        "CPU": "cpu",
        "Instruction set that torch uses": "isa",
        "Operator libraries": "libraries",
    }
    for label, name in names.items():
        before, after = getattr(old, name), getattr(new, name)
        if before or after:
            yield label, _cell(str(before or "none")), _cell(str(after or "none"))


def _fenced(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}\n"


def _line(text: str) -> str:
    """Return ``text`` as one line of Markdown in which nothing begins a tag or a comment of HTML."""
    return TAG.sub(r"\\<", without_places(prose(text)))


def _code(text: str) -> str:
    return without_places(prose(text)).replace("`", "'").replace("|", "\\|")


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")
