"""What the gate said of an artifact beside what plain torch did: pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

TOLERANCE: Final = 1e-5
"""Answers that differ by less, as a share of the largest magnitude, are the same to the oracle."""
FAILED_BEFORE: Final = ("SAME_FAIL", "INCONCLUSIVE", "UNSUPPORTED")

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Prediction:
    """One loading release, one artifact.

    Attributes:
        library: with which it was loaded, or "".
        predicted: ``will load``, ``will not load``, ``unknown`` or ``unreadable``.
        error: what loading raised, "" where it loads.
    """

    record: Json
    loader: str
    library: str
    predicted: str
    why: str
    error: str

    @property
    def grade(self) -> str:
        """``right``, ``wrong`` or ``unknown``."""
        if self.predicted not in ("will load", "will not load"):
            return "unknown"
        return "right" if (self.predicted == "will load") == (self.error == "") else "wrong"


@dataclass(frozen=True)
class Judged:
    """One pair of releases, one artifact.

    Attributes:
        library: with which both sides ran, or "".
    """

    record: Json
    pair: str
    library: str
    status: str
    reason: str
    truth: Json

    @property
    def expected(self) -> str:
        """What plain torch says: ``failed before``, ``fails``, ``differs``, ``noisy`` or ``same``."""
        if self.truth["old_error"]:
            return "failed before"
        if self.truth["new_error"]:
            return "fails"
        if self.truth["noise"] is None or self.truth["noise"] > TOLERANCE:
            return "noisy"
        return "differs" if self.truth["difference"] > TOLERANCE else "same"

    @property
    def grade(self) -> str:
        """``right``, ``wrong``, ``wrong green`` or ``undecided``."""
        expected, status = self.expected, self.status
        if expected == "noisy":
            return "right"
        if expected == "failed before":
            return "right" if status in FAILED_BEFORE else "wrong green" if status == "PASS" else "wrong"
        if status == "INCONCLUSIVE":
            return "undecided"
        if expected == "same":
            return "right" if status == "PASS" else "wrong"
        return "right" if status == "FAIL" else "wrong green"


def predictions(records: Sequence[Json]) -> Iterator[Prediction]:
    """Yield what was predicted of each artifact and loading release, plain and with its library."""
    for record in records:
        for library, part in _parts(record):
            for loader, error in part["loads"].items():
                predicted, why = part["predicted"].get(loader, ("not asked", ""))
                yield Prediction(record, loader, library, predicted, why, error)


def judged(records: Sequence[Json]) -> Iterator[Judged]:
    """Yield the status of each artifact and pair that was asked for."""
    for record in records:
        for library, part in _parts(record):
            for pair, found in part["statuses"].items():
                yield Judged(record, pair, library, found["status"], found["reason"], found)


def _parts(record: Json) -> Iterator[tuple[str, Json]]:
    if record["bytes"]:
        yield "", record
        if record["with_library"]:
            yield record["with_library"]["library"], record["with_library"]
