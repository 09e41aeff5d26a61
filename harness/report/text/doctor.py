"""The doctor's checks on a terminal: one line each, and below each problem its effect and what to do."""

from collections.abc import Callable, Iterator

from harness.apps.doctor.checks import exit_code
from harness.core.machine import CheckStatus, Checkup, MachineCheck
from harness.core.text import counted, prose
from harness.report.text.grid import filled
from harness.report.words.phrases import seconds

Paint = Callable[[CheckStatus, str], str]

_WIDTH = 80
_STATUS, _NAME = 9, 18
_INDENT = " " * _STATUS
_COLOURS = {
    CheckStatus.OK: "32",
    CheckStatus.WARN: "33",
    CheckStatus.UNKNOWN: "36",
    CheckStatus.FAIL: "1;31",
}


def render_checkup(checkup: Checkup, *, colour: bool = False) -> str:
    """Return the whole text, ending with what it comes to and a newline.

    A line has at most 80 columns; only one that is a single long word, a path, has more.

    Args:
        colour: ANSI colour on the words of statuses, and nowhere else.
    """

    def paint(status: CheckStatus, word: str) -> str:
        return f"\x1b[{_COLOURS[status]}m{word}\x1b[0m" if colour else word

    lines: list[str] = []
    area = ""
    for check in checkup.checks:
        if check.area != area:
            area = check.area
            lines += [""] * bool(lines) + [prose(area)]
        lines += _check_lines(check, paint)
    return "\n".join([*lines, "", *_verdict(checkup, paint)]) + "\n"


def _check_lines(check: MachineCheck, paint: Paint) -> Iterator[str]:
    about = f"{prose(check.about)}: " if check.about else ""
    text = f"{check.status.value:{_STATUS}}{prose(check.name):{_NAME}}{about}{prose(check.read)}"
    first, *rest = filled(text, _WIDTH, rest=" " * (_STATUS + _NAME))
    word = check.status.value
    yield paint(check.status, word) + first[len(word) :]
    yield from rest
    for label, words in (("so what", check.so_what), ("do this", check.do_this)):
        if words:
            yield from filled(f"{_INDENT}{label}  {prose(words)}", _WIDTH, rest=_INDENT + " " * 9)


def _verdict(checkup: Checkup, paint: Paint) -> Iterator[str]:
    counts = {status: sum(check.status is status for check in checkup.checks) for status in CheckStatus}
    parts = [
        counted(counts[CheckStatus.WARN], "warning"),
        f"{counts[CheckStatus.UNKNOWN]} unknown",
        f"{counted(len(checkup.checks), 'check')} in {seconds(checkup.wall_s)}",
    ]
    code = int(exit_code(checkup))
    if code:
        status, word = CheckStatus.FAIL, "NOT READY"
        why = f"cannot be provisioned here: {', '.join(map(prose, checkup.blocked))}"
    else:
        status, word = CheckStatus.OK, "READY"
        why = f"{', '.join(map(prose, checkup.environments))} can be provisioned here"
    first, *rest = filled(f"{word}  (exit code {code}: {why}; {', '.join(parts)})", _WIDTH)
    yield paint(status, word) + first[len(word) :]
    yield from rest
