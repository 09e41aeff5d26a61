"""What a search for the first bad step is made over: releases of torch, or what is installed beside it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.domain.environment import EnvSpec
from harness.domain.first_bad import Conclusion, ReleaseAnswer
from harness.policy.first_bad import RELEASES as OF_TORCH


@dataclass(frozen=True, kw_only=True)
class Question:
    """An environment to ask when the search is over; see ``Check``."""

    what: str
    spec: EnvSpec
    expected: ReleaseAnswer
    otherwise: str = ""


def _nothing_to_check(found: Conclusion) -> Sequence[Question]:
    del found
    return ()


@dataclass(frozen=True, kw_only=True)
class Over:
    """What is searched over.

    Attributes:
        name: as in ``FirstBad.over``.
        rest_step: as in ``FirstBad``; asked before anything is halved, for torch is the likeliest.
        checks: what to ask when an answer was found.
    """

    name: str
    rest_step: str = ""
    checks: Callable[[Conclusion], Sequence[Question]] = _nothing_to_check


RELEASES = Over(name=OF_TORCH)
