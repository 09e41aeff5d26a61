"""Causes, of a run, a fleet or a migration: what needs somebody, each told once."""

from collections.abc import Iterator, Sequence

from harness.core.outcome import Status
from harness.core.text import counted, first_few
from harness.core.verdict import Cause
from harness.report.document import (
    ALWAYS,
    BAD,
    FIRST,
    GOOD,
    OPEN,
    QUIET,
    Block,
    Fact,
    Part,
    commands,
    placed,
)
from harness.report.words.phrases import beyond_words, path_in_run, shorten
from harness.serving.settings.paste_lines import CPP, ENVIRONMENT, PYTHON, TRITON
from harness.verdict.counting import cause_word

MODELS_NAMED = 5
# Where a setting is made -> what a reader calls it.
WAYS = {PYTHON: "Python", CPP: "C++", TRITON: "Triton", ENVIRONMENT: "environment"}
TONES = {
    Status.FAIL: BAD,
    Status.XPASS: BAD,
    Status.INCONCLUSIVE: OPEN,
    Status.SAME_FAIL: QUIET,
    Status.UNSUPPORTED: QUIET,
    Status.XFAIL: QUIET,
    Status.PASS: GOOD,
}


def tone(status: Status | None) -> str:
    """Return the tone of a status; of a model that nobody judged that of an open one."""
    return OPEN if status is None else TONES[status]


def cause_tone(cause: Cause) -> str:
    """Return the tone of a cause; one of what is over a limit needs a look, though its cells pass."""
    return OPEN if cause.status is Status.PASS else tone(cause.status)


def models_words(cause: Cause) -> str:
    """Return how many models a cause has and which, in how many cells where these are more."""
    many = len(cause.models)
    cells = f" in {counted(len(cause.cells), 'cell')}" if len(cause.cells) > many else ""
    return f"{many}{cells}: {first_few([shorten(name, 40) for name in cause.models], MODELS_NAMED)}"


def cause_part(
    cause: Cause,
    at: int,
    *,
    things: str = "model",
    programs: int = 0,
    before: Sequence[Fact] = (),
    after: Sequence[Block] = (),
    owners: tuple[str, ...] = (),
    brief: str = "",
    where: str = "",
    stepped: bool = False,
) -> Part:
    """Return the cause at a place of its list.

    Args:
        things: what its models are called here; ``programs``: how many programs they share, where that is known.
        before, after: what stands above its evidence, and below its commands.
        brief: what the first screen of a page says of it where it has no fix.
        where: the folder of the run, as its reader would type it.
        stepped: whether the document tells the fix, and what to deploy, as one of its steps.
    """
    heading, words = placed(FIRST, at), placed(FIRST + 5, at, 6)
    alone = len(cause.models) == 1 and cause.models[0] not in cause.title
    many = counted(len(cause.models), things)
    many += f", {counted(programs, 'program')}" if programs else ""
    told = ((label, text.removesuffix(f": {cause.title}")) for label, text in cause.evidence)
    evidence = [(label, text) for label, text in told if text and text != cause.title]
    named = [("models", models_words(cause))] if not alone or len(cause.cells) > 1 else []
    excess = [("excess", beyond_words(cause.beyond))] if cause.beyond is not None else []
    lines = [
        *(Fact(label, text, words) for label, text in named),
        *before,
        *(
            Fact(label, text, words + 40 * bool(place) + 60 * (place > 1))
            for place, (label, text) in enumerate(evidence)
        ),
        *(Fact(label, text, words + 105) for label, text in excess),
        *([Fact("fix", cause.fix, words + 60 * stepped)] if cause.fix else []),
        *_deploy(cause, where, words + 105 * stepped),
    ]
    return Part(
        title=f"{cause.models[0]}: {cause.title}" if alone else cause.title,
        word=cause_word(cause),
        tone=cause_tone(cause),
        detail="" if alone else many,
        importance=heading,
        blocks=(*lines, *commands(cause.commands[:2], words), *commands(cause.commands[2:], words + 50), *after),
        id=f"cause-{at + 1}",
        find=f"cause:{cause.id}",
        brief=f"fix: {cause.fix}" if cause.fix and not stepped else brief or next((text for _, text in evidence), ""),
        owners=owners,
        kind="cause",
    )


def _deploy(cause: Cause, where: str, importance: int) -> Iterator[Fact]:
    """Yield what a verified fix puts into production: the first on every console, the others where there is room."""
    for at, (what, text) in enumerate(cause.deploy):
        place = importance + 50 * bool(at)
        if what in WAYS:
            yield Fact(WAYS[what], text, place, "command")
        else:
            label = "deploy" if len(cause.deploy) == 1 else f"deploy {what}"
            yield Fact(label, path_in_run(where, text), place, "path")


def causes_section(causes: Sequence[Part], *, nothing: str) -> Part:
    """Return the section of the causes of a result."""
    return Part(
        title="All causes",
        id="causes",
        blocks=tuple(causes),
        noun="cause",
        importance=ALWAYS if causes else FIRST,
        panel="Causes",
        nothing=nothing,
        kind="causes",
    )
