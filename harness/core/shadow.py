"""A team's own server in two releases: how it is started, what it did, and what that comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.core.load import LoadFailure, LoadMeasurement, LoadPlan, LoadRow


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """What ``server.toml`` says; ``docs/guide/shadow.md`` describes each key.

    Attributes:
        file: where it was read, for messages.
        command, build: words with placeholders; an empty ``build`` is none.
        environment: variables, their values with placeholders.
        cwd: absolute; ``models``: what ``{models}`` stands for, absolute, or empty.
        ready_path, ready_status: the HTTP answer that means ready; ``ready_log``: a regular expression of its log
            instead; both empty: it accepts connections.
        stop_signal: ``"SIGTERM"``; ``stop_deadline_s``: after which it is killed.
        request_s: after which a request counts as unanswered.
        ignore: paths within JSON, ``"outputs.*.id"``; ``ignore_headers``: lower-case names.
        computes_in: what ``harness/checks/outputs/tolerances.py`` takes as precision.
        requirements: packages that its environments have beside torch.
        limits: quantity -> ratio new/old from which on it is slower or larger; a key only where it was written.
        load: how much load both sides are put under; None: none.
    """

    file: str
    command: tuple[str, ...]
    build: tuple[str, ...] = ()
    build_deadline_s: float = 1800.0
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    models: str = ""
    threads: int = 1
    ready_path: str = ""
    ready_status: int = 200
    ready_log: str = ""
    ready_deadline_s: float = 120.0
    stop_signal: str = "SIGTERM"
    stop_deadline_s: float = 30.0
    request_s: float = 30.0
    protocol: str = "http"
    ignore: tuple[str, ...] = ()
    ignore_headers: tuple[str, ...] = ()
    computes_in: str | float = "float32"
    requirements: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    load: LoadPlan | None = None


class Failure(StrEnum):
    """Why a request has no answer."""

    REFUSED = "connection refused"
    DROPPED = "connection closed without an answer"
    CUT_OFF = "half an answer"
    TIMEOUT = "no answer in time"
    HANG = "hang"
    NO_HTTP = "no HTTP"


class Ended(StrEnum):
    """How a server's life ended, other than by being stopped."""

    ITSELF = "it ended by itself"
    HANG = "it hangs"
    LATE = "it was not ready in time"
    MEMORY = "it took more memory than the limit"


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What ``attach`` read off the processes of a server.

    Attributes:
        state, why: of the worst of them, as ``ProcessState`` and ``Why`` have them; empty: nothing was seen.
        hung: whether that is a proof: nothing of the server itself ends it.
        ports: on which they listen.
        frames: of the threads that matter, innermost first, as far as a stack was taken.
    """

    pid: int = 0
    state: str = ""
    why: str = ""
    phase: str = ""
    hung: bool = False
    ports: tuple[int, ...] = ()
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """What became of a server, and of the requests that it had, when it was told to stop.

    Attributes:
        in_flight: requests that were sent, and not answered, when the signal came.
        answered: of these, with the status that they usually have; ``refused``: with another one.
        dropped: of these, without an answer.
        code: exit code, negative: by that signal; None: it had to be killed; ``end``: the same in words.
        seconds: until it had ended; left: processes of it that it left behind, and that were killed then.
    """

    in_flight: int = 0
    answered: int = 0
    refused: int = 0
    dropped: int = 0
    code: int | None = None
    end: str = ""
    seconds: float = 0.0
    left: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Life:
    """One start of a server until its end.

    Attributes:
        ready_s: from the start; None: it never was.
        peak_bytes: largest proportional resident memory of all its processes until it was ready; 0: not known.
        ended: None where it lived until it was stopped; ``end`` of ``ITSELF``: with which exit code.
        asked: requests that it was sent before the stop; ``last``: the line of the last of these, 0 without any.
        growth: bytes per request in each part of the repeated requests; empty: too few.
        log: the last lines that it wrote, where it ended otherwise than by being stopped.
    """

    port: int = 0
    ready_s: float | None = None
    peak_bytes: int = 0
    ended: Ended | None = None
    end: str = ""
    looked: Looked | None = None
    asked: int = 0
    last: int = 0
    growth: tuple[float, ...] = ()
    stop: Stop | None = None
    log: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """How a side's ``build`` ended; ``code`` None: it took too long; ``log``: its last lines where it failed."""

    code: int | None
    seconds: float
    log: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowSide:
    """One release: what was run, and each life of the server.

    Attributes:
        name: ``"torch 2.6.0"``; command: as it was executed in the first life.
        statuses: HTTP status -> requests of the first pass; ``failures``: why an answer lacks -> how often, of all.
        folder: where its logs lie, as a reader would type it.
        environment: what the server got on top of what it inherits.
    """

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    build: Build | None = None
    lives: tuple[Life, ...] = ()
    statuses: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[Failure, int] = field(default_factory=dict)
    folder: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerDifference:
    """A difference that answers to one endpoint have in one place; what several answers show is told once.

    Attributes:
        kind: ``"status"``, ``"failure"``, ``"content type"``, ``"body"``, ``"header"``, or of a finding on outputs.
        endpoint: ``"POST /v2/models/iris/infer"``; ``path``: within the answer.
        answers: how many show it; ``of``: how many answers this endpoint gave.
        line: of the first request that shows it, in the file of requests.
        unstable: the old server differs from itself there, so that it says nothing about the release.
        message: what the comparison of outputs says of the first.
    """

    kind: str
    endpoint: str
    path: str = ""
    answers: int = 1
    of: int = 1
    line: int = 0
    old: str = ""
    new: str = ""
    message: str = ""
    unstable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """What the comparison of all answers found.

    Attributes:
        requests: that both servers were asked; equal: whose answers have the same bytes.
        not_ok: to which the old server answered with a status of 400 or above, or not at all.
        binary: how many had tensors as raw bytes.
    """

    requests: int = 0
    equal: int = 0
    not_ok: int = 0
    differences: tuple[AnswerDifference, ...] = ()


class Quantity(StrEnum):
    """What is judged, in the order in which it happens."""

    BUILD = "build"
    READY = "gets ready"
    READY_TIME = "time until ready"
    MEMORY = "peak memory until ready"
    ANSWERS = "answers"
    GROWTH = "memory per request"
    STOP = "in flight at the stop"
    EXIT = "end"
    RESTART = "gets ready again"


class Reason(StrEnum):
    """Why a row is what it is; the sentence is made of the facts."""

    SAME = "same"
    OLD_FAILS = "the old server fails too"
    NOT_ASKED = "not asked"
    FAILS = "fails"
    HANGS = "hangs"
    LATE = "late"
    BEYOND = "beyond the limit"
    DIFFERS = "differs"
    UNSTABLE = "the old server differs from itself"
    FEW = "too few requests"
    UNSURE = "not in every life"


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowRow:
    """One quantity judged; ``named``: it passes, and the decision's own line names it."""

    quantity: Quantity
    status: str
    reason: Reason
    named: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Shadow:
    """The whole answer.

    Attributes:
        requests_file: empty: none was given; ``requests``: how many were sent ``of`` the file's.
        kinds: of the file's requests, as in ``artifacts/traffic_sample.py``; ``chosen_kinds``: of those that were sent.
        same: both sides are the same torch, so that only the noise is shown.
        again: the command that shows it again; ``folder``: where logs and answers lie, as a reader would type it.
    """

    old: ShadowSide
    new: ShadowSide
    settings: ServerSettings
    answers: Compared = Compared()
    load: LoadMeasurement | None = None
    load_failure: LoadFailure | None = None
    load_rows: tuple[LoadRow, ...] = ()
    requests_file: str = ""
    requests: int = 0
    of: int = 0
    kinds: int = 0
    chosen_kinds: int = 0
    same: bool = False
    rows: tuple[ShadowRow, ...] = ()
    decision: str = ""
    wall_s: float = 0.0
    again: str = ""
    folder: str = ""
