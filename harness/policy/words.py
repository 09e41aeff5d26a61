"""Small phrases that findings share."""

MIB = 1 << 20


def times_of(count: int, total: int) -> str:
    """Return ``"2 of 5 rounds"``."""
    return f"{count} of {counted(total, 'round')}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 model`` or ``3 models``; ``plural`` where that is not the noun with an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def joined(*parts: str) -> str:
    """Return the clauses that are not empty, as one sentence."""
    return "; ".join(part for part in parts if part)


def amount(value: float, unit: str) -> str:
    """Return a time in ``"s"`` or a size in ``"bytes"`` with three digits and the prefix that suits it."""
    if unit == "s":
        for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
            if value >= factor:
                return f"{value / factor:.3g} {name}"
        return f"{value * 1e9:.3g} ns"
    for factor, name in ((float(MIB), "MiB"), (1024.0, "KiB")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.0f} bytes"
