"""What a static check says of files: a prediction per release, with its reasons."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.archive import ArchiveFacts, CodePlace, Problem, Reach


class Prediction(StrEnum):
    """What will happen when a release loads the file; ``UNKNOWN`` where reading alone cannot tell."""

    LOADS = "will load"
    FAILS = "will not load"
    UNKNOWN = "unknown"


class Weight(StrEnum):
    """What a finding does to the prediction: decide against it, put it in doubt, or nothing."""

    STOPS = "stops"
    DOUBT = "doubt"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticFinding:
    """One thing that a reader should know before this release loads the file.

    Attributes:
        kind: a stable word, e.g. ``"operator_missing"``.
        subject: the operator, class, dtype or device.
        text: what is the matter; ``what_to_do``: about it.
        place, count, reach: of the calls, where it is about calls.
        source: a link that documents it.
    """

    kind: str
    weight: Weight
    subject: str
    text: str
    what_to_do: str = ""
    place: CodePlace | None = None
    count: int = 0
    reach: Reach | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticVerdict:
    """What one release will do with one file; ``direction`` is backward in the new one, forward in the old."""

    torch: str
    direction: str
    prediction: Prediction
    findings: tuple[StaticFinding, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectedFile:
    """One file: its facts or why it could not be read, and a verdict per side that was named."""

    path: str
    facts: ArchiveFacts | None = None
    failure: Problem | None = None
    advice: str = ""
    verdicts: Mapping[str, StaticVerdict]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """All files in order of path; ``releases`` maps side to torch version."""

    releases: Mapping[str, str]
    files: tuple[InspectedFile, ...]
