"""A server group that takes longer to get ready -> its finding. Pure."""

from harness.core.measurement import signed_percent
from harness.core.plan import INITIALIZATION_FLOOR_S
from harness.core.quantities import INITIALIZATION
from harness.core.text import amount
from harness.core.verdict import Finding


def slow_start(old_s: float, new_s: float, limit: float, *, group: str, words: str) -> Finding | None:
    """Return the finding where a server group takes clearly longer to get ready than it did; it only warns.

    The times are from first load to last warm-up call. ``limit`` is the accepted ratio new/old; less than a second more
    is no finding either.
    """
    if new_s <= limit * old_s or new_s - old_s < INITIALIZATION_FLOOR_S:
        return None
    change = f"{signed_percent(new_s / old_s)} %" if old_s > 0 else "from nothing"
    message = (
        f"{words}: server group {group} gets ready in {amount(new_s, 's')}, {amount(old_s, 's')} before ({change}, "
        f"limit {signed_percent(limit)} %)"
    )
    size = new_s / old_s if old_s > 0 else None
    return Finding(
        kind="initialization_time",
        message=message,
        size=size,
        detail={"group": group},
        quantity=INITIALIZATION,
        limit=limit,
    )
