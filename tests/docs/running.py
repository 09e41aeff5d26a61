"""How each command of the pages is executed: as which words, with which exit codes, and how long it may take.

By verb and options; a page's new command needs no line here. What cannot run in a test is listed with its reason.
"""

import re
import shlex
from enum import StrEnum
from typing import NamedTuple

from tests.docs.pages import commands, without_redirection

SESSIONS = {
    "bisect": "bisect",
    "compat": "compat",
    "doctor": "doctor",
    "gate": "gate",
    "matrix": "matrix",
    "migrate": "migrate",
    "mitigate": "mitigate",
    "pack": "pack",
}
"""What a session passes its arguments on to; sessions that are not here take pytest's, or none."""


class Speed(StrEnum):
    """Which suite executes a command."""

    QUICK = "quick"
    SLOW = "slow"
    LEFT_OUT = "left out"


class Way(NamedTuple):
    """How one command is executed; ``words`` follow ``python -m harness``, or ``python -m pytest`` with the plugin."""

    command: str
    speed: Speed
    words: tuple[str, ...] = ()
    expected: frozenset[int] = frozenset()
    reason: str = ""
    program: str = "harness"


LEFT_OUT = {
    r"(nox|python3 noxfile\.py) -s (quick|tests|full|lint|pythons)": "a session of this suite itself, which CI runs",
    r"nox -s docs": "builds the site: tests/docs/test_site.py does",
    r"nox -s docs -- .*": "builds the site of tags, which a checkout need not have",
    r"nox -s gpu( .*)?": "needs an NVIDIA GPU",
    r"nox -s (bench|calibrate|corpus|evidence)( .*)?": "measures for minutes to hours on a quiet machine; its record is committed",
    r".*\b(1\.13\.1|2\.3\.1|2\.4\.1|2\.9\.1|2\.11\.0)\b.*": "needs releases that `nox -s full` does not build",
    r".*docs/examples/torchvision (env|compat)(?!.*--list).*": "needs torchvision: test_fixture_packages.py runs it",
    r".*--fixtures vision": "needs torchvision: test_fixture_packages.py runs the same models",
    r".* --over releases .*half_on.*": "builds what lies between: test_first_bad.py searches so",
    r".*--over releases --cell .*|.*--cell .* --over releases.*": "builds what lies between: as above",
    r".* -m harness .*torch.backend[ =]cpu": "needs PyTorch's own index: test_torch_backends.py stands for it",
    r".* attach --port .*": "needs a server: test_attach.py has one",
    r".* attach PID --watch (3600|86400) .*": "waits for a hang: test_attach.py has one",
    r".* -m harness attach --system .*": "records a process of the reader's: test_system.py records one",
    r".* -m harness record .*": "stands before a server of the reader's: test_record.py has one",
    r".* -m harness fleet .*": "needs a store and its plan: test_fleet.py runs each",
}
"""By pattern of a whole command, why no test executes it."""

QUICK = re.compile(
    r"|attach|cache|completion|doctor|env|golden|inspect|link-check|compile-check|operators|report|gate|waivers|-.*"
)
"""Verbs that start no model."""

EXPECTED = {
    "": {2},  # bare: the usage
    "doctor": {0, 3},  # 3: a full disk, say
    "cache": {0},
    "completion": {0},
    "env": {0},
    "golden": {0},
    "waivers": {0},
    "pack": {0},
    "operators": {0},
    "report": {1},  # of the run that stands behind ``last``
}
PYTEST = frozenset({0, 1})
"""Exit codes of pytest where tests were found and run."""
JUDGED = frozenset({0, 1, 4})
"""Exit codes of an answer about models; anything else is no answer."""


def ways() -> list[Way]:
    """Return how each command is executed, once, however many pages have it."""
    return [way_of(text) for text in dict.fromkeys(command.text for command in commands())]


def way_of(text: str) -> Way:
    """Return how one command is executed."""
    for pattern, reason in LEFT_OUT.items():
        if re.fullmatch(pattern, text):
            return Way(text, Speed.LEFT_OUT, reason=reason)
    if text.startswith("pytest "):
        words = without_redirection(shlex.split(text)[1:])
        # A folder of files is judged first, and workers are processes to start.
        quick = not re.search(r"--torchscript-compat=\S*/( |$)| -n ", text)
        return Way(text, Speed.QUICK if quick else Speed.SLOW, words, PYTEST, program="pytest")
    words = harness_words(text)
    verb = verb_of(words)
    if "--help" in words or "--version" in words or "--list" in words:
        return Way(text, Speed.QUICK, words, frozenset({0}))
    quick = QUICK.fullmatch(verb) is not None
    return Way(text, Speed.QUICK if quick else Speed.SLOW, words, frozenset(EXPECTED.get(verb, JUDGED)))


def harness_words(text: str) -> tuple[str, ...]:
    """Return what ``python -m harness`` is given, also by a session; raises where it is another session."""
    words = without_redirection(shlex.split(text))
    if words[1:3] == ("-m", "harness"):
        return words[3:]
    if words[0] == "torchscript-gate":
        return words[1:]
    session = words[words.index("-s") + 1]
    after = words[words.index("--") + 1 :] if "--" in words else ()
    return (SESSIONS[session], *after)


def verb_of(words: tuple[str, ...]) -> str:
    """Return the verb, empty if there is none."""
    rest = list(words)
    if rest[:1] == ["--project"]:
        del rest[:2]
    return rest[0] if rest else ""
