"""What the static check said of an artifact, against what happened; and whether the way back is open."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.domain.inspection import Prediction, StaticVerdict
from harness.domain.verdict import CellVerdict


class Loading(StrEnum):
    """What became of loading an artifact; ``UNKNOWN`` where it says nothing about a prediction."""

    LOADED = "loaded"
    REFUSED = "did not load"
    UNKNOWN = "not known"


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold:
    """One artifact in one release.

    Attributes:
        release: name of the environment.
        verdict: what was predicted, with the findings that stop it, put it in doubt or warn; None: nothing was.
        happened: what loading there alone came to.
        agreed: whether both say the same; None where one of them says nothing.
        note: why nothing was predicted, or is known.
    """

    release: str
    verdict: StaticVerdict | None = None
    happened: Loading = Loading.UNKNOWN
    agreed: bool | None = None
    note: str = ""

    @property
    def prediction(self) -> Prediction:
        """What was predicted; unknown where nothing was."""
        return self.verdict.prediction if self.verdict is not None else Prediction.UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticReport:
    """The static check of one model's artifact: its path, relative to the run where it lies there, and each side."""

    artifact: str
    sides: Mapping[str, Foretold] = field(default_factory=dict)


class Answer(StrEnum):
    """Whether a model, or all of them, can be rolled back."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRollback:
    """The way back of one model: the artifact that the new release writes, in the old release.

    Attributes:
        answer: yes, no or unknown; ``reason``: why, in words, where it is not yes.
        foretold: what reading says, and what happened where it was probed; None without an artifact.
        artifact: path of that artifact, relative to the run where it lies there; empty without one.
        verdict: of the probe in the old release, judged by the new one; None where it was only read.
        command: shows it again, empty where the answer is yes.
    """

    model: str
    answer: Answer
    reason: str = ""
    foretold: Foretold | None = None
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

    answer: Answer
    reason: str = ""
    method: str = "read"
    gates: bool = False
    models: tuple[ModelRollback, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
