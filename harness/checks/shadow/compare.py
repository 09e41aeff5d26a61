"""Compares the answers of two servers to the same requests, one by one, and puts together what differs alike."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from harness.artifacts.tensors.outputs import Outputs
from harness.checks.outputs.findings import PLACEMENT, deciding_rule, error_of, placement_words
from harness.checks.outputs.outputs import compare_outputs
from harness.checks.shadow.answers import JSON_LENGTH, NAMES, floats_in, parsed, tree_of, without
from harness.core.comparison import OutputComparison
from harness.core.shadow import AnswerDifference, Compared, Failure, ServerSettings
from harness.core.traffic import TrafficRequest

# What says when, by which connection or how long, and nothing of the answer.
OF_THE_TRANSPORT: Final = frozenset(
    {
        *(
            "date",
            "server",
            "content-length",
            "connection",
            "keep-alive",
            "transfer-encoding",
            "content-encoding",
            "vary",
        ),
        *("etag", "last-modified", "expires", "age", "via", "content-type", "x-request-id", JSON_LENGTH),
    }
)
SHOWN: Final = 60  # characters of an answer that is no JSON


class Answer(Protocol):
    """What was answered to one request; ``failure``: why nothing was."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Any: ...
    @property
    def body(self) -> bytes: ...
    @property
    def failure(self) -> Failure | None: ...


@dataclass(slots=True)
class _Seen:
    """Differences by what makes them one; ``answers``: by endpoint."""

    kept: dict[tuple[str, str, str, bool], AnswerDifference] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)

    def add(self, differences: Iterable[AnswerDifference]) -> None:
        for key, each in {(one.endpoint, one.kind, one.path, one.unstable): one for one in differences}.items():
            before = self.kept.get(key)
            self.kept[key] = each if before is None else replace(before, answers=before.answers + 1)


def compare(
    requests: Iterable[TrafficRequest],
    old: Sequence[Iterable[Answer]],
    new: Sequence[Iterable[Answer]],
    settings: ServerSettings,
    step: Callable[[], None] = lambda: None,
) -> Compared:
    """Return what the answers differ in, the most frequent first.

    ``old``, ``new``: each server's passes over the requests; the first is compared, a second of the old one is its own
    noise. Later passes may be shorter: the server ended in them.
    """
    seen, equal, count, not_ok = _Seen(), 0, 0, 0
    olds, news = [iter(answers) for answers in old], [iter(answers) for answers in new]
    for request in requests:
        before = [answer for answer in (next(each, None) for each in olds) if answer is not None]
        after = [answer for answer in (next(each, None) for each in news) if answer is not None]
        if not before or not after:
            break
        count += 1
        step()
        not_ok += before[0].failure is not None or before[0].status >= 400
        endpoint = f"{request.method} {request.path.partition('?')[0]}"
        seen.answers[endpoint] += len(after)
        bodies = {answer.body for answer in before} if before[0].failure is None else set()
        equal += all(answer.body in bodies and answer.status == before[0].status for answer in after)
        for answer in after:
            seen.add(
                replace(difference, endpoint=endpoint, line=request.line)
                for difference in _differences(before, answer, settings)
            )
    differences = [replace(each, of=seen.answers[each.endpoint]) for each in seen.kept.values()]
    order = sorted(differences, key=lambda each: (each.unstable, each.kind == "header", -each.answers, each.line))
    return Compared(requests=count, equal=equal, not_ok=not_ok, differences=tuple(order))


def _differences(before: Sequence[Answer], after: Answer, settings: ServerSettings) -> Iterator[AnswerDifference]:
    """Yield what one answer of the new server differs in from those of the old one to the same request."""

    def differs(kind: str, of: Callable[[Answer], str], path: str = "") -> Iterator[AnswerDifference]:
        olds = [of(answer) for answer in before]
        if of(after) not in olds:
            yield AnswerDifference(
                kind=kind, endpoint="", path=path, old=olds[0], new=of(after), unstable=len(set(olds)) > 1
            )

    answered = [answer for answer in before if answer.failure is None]
    if not answered or after.failure is not None:
        if answered:
            yield from differs("failure", lambda answer: str(answer.failure or "answered"))
        return
    statuses = list(differs("status", lambda answer: str(answer.status)))
    types = list(differs("content type", _media_type))
    yield from statuses or types
    if statuses or types:
        return
    yield from _headers(answered, after, settings.ignore_headers)
    if any(after.body == answer.body for answer in answered):
        return
    distinct = list({answer.body: answer for answer in answered}.values())
    try:
        values = [_value(answer, settings) for answer in (*distinct, after)]
    except ValueError:
        bodies = [answer.body for answer in (*distinct, after)]
        yield from differs("body", lambda answer: _excerpt(answer.body, bodies))
        return
    yield from _of_values(_with_order(values), settings)


def _media_type(answer: Answer) -> str:
    return str(answer.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _headers(before: Sequence[Answer], after: Answer, ignored: Collection[str]) -> Iterator[AnswerDifference]:
    names = {name for answer in (*before, after) for name in answer.headers} - OF_THE_TRANSPORT - {*ignored}
    for name in sorted(names):
        olds = [answer.headers.get(name, "") for answer in before]
        if len(set(olds)) == 1 and after.headers.get(name, "") != olds[0]:
            yield AnswerDifference(kind="header", endpoint="", path=name, old=olds[0], new=after.headers.get(name, ""))


def _value(answer: Answer, settings: ServerSettings) -> Any:
    return without(parsed(answer.body, answer.headers, settings.protocol), settings.ignore)


def _excerpt(body: bytes, bodies: Sequence[bytes]) -> str:
    """Return where a body begins to differ from others, in a few characters."""
    same = next(
        (at for at, bytes_ in enumerate(zip(*bodies, strict=False)) if len(set(bytes_)) > 1), min(map(len, bodies))
    )
    begin = max(0, same - SHOWN // 4)
    text = body[begin : begin + SHOWN].decode("utf-8", "backslashreplace")
    return f"{'...' if begin else ''}{text}{'...' if begin + SHOWN < len(body) else ''} ({len(body)} bytes)"


def _with_order(values: Sequence[Any]) -> Sequence[Any]:
    """Return the answers; the order of their outputs is compared only where all have the same ones."""
    names = {tuple(sorted(value[NAMES])) for value in values if isinstance(value, dict) and NAMES in value}
    return values if len(names) < 2 else [{k: v for k, v in value.items() if k != NAMES} for value in values]


def _of_values(values: Sequence[Any], settings: ServerSettings) -> Iterator[AnswerDifference]:
    """Yield what the last answer differs in from the others, which are one another's noise."""
    floats = frozenset(path for value in values for path in floats_in(value))
    buffer = bytearray()
    trees = [tree_of(value, floats, buffer) for value in values]
    data = bytes(buffer)
    golden, *repeats, probe = (Outputs(calls={("answer", 0): tree}, buffer=data) for tree in trees)
    comparison = compare_outputs("answer", "", golden, probe, repeats=repeats, precision=settings.computes_in)
    yield from _of_comparison(comparison)


def _of_comparison(comparison: OutputComparison) -> Iterator[AnswerDifference]:
    for call in comparison.calls:
        for difference in call.tree:
            yield AnswerDifference(
                kind=difference.kind,
                endpoint="",
                path=_path(difference.path),
                old=difference.expected,
                new=difference.actual,
                unstable=any(difference.path.startswith(path) for path in comparison.unstable),
            )
        for tensor in call.tensors:
            rule, passes = deciding_rule(tensor)
            if not passes:
                placement = rule == PLACEMENT
                yield AnswerDifference(
                    kind="nan_placement" if placement else "values",
                    endpoint="",
                    path=_path(tensor.path),
                    old=tensor.worst_expected,
                    new=tensor.worst_actual,
                    message=placement_words(tensor)
                    if placement
                    else f"off by {error_of(tensor):.2g} of the largest value",
                    unstable=tensor.path in comparison.unstable and (tensor.noise_abs or 0.0) > tensor.tolerance_abs,
                )


def _path(path: str) -> str:
    return path.removeprefix("output") or "the whole answer"
