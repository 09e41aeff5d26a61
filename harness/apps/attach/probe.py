"""Looks at processes by ``/proc`` alone, and imports little: it may be asked every few seconds, beside each server."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.apps.attach.find import LIST_THEM, Asked, NotThere
from harness.checks.attach.look import Gone, observe
from harness.core.attach import Attached, Attachment, Why
from harness.verdict.attach import judged, worst_first


def probe(asked: Asked, window_s: float) -> Attachment:
    """Return what the processes do as far as ``/proc`` tells, and py-spy where a loop's pool may be stuck.

    Raises:
        NotThere: none of them is there now.
    """
    begin = time.monotonic()
    processes = worst_first([_sure(judged(process)) for process in seen(asked, window_s)])
    return Attachment(asked=asked.words, processes=processes, wall_s=time.monotonic() - begin, probe=True)


def _sure(process: Attached) -> Attached:
    """Return it judged anew by its frames of Python, read without stopping it, where only they tell half a request."""
    if process.why is not Why.CLIENT_OR_TIMER or process.traffic is None or not process.traffic.looped:
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
