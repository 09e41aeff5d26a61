"""Small phrases that findings share."""


def times_of(count: int, total: int) -> str:
    """Return ``"2 of 5 rounds"``."""
    return f"{count} of {total} round{'' if total == 1 else 's'}"
