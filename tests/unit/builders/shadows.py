"""Servers in two releases: one that hangs, one whose answers differ, one that does the same, and hostile texts."""

from dataclasses import replace

from harness.core.outcome import Decision
from harness.core.shadow import (
    AnswerDifference,
    Build,
    Compared,
    Ended,
    Failure,
    Life,
    Looked,
    ServerSettings,
    Shadow,
    ShadowSide,
    Stop,
)
from harness.verdict.shadow import decision_of, rows_of

SETTINGS = ServerSettings(file="server.toml", command=("serve", "--port", "{port}"), protocol="v2")
STOP = Stop(in_flight=12, answered=12, code=0, end="exit code 0", seconds=0.12)
LIFE = Life(port=41001, ready_s=2.1, peak_bytes=300 << 20, asked=48, last=25, growth=(0.0, 82.0, 0.0, 0.0), stop=STOP)
COMMAND = ("/env/bin/python", "server.py", "41001")
SIDE = ShadowSide(
    name="torch 2.1.2",
    command=COMMAND,
    lives=(LIFE, replace(LIFE, ready_s=2.4)),
    statuses={"200": 24},
    folder="reports/shadow/old",
)
DIFFERENCE = AnswerDifference(
    kind="values",
    endpoint="POST /v2/models/thumbnails/infer",
    path="['outputs']['output__0']",
    answers=74,
    of=74,
    line=4,
    old="-2.0",
    new="-1.7385621",
    message="off by 0.11 of the largest value",
)
HANG = Looked(
    pid=7, state="blocked", why="requests without an answer", hung=True, ports=(41001,), frames=("lock_wait",)
)


def judged(shadow: Shadow) -> Shadow:
    """Return it with its rows and its decision."""
    rows = rows_of(shadow)
    return replace(shadow, rows=rows, decision=decision_of(rows, same=shadow.same).value)


SAME = judged(
    Shadow(
        old=SIDE,
        new=replace(SIDE, name="torch 2.6.0", folder="reports/shadow/new"),
        settings=SETTINGS,
        answers=Compared(requests=24, equal=24),
        requests_file="requests.jsonl",
        requests=24,
        wall_s=16.3,
        again="python -m harness shadow server.toml",
        folder="reports/shadow",
    )
)
DIFFERS = judged(replace(SAME, answers=Compared(requests=24, equal=16, differences=(DIFFERENCE,))))
HANGS = judged(
    replace(
        SAME,
        new=replace(
            SAME.new,
            lives=(replace(LIFE, ended=Ended.HANG, looked=HANG, stop=None, asked=10, last=11, log=("serving",)),),
            failures={Failure.HANG: 1},
        ),
    )
)


def hostile(names: tuple[str, ...]) -> Shadow:
    """Return one whose every text is hostile."""
    ends = (Ended.ITSELF, Ended.HANG, Ended.LATE)
    name = names[0]
    looked = Looked(pid=1, state=name, why=name, phase=name, ports=(1,), frames=names)
    lives = tuple(replace(LIFE, ready_s=None, ended=ended, end=name, looked=looked, log=names) for ended in ends)
    side = ShadowSide(name=name, command=names, lives=lives, statuses={name: 1}, folder=name, environment={name: name})
    differences = tuple(
        AnswerDifference(kind=each, endpoint=each, path=each, old=each, new=each, message=each) for each in names
    )
    settings = ServerSettings(file=name, command=names, ready_log=name)
    found = Shadow(
        old=replace(SIDE, name=name, build=Build(code=0, seconds=1.0)),
        new=replace(side, build=Build(code=1, seconds=1.0, log=names)),
        settings=settings,
        answers=Compared(requests=1, differences=differences),
        requests_file=name,
        requests=1,
        again=name,
        folder=name,
    )
    rows = (*rows_of(found), *rows_of(replace(found, new=side)))
    return replace(found, rows=rows, decision=Decision.BLOCKED.value)
