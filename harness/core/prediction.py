"""What reading a file predicts for each release, and how that compares with what happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.core.archive import ArchiveFacts, ArchiveProblem, CodePlace, Reach
from harness.core.verdict import CellVerdict


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


OPERATOR_MISSING = "operator_missing"
SEMANTICS_CHANGED = "semantics_changed"
ANSWERS_OTHERWISE = "answers_otherwise"
LOOPS_AT_LOAD = "loops_at_load"
"""Kinds of findings that something is decided by."""
RUNS_AT_LOAD = "its __setstate__ runs while the archive is loaded"


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticFinding:
    """One thing that a reader should know before this release loads the file.

    Attributes:
        kind: a stable word, e.g. ``"operator_missing"``.
        subject: the operator, class, dtype or device; of what is about the whole file, its path.
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

    @property
    def words(self) -> str:
        return self.text if "/" in self.subject else f"{self.subject}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticVerdict:
    """What one release will do with one file; ``direction`` is backward in the new one, forward in the old."""

    torch: str
    direction: str
    prediction: Prediction
    findings: tuple[StaticFinding, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectedFile:
    """One file: its facts or why it could not be read, and a verdict per side that was named.

    Attributes:
        across: release -> its verdict, of all releases that the gate knows, where no side was named.
    """

    path: str
    facts: ArchiveFacts | None = None
    failure: ArchiveProblem | None = None
    advice: str = ""
    verdicts: Mapping[str, StaticVerdict]
    across: Mapping[str, StaticVerdict] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """All files in order of path; ``releases`` maps side to torch version."""

    releases: Mapping[str, str]
    files: tuple[InspectedFile, ...]


class PredictedLoad(StrEnum):
    """What became of loading an artifact; ``UNKNOWN`` where it says nothing about a prediction."""

    LOADED = "loaded"
    REFUSED = "did not load"
    UNKNOWN = "not known"


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedModel:
    """One artifact in one release.

    Attributes:
        verdict: what was predicted, with the findings that stop it, put it in doubt or warn; None: nothing was.
        agreed: whether both say the same; None where one of them says nothing.
        note: why nothing was predicted, or is known.
    """

    release: str
    verdict: StaticVerdict | None = None
    happened: PredictedLoad = PredictedLoad.UNKNOWN
    agreed: bool | None = None
    note: str = ""

    @property
    def prediction(self) -> Prediction:
        """What was predicted; unknown where nothing was."""
        return self.verdict.prediction if self.verdict is not None else Prediction.UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticReport:
    """The static check of one model's artifact.

    ``artifact``: its path, relative to the run where it lies there; ``loops``: its own functions that have a loop ->
    checksum of their code.
    """

    artifact: str
    sides: Mapping[str, PredictedModel] = field(default_factory=dict)
    loops: Mapping[str, str] = field(default_factory=dict)


class RollbackAnswer(StrEnum):
    """Whether a model, or all of them, can be rolled back."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRollback:
    """The rollback of one model: the artifact that the new release writes, in the old release.

    Attributes:
        answer: yes, no or unknown; ``reason``: why, in words, where it is not yes.
        predicted: what reading says, and what happened where it was probed; None without an artifact.
        artifact: path of that artifact, relative to the run where it lies there; empty without one.
        verdict: of the probe in the old release, judged by the new one; None where it was only read.
        command: shows it again, empty where the answer is yes.
    """

    model: str
    answer: RollbackAnswer
    reason: str = ""
    predicted: PredictedModel | None = None
    artifact: str = ""
    verdict: CellVerdict | None = None
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackReport:
    """Whether one can roll back.

    Attributes:
        answer: no if any model cannot, else unknown if that is not known of any, else yes.
        reason: which models, in words; or why nobody asked.
        method: ``"read"``: predicted without loading, or ``"probed"``: loaded, called and compared as well.
        gates: whether an answer other than yes decides the run.
        models: in the order of the plan.
        left_out: model -> how it fails in the old release anyway, so that it has nothing to be rolled back to.
    """

    answer: RollbackAnswer
    reason: str = ""
    method: str = "read"
    gates: bool = False
    models: tuple[ModelRollback, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
