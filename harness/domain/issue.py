"""What an issue for upstream tells, whatever was reduced."""

from dataclasses import dataclass

from harness.domain.divergence import TracedNode
from harness.domain.environment import Fingerprint


@dataclass(frozen=True, kw_only=True, slots=True)
class Issue:
    """One finding, as somebody who has never heard of this project needs it told.

    Attributes:
        what: an operator or a program, as the subject of a sentence.
        does: what it does in the bad release: ``"does not return"``.
        by_settings: the old release does the same under the new one's settings: these, a line each; empty where the
            release makes it.
        expected: what the good release does; ``actual``: what the bad one does instead, a line each.
        schema: of the operator, where it is one; ``nodes``: of the program, in the order of the run.
        code: of the archive, as torch prints it; ``snippet``: the same as Python that needs no file and was seen to
            show it, where that can be written.
        settings: that it runs under and that are not torch's own, a line each.
        answers: (torch and settings, what the reproducer said there).
        cures: what takes it away, a line each.
        shown: whether the reproducer shows it where it was made.
        files: (name, what it is) of the reproducer beside the program.
        old, new: the good and the bad release.
        remarks: what else a reader should know, a sentence each.
    """

    what: str
    does: str
    by_settings: tuple[str, ...] = ()
    expected: str
    actual: tuple[str, ...]
    schema: str = ""
    nodes: tuple[TracedNode, ...] = ()
    code: str = ""
    snippet: str = ""
    settings: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    shown: bool = True
    cures: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    old: Fingerprint
    new: Fingerprint
    remarks: tuple[str, ...] = ()
