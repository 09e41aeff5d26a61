"""What becomes of a server in the new release: one row per quantity, and one decision; pure.

A server lives twice in each release. What varies from life to life is red only where every life of the new release is
worse than every life of the old one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from harness.core.load import LoadRow
from harness.core.outcome import Decision, Status
from harness.core.quantities import QUANTITIES
from harness.core.shadow import Ended, Life, Quantity, Reason, ServerSettings, Shadow, ShadowRow, ShadowSide, Stop

# What is accepted where server.toml writes no limit, and the least that matters: as of a model's process.
READY_LIMIT: Final = 1.5
READY_LEAST_S: Final = 0.25
MEMORY: Final = QUANTITIES["peak_rss"]
LEAST_GROWTH: Final = 64 * 1024
"""Bytes per request: in a part of 50 requests the heap of a JVM grows by 1 to 2 MB before it is collected."""
TIMES_OF_OLD: Final = 2.0
LEAST_LOST: Final = 0.25
"""Share of the requests in flight: on a busy machine a healthy server loses those that it has not read yet."""
TIMES_AS_MANY: Final = 4.0
ROOM: Final = 3.0
"""The deadline must be so many times as long as the old server needs, else a late new one says nothing."""
FROM_HERE: Final = {Ended.HANG: Reason.HANGS, Ended.LATE: Reason.LATE}


def rows_of(shadow: Shadow) -> tuple[ShadowRow, ...]:
    """Return what the facts come to, in the order in which it happened; what nobody could ask has no row."""
    return tuple(_rows(shadow))


def decision_of(rows: Sequence[ShadowRow | LoadRow], *, same: bool = False) -> Decision:
    """Return what the rows come to together; ``same``: both sides are, which is never green."""
    statuses = {Status(row.status) for row in rows}
    if Status.FAIL in statuses:
        return Decision.BLOCKED
    if not rows or Status.INCONCLUSIVE in statuses:
        return Decision.INCONCLUSIVE
    return Decision.NOTHING_TESTED if same else Decision.UPGRADE_OK


def _row(quantity: Quantity, status: Status, reason: Reason = Reason.SAME, *, named: bool = False) -> ShadowRow:
    return ShadowRow(quantity=quantity, status=status.value, reason=reason, named=named)


def _rows(shadow: Shadow) -> Iterator[ShadowRow]:
    old, new, settings = shadow.old, shadow.new, shadow.settings
    if old.build is not None:
        if old.build.code != 0:
            yield _row(Quantity.BUILD, Status.INCONCLUSIVE, Reason.OLD_FAILS)
            return
        failed = new.build is None or new.build.code != 0
        yield _row(Quantity.BUILD, Status.FAIL, Reason.FAILS) if failed else _row(Quantity.BUILD, Status.PASS)
        if failed:
            return
    if not old.lives or old.lives[0].ready_s is None or not new.lives:
        yield _row(Quantity.READY, Status.INCONCLUSIVE, Reason.OLD_FAILS)
        return
    yield _ready(Quantity.READY, old.lives[0].ready_s, new.lives[0], settings)
    if new.lives[0].ready_s is None:
        return
    yield _beyond(Quantity.READY_TIME, shadow, lambda life: life.ready_s or 0.0, READY_LIMIT, READY_LEAST_S)
    yield _beyond(Quantity.MEMORY, shadow, lambda life: life.peak_bytes, MEMORY.limit, MEMORY.least)
    yield _answers(shadow)
    if old.lives[0].ended is not None or new.lives[0].ended is not None:
        return
    if shadow.requests:
        yield _growth(old.lives[0].growth, new.lives[0].growth)
    stops = [_stops(side) for side in (old, new)]
    loaded = [[stop for stop in each if stop.in_flight] for each in stops]
    if all(loaded):
        yield _in_flight(*loaded)
    if all(stops):
        yield _end(*stops)
    if len(old.lives) > 1 and len(new.lives) > 1:
        again = old.lives[1].ready_s
        if again is None:
            yield _row(Quantity.RESTART, Status.INCONCLUSIVE, Reason.OLD_FAILS)
        else:
            yield _ready(Quantity.RESTART, again, new.lives[1], settings)


def _ready(quantity: Quantity, old_s: float, life: Life, settings: ServerSettings) -> ShadowRow:
    if life.ready_s is not None:
        return _row(quantity, Status.PASS)
    reason = FROM_HERE.get(life.ended or Ended.ITSELF, Reason.FAILS)
    surely = reason is not Reason.LATE or old_s * ROOM <= settings.ready_deadline_s
    return _row(quantity, Status.FAIL if surely else Status.INCONCLUSIVE, reason)


def _beyond(
    quantity: Quantity, shadow: Shadow, value: Callable[[Life], float], limit: float, least: float
) -> ShadowRow:
    """Return whether the least of the new lives is beyond the limit of the most of the old ones."""
    key = {Quantity.READY_TIME: "ready", Quantity.MEMORY: "memory"}[quantity]
    olds, news = ([number for life in side.lives if (number := value(life))] for side in (shadow.old, shadow.new))
    if not olds or not news:
        return _row(quantity, Status.UNSUPPORTED, Reason.NOT_ASKED)
    written = shadow.settings.limits.get(key)
    if min(news) <= (written or limit) * max(olds) or min(news) - max(olds) <= least:
        return _row(quantity, Status.PASS)
    if written is None:
        return _row(quantity, Status.PASS, Reason.BEYOND, named=True)
    return _row(quantity, Status.FAIL, Reason.BEYOND)


def _answers(shadow: Shadow) -> ShadowRow:
    old, new, answers = shadow.old.lives[0], shadow.new.lives[0], shadow.answers
    if not shadow.requests:
        return _row(Quantity.ANSWERS, Status.INCONCLUSIVE, Reason.NOT_ASKED)
    if old.ended is not None:
        return _row(Quantity.ANSWERS, Status.INCONCLUSIVE, Reason.OLD_FAILS)
    if new.ended is not None:
        return _row(Quantity.ANSWERS, Status.FAIL, FROM_HERE.get(new.ended, Reason.FAILS))
    if any(not each.unstable and each.kind != "header" for each in answers.differences):
        return _row(Quantity.ANSWERS, Status.FAIL, Reason.DIFFERS)
    if answers.requests == answers.not_ok:
        return _row(Quantity.ANSWERS, Status.INCONCLUSIVE, Reason.OLD_FAILS)
    if any(each.unstable for each in answers.differences):
        return _row(Quantity.ANSWERS, Status.INCONCLUSIVE, Reason.UNSTABLE)
    return _row(Quantity.ANSWERS, Status.PASS, named=bool(answers.differences))


def _growth(old: tuple[float, ...], new: tuple[float, ...]) -> ShadowRow:
    """Return whether memory grows in every part of the repeated requests, and more than it ever did before."""
    if not old or not new:
        return _row(Quantity.GROWTH, Status.UNSUPPORTED, Reason.FEW)
    leaks = min(new) > max(LEAST_GROWTH, TIMES_OF_OLD * max(old))
    return _row(Quantity.GROWTH, Status.FAIL, Reason.BEYOND) if leaks else _row(Quantity.GROWTH, Status.PASS)


def _stops(side: ShadowSide) -> list[Stop]:
    return [life.stop for life in side.lives if life.stop is not None]


def lost(stop: Stop) -> int:
    """Return how many of the requests in flight had no answer, or another than usually."""
    return stop.refused + stop.dropped


def _in_flight(old: list[Stop], new: list[Stop]) -> ShadowRow:
    now, before = (sum(map(lost, stops)) / sum(stop.in_flight for stop in stops) for stops in (new, old))
    if not all(map(lost, new)):
        return _row(Quantity.STOP, Status.PASS, Reason.OLD_FAILS if now or before else Reason.SAME)
    if now >= max(LEAST_LOST, TIMES_AS_MANY * before):
        return _row(Quantity.STOP, Status.FAIL, Reason.DIFFERS)
    return _row(Quantity.STOP, *((Status.PASS, Reason.OLD_FAILS) if before else (Status.INCONCLUSIVE, Reason.UNSURE)))


def _end(old: list[Stop], new: list[Stop]) -> ShadowRow:
    """Return whether every life of the new server ends worse: killed, with another error, or leaving processes."""

    def worse(stop: Stop) -> bool:
        other = stop.code != 0 and stop.code not in {each.code for each in old}
        return other or (stop.left > 0 and not any(each.left for each in old))

    if not any(map(worse, new)):
        return _row(Quantity.EXIT, Status.PASS)
    if all(map(worse, new)):
        return _row(Quantity.EXIT, Status.FAIL, Reason.DIFFERS)
    return _row(Quantity.EXIT, Status.INCONCLUSIVE, Reason.UNSURE)
