"""When requests arrive: drawn, as recorded, or as the server answers."""

import itertools
import random
from collections.abc import Iterator, Sequence


def poisson(rate: float, seconds: float, seed: int) -> list[float]:
    """Return offsets in seconds of a Poisson process of ``rate`` requests a second, within ``seconds``.

    The gaps between them are exponential: many users who do not know of each other. The same ``seed`` gives the same
    times, so that both sides of a comparison meet the same bursts.
    """
    drawn = random.Random(seed)
    gaps = iter(lambda: drawn.expovariate(rate), None)
    return list(itertools.takewhile(lambda at: at < seconds, itertools.accumulate(gaps)))


def recorded(times: Sequence[float], rate: float, seconds: float, seed: int) -> list[float]:
    """Return a stretch of recorded arrivals, drawn by ``seed`` and scaled to a mean of ``rate``: bursts stay bursts.

    ``times``: seconds, ascending, at least two of them apart; where they end before the stretch does, they begin again.
    Raises ``ValueError``: all of them came at once.
    """
    mean_gap = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0
    if mean_gap <= 0:
        raise ValueError("recorded requests that arrived at one moment have no rate")
    first = random.Random(seed).randrange(len(times) - 1)
    at = itertools.accumulate(gap / mean_gap / rate for gap in _gaps(times, first))
    return list(itertools.takewhile(lambda offset: offset < seconds, at))


def _gaps(times: Sequence[float], first: int) -> Iterator[float]:
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    return itertools.islice(itertools.cycle(gaps), first, None)
