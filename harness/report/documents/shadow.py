"""A team's server in two releases as a document: one row per quantity, then each cause once, with what to do."""

import shlex
from collections.abc import Iterator, Sequence

from harness.core.outcome import Decision, Status
from harness.core.shadow import (
    AnswerDifference,
    Ended,
    Life,
    Quantity,
    Reason,
    Shadow,
    ShadowRow,
    ShadowSide,
    Stop,
)
from harness.core.text import amount, counted, first_few, prose
from harness.report.document import (
    ALWAYS,
    BAD,
    DETAIL,
    GOOD,
    MORE,
    OPEN,
    PLAIN,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    commands,
    facts,
    placed,
)
from harness.report.documents.causes import tone
from harness.report.documents.load import load_parts
from harness.verdict.shadow import lost

DECISION_TONES = {Decision.UPGRADE_OK: GOOD, Decision.BLOCKED: BAD}
MOST_DIFFERENCES = 12
MOST_FRAMES = 6
# What a row's word is where the status alone does not say it.
WORDS = {
    Reason.SAME: "same",
    Reason.OLD_FAILS: "the old one fails",
    Reason.NOT_ASKED: "not asked",
    Reason.FAILS: "fails",
    Reason.HANGS: "hangs",
    Reason.LATE: "late",
    Reason.BEYOND: "beyond the limit",
    Reason.DIFFERS: "differs",
    Reason.UNSTABLE: "the old one varies",
    Reason.FEW: "too few requests",
    Reason.UNSURE: "varies from life to life",
}
CURES = {
    Reason.HANGS: "run attach on it while it hangs, or compat with its models, which names the switch that helps",
    Reason.LATE: "raise ready.deadline_s, or look what it does with attach while it starts",
}
IGNORE = "where a field may differ, as an id or a time does, write its path: ignore = {}"


def shadow_document(shadow: Shadow) -> Document:
    """Return the document."""
    decision = Decision(shadow.decision)
    bad = [row for row in shadow.rows if row.status != Status.PASS and row.reason is not Reason.FEW]
    return Document(
        title=f"Shadow: {shadow.old.name} -> {shadow.new.name}",
        old=shadow.old.name,
        new=shadow.new.name,
        verdict=Verdict(
            word=decision.value,
            tone=DECISION_TONES.get(decision, OPEN),
            means=_means(shadow, decision),
        ),
        full=f"{shadow.folder}/shadow.json",
        parts=(
            Part(
                title="What the server did",
                blocks=(
                    Table(
                        heads=("what", "old", "new", "verdict"),
                        rows=tuple(_row(row, shadow) for row in shadow.rows),
                        noun="quantity",
                    ),
                ),
            ),
            *load_parts(shadow),
            *(_cause(row, shadow) for row in bad),
            Part(
                title="Answers that differ",
                noun="difference",
                blocks=tuple(_difference(each, at) for at, each in enumerate(_differences(shadow))),
            ),
            Part(
                title="How it was run", blocks=(*facts(_how(shadow), MORE), *commands([("again", shadow.again)], MORE))
            ),
        ),
    )


def _differences(shadow: Shadow) -> list[AnswerDifference]:
    """Return what is told of answers; that a server ended, and answered no more, is told by its row."""
    ended = any(life.ended is not None for life in shadow.new.lives)
    return [each for each in shadow.answers.differences if each.kind != "failure" or not ended]


def _means(shadow: Shadow, decision: Decision) -> str:
    if decision is Decision.NOTHING_TESTED:
        return "both sides are the same torch: this shows the noise"
    if decision is Decision.UPGRADE_OK:
        named = [row.quantity.value for row in shadow.rows if row.named]
        more = f"; look at {first_few(named, 3)}" if named else ""
        return f"the server does in {shadow.new.name} what it does in {shadow.old.name}{more}"
    wanted = Status.FAIL if decision is Decision.BLOCKED else Status.INCONCLUSIVE
    rows = [f"{row.quantity} ({WORDS[row.reason]})" for row in shadow.rows if row.status == wanted]
    return first_few(rows, 4)


def _row(row: ShadowRow, shadow: Shadow) -> Row:
    word = WORDS[row.reason]
    if row.status == Status.PASS and row.reason is Reason.OLD_FAILS:
        word = "no worse"
    colour = OPEN if row.named else tone(Status(row.status))
    return Row(
        cells=(
            row.quantity.value,
            *(_value(row.quantity, side) for side in _sides(shadow)),
            Cell(word, tone=colour),
        )
    )


def _sides(shadow: Shadow) -> tuple[ShadowSide, ShadowSide]:
    return shadow.old, shadow.new


def _value(quantity: Quantity, side: ShadowSide) -> str:
    """Return what one side showed, in a few words."""
    first = side.lives[0] if side.lives else None
    match quantity:
        case Quantity.BUILD:
            return "not tried" if side.build is None else _build_words(side)
        case Quantity.READY | Quantity.RESTART:
            place = 0 if quantity is Quantity.READY else 1
            return _ready_words(side.lives[place]) if len(side.lives) > place else "not tried"
        case Quantity.READY_TIME:
            return _range([life.ready_s for life in side.lives if life.ready_s is not None], "s")
        case Quantity.MEMORY:
            return _range([life.peak_bytes for life in side.lives if life.peak_bytes], "bytes")
        case Quantity.ANSWERS:
            return _answer_words(side)
        case Quantity.GROWTH:
            return amount(max(0.0, min(first.growth)), "bytes") if first is not None and first.growth else "-"
        case Quantity.STOP:
            stops = [life.stop for life in side.lives if life.stop is not None]
            return f"{' and '.join(f'{lost(stop)} of {stop.in_flight}' for stop in stops)} lost" if stops else "-"
        case Quantity.EXIT:
            return _end_words([life.stop for life in side.lives if life.stop is not None])


def _build_words(side: ShadowSide) -> str:
    assert side.build is not None
    took = amount(side.build.seconds, "s")
    if side.build.code is None:
        return f"not done after {took}"
    return f"done in {took}" if side.build.code == 0 else f"exit code {side.build.code}"


def _range(values: Sequence[float], unit: str) -> str:
    texts = list(dict.fromkeys(amount(value, unit) for value in (min(values), max(values)))) if values else ["-"]
    return " to ".join(texts)


def _ready_words(life: Life) -> str:
    return "yes" if life.ready_s is not None else f"no: {_ended_words(life)}"


def _ended_words(life: Life) -> str:
    if life.ended is Ended.ITSELF:
        return f"ended with {life.end}"
    return life.ended.value if life.ended is not None else ""


def _end_words(stops: Sequence[Stop]) -> str:
    hows = dict.fromkeys(stop.end or "had to be killed" for stop in stops)
    left = max((stop.left for stop in stops), default=0)
    more = f", left {counted(left, 'process', 'processes')}" if left else ""
    return f"{' or '.join(hows)} in {_range([stop.seconds for stop in stops], 's')}{more}" if stops else "-"


def _answer_words(side: ShadowSide) -> str:
    statuses = [f"{count} x {status}" for status, count in sorted(side.statuses.items())]
    failures = [f"{count} x {failure}" for failure, count in side.failures.items()]
    return ", ".join((*statuses, *failures)) or "-"


def _cause(row: ShadowRow, shadow: Shadow) -> Part:
    """Return what happened, the cure, the command that shows it again, and the server's last lines."""
    side = shadow.old if row.reason is Reason.OLD_FAILS else shadow.new
    life = _life_of(row.quantity, side)
    if row.quantity is Quantity.BUILD:
        name, log = "build.log", side.build.log if side.build is not None else ()
    else:
        name, log = f"server-{side.lives.index(life) + 1 if life else 1}.log", life.log if life else ()
    of_process = row.reason in (Reason.HANGS, Reason.LATE)
    return Part(
        title=f"{row.quantity.value}: {WORDS[row.reason]}",
        word=row.status,
        tone=tone(Status(row.status)),
        blocks=(
            *facts([("what", _what(row, shadow, side, life)), ("cure", _cure(row, shadow, life))]),
            *(_looked(life) if life is not None and of_process else ()),
            *(Fact("last lines" if not at else "", prose(line), form="path") for at, line in enumerate(log)),
            *(facts([("log", f"{side.folder}/{name}")], form="path") if log or of_process else ()),
        ),
    )


def _life_of(quantity: Quantity, side: ShadowSide) -> Life | None:
    place = 1 if quantity is Quantity.RESTART else 0
    return side.lives[place] if len(side.lives) > place else None


def _what(row: ShadowRow, shadow: Shadow, side: ShadowSide, life: Life | None) -> str:
    old, new = (_value(row.quantity, each) for each in _sides(shadow))
    port = f"127.0.0.1:{life.port}" if life is not None else ""
    looked = life.looked if life is not None else None
    if row.quantity is Quantity.ANSWERS:
        if row.reason is Reason.NOT_ASKED:
            return "no request was sent, so that nobody knows what the new server answers"
        if life is not None and life.ended is not None:
            where = f" (line {life.last} of {shadow.requests_file})" if life.last else ""
            return f"{side.name}: {_ended_words(life)} at request {life.asked}{where}"
        if row.reason is Reason.OLD_FAILS:
            return f"{shadow.old.name} answered no request well: {old}"
        kinds = [each for each in shadow.answers.differences if each.unstable is (row.reason is Reason.UNSTABLE)]
        return f"{counted(len(kinds), 'difference')} in {counted(shadow.answers.requests, 'request')}, below"
    if row.quantity in (Quantity.READY, Quantity.RESTART) and life is not None:
        if looked is not None and looked.ports and life.port not in looked.ports:
            return f"{side.name} listens on {first_few(list(map(str, looked.ports)), 4)}, and not on {port}"
        asked = (
            f"GET {shadow.settings.ready_path} at {port}" if shadow.settings.ready_path else f"connections to {port}"
        )
        asked = f"a line {shadow.settings.ready_log!r}" if shadow.settings.ready_log else asked
        if life.ended is Ended.LATE:
            return f"{side.name}: no {asked} within {shadow.settings.ready_deadline_s:g} s"
        return f"{side.name}: {_ended_words(life)} before it was ready ({asked})"
    return f"{shadow.old.name}: {old}; {shadow.new.name}: {new}"


def _cure(row: ShadowRow, shadow: Shadow, life: Life | None) -> str:
    looked = life.looked if life is not None else None
    if looked is not None and looked.ports and life is not None and life.port not in looked.ports:
        return "give it {port} in its command or environment, as the file of the server has to say"
    statuses = {*shadow.old.statuses}
    match row.quantity, row.reason:
        case Quantity.ANSWERS, Reason.NOT_ASKED:
            return "record requests, or write some by hand (docs/formats/requests.md), and give --requests FILE"
        case Quantity.ANSWERS, Reason.UNSTABLE:
            paths = sorted({_ignorable(each.path) for each in shadow.answers.differences if each.unstable})
            return IGNORE.format([path for path in paths if path])
        case Quantity.ANSWERS, Reason.OLD_FAILS if statuses & {"401", "403"}:
            return (
                "recorded headers leave credentials out: give the server requests that it takes, or turn that off there"
            )
        case Quantity.ANSWERS, Reason.OLD_FAILS if statuses & {"404"}:
            return "are these the requests of this server? its models and the paths of the requests do not fit"
        case Quantity.GROWTH, _:
            return "memory grows with every request: look at it with a heap profiler, or restart the server in time"
        case Quantity.STOP, _:
            return "let the server answer what it has accepted before it ends: in a rollout these are errors"
        case _:
            return CURES.get(row.reason, "")


def _ignorable(path: str) -> str:
    """Return a path of the comparison as ``ignore`` has it: ``['a'][0]`` is ``a.*``."""
    steps = path.replace("']['", ".").replace("['", ".").replace("']", "").replace("[", ".").replace("]", "").split(".")
    return ".".join("*" if step.isdecimal() else step for step in steps if step)


def _looked(life: Life) -> Iterator[Fact]:
    looked = life.looked
    if looked is None or not looked.state:
        return
    proof = "proven" if looked.hung else "no proof of a hang"
    yield Fact("does", f"{looked.state}, {looked.why}{f', phase {looked.phase}' if looked.phase else ''} ({proof})")
    for at, frame in enumerate(looked.frames[:MOST_FRAMES]):
        yield Fact("where" if not at else "", frame, form="path")


def _difference(each: AnswerDifference, at: int) -> Part:
    return Part(
        title=f"{each.endpoint} {each.path}".rstrip(),
        word=each.kind,
        tone=OPEN if each.unstable else PLAIN if each.kind == "header" else BAD,
        detail=f"{each.answers} of {counted(each.of, 'answer')}, first at line {each.line}",
        importance=ALWAYS if at < MOST_DIFFERENCES else placed(DETAIL, at),
        blocks=facts(
            [
                ("old", prose(each.old) or "nothing"),
                ("new", prose(each.new) or "nothing"),
                ("how", each.message),
                ("noise", "the old server's own two answers differ there too" if each.unstable else ""),
            ]
        ),
    )


def _how(shadow: Shadow) -> Iterator[tuple[str, str]]:
    answers = shadow.answers
    if answers.requests:
        sent = f"{counted(answers.requests, 'request')} of {shadow.requests_file}, one by one, each at least twice"
        yield "requests", f"{sent}; {answers.equal} answered with the same bytes"
    if shadow.requests < shadow.of:
        kinds = f"of {shadow.chosen_kinds} of the {counted(shadow.kinds, 'kind')} (endpoint, shapes, types, size)"
        yield "chosen", f"from {shadow.of:,}: {kinds}, with the extremes of their values; --most takes more"
    if shadow.answers.not_ok:
        yield "errors", f"{counted(shadow.answers.not_ok, 'request')} of them the old server answers with an error, too"
    for side in _sides(shadow):
        if side.command:
            yield side.name, shlex.join(side.command)
    if len(shadow.new.lives) > 1:
        yield "lives", "each side was started twice, in turns; times and memory are of both"
    yield "logs", shadow.folder
    yield "took", amount(shadow.wall_s, "s")
