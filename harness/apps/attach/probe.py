"""Looks at processes by ``/proc`` alone, and imports little: it may be asked every few seconds, beside each server."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.apps.attach.find import LIST_THEM, Asked, NotThere
from harness.checks.attach.look import Gone, observe
from harness.core.attach import Attached, Attachment, ProcessState, Why
from harness.verdict.attach import ANSWERS_S, UNSURE, asks_for_gil, hung, judged, worst_first


def probe(asked: Asked, window_s: float) -> Attachment:
    """Return what the processes do as far as ``/proc`` tells, and py-spy where a pool or the GIL may be stuck.

    What would not be sure of a server that answers others is looked at once more, long enough to see an answer.

    Raises:
        NotThere: none of them is there now.
    """
    begin = time.monotonic()
    look = _look(asked, window_s, begin)
    if hung(look) and any(process.why in UNSURE for process in look.processes):
        look = _look(asked, max(window_s, ANSWERS_S - window_s), begin)
    return look


def _look(asked: Asked, window_s: float, begin: float) -> Attachment:
    processes = worst_first([_sure(judged(process)) for process in seen(asked, window_s)])
    return Attachment(asked=asked.words, processes=processes, wall_s=time.monotonic() - begin, probe=True)


def _sure(process: Attached) -> Attached:
    """Return it judged anew by its frames of Python, read without stopping it.

    Only they tell half a request, and who has the GIL.
    """
    looped = process.why is Why.CLIENT_OR_TIMER and process.traffic is not None and process.traffic.looped
    if not looped and (process.state is ProcessState.BLOCKED or not asks_for_gil(process)):
        return process
    from harness.checks.attach.stacks import with_stacks  # noqa: PLC0415  a probe seldom needs it

    return judged(with_stacks(process, may_stop=False))


def seen(asked: Asked, window_s: float) -> Sequence[Attached]:
    """Return those of the processes that are still there, looked at at the same time."""

    def look(pid: int) -> Attached | None:
        try:
            return observe(pid, window_s)
        except Gone:
            return None

    with ThreadPoolExecutor(len(asked.pids)) as pool:
        found = [process for process in pool.map(look, asked.pids) if process is not None]
    if not found:
        raise NotThere(f"{asked.words}: it has ended while it was looked at", LIST_THEM)
    return found
