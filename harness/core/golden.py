"""Golden records and bundles: what was kept, why it is trusted, and how two records differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

from harness.core.comparison import OutputComparison
from harness.core.devices import ANY
from harness.core.environment import Fingerprint
from harness.core.models import Artifact
from harness.core.probe import ServingProfile

RECORD_SCHEMA_VERSION = 1
RECORD = "record.json"
ARTIFACT, INPUTS, VALUES = FILES = ("artifact", "inputs", "values")
"""The files of a record; no suffix that a project may have told git to ignore."""
SUFFIX = ".gate"
"""Of a record that is packed into one file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The run that a record comes from, empty for a bundle; ``profile`` is that of its old side, without variables."""

    run: str
    profile: ServingProfile


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """What the project of a packed model declared of it, see ``ModelDeclaration``; ``computes_in`` as configured."""

    tags: tuple[str, ...] = ()
    devices: tuple[str, ...] = ANY
    unordered: tuple[str, ...] = ()
    tolerance: float | None = None
    computes_in: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the old release answered to one call.

    ``run``: ``golden``, ``repeat``, ``threads`` (other thread counts) or ``reference`` (float64); ``index`` tells
    repeats apart; ``changed``: path of an input to the tree that the call made of it; None where nobody looked.
    """

    run: str
    index: int
    input_set: str
    call: int
    tree: Any
    changed: Mapping[str, Any] | None = None
    shared: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenRecord:
    """One model's record: ``record.json``.

    Attributes:
        device, source: where and under what it was made; ``source`` is None in records older than that is kept.
        inputs: the lines of the inputs' index.
        answers: of the golden run; in a bundle, of the others that were made too.
        files: sha256 of each file beside it.
        numerics: the settings that change numbers, as the old side's worker told them; empty where nobody kept them.
    """

    schema_version: int = RECORD_SCHEMA_VERSION
    model: str
    device: str
    producer: Fingerprint
    artifact: Artifact
    inputs: list[Any]
    answers: list[Answer]
    files: Mapping[str, str]
    source: Source | None = None
    declared: Declared = field(default_factory=Declared)
    numerics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def profile(self) -> ServingProfile | None:
        """The serving profile under which it was made; None in records that were made before this was kept."""
        return self.source.profile if self.source is not None else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """Why the run trusts the golden outputs of one model; ``record`` is the sha256 of its ``record.json``."""

    model: str
    record: str
    release: str
    reason: str
    accepted: date
    by: str = ""
    run: str = ""


class RecordChange(StrEnum):
    """What stands between the accepted record and another one, the gravest first."""

    STRUCTURE = "other structure"
    BEYOND = "beyond tolerance"
    UNKNOWN = "differs, size unknown"
    WITHIN = "within tolerance"
    SAME = "same bits"
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordFacts:
    """One side of a diff: ``trust`` is None for a proposal, ``tensors`` and ``calls`` say how much it holds."""

    record: str
    release: str
    run: str
    device: str
    calls: int
    tensors: int
    trust: Trust | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordDiff:
    """One model: the accepted record against another one.

    Attributes:
        change, words: what became of the numbers, and the same in a sentence.
        facts: label -> (old, new) of whatever else differs: release, processor, artifact, inputs, profile.
        comparison: of all calls; None where a side is missing.
    """

    model: str
    change: RecordChange
    words: str
    old: RecordFacts | None = None
    new: RecordFacts | None = None
    facts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    comparison: OutputComparison | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """Diffs of several models, the gravest first; ``old`` and ``new`` say what is compared."""

    old: str
    new: str
    diffs: tuple[RecordDiff, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordProblem:
    """Something in ``golden/`` that is not what was accepted, and what to do about it."""

    model: str
    message: str
    hint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOver:
    """Something that ``golden gc`` removes; ``model`` is set for an accepted record."""

    path: str
    why: str
    size_bytes: int
    model: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenStatus:
    """Everything that ``golden status`` tells.

    Attributes:
        folder: where the records lie, as a reader would type it.
        accepted: in the order of their names; ``waiting``: proposals, with what they change.
        problems: what is not as it was accepted.
        left_over: how many things ``golden gc`` would remove.
    """

    folder: str
    accepted: tuple[Trust, ...] = ()
    waiting: tuple[RecordDiff, ...] = ()
    problems: tuple[RecordProblem, ...] = ()
    left_over: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """One packed model: its bundle, or ``why`` not; ``note``: how inputs were found where nobody gave them."""

    model: str
    path: str = ""
    size_bytes: int = 0
    why: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """All models, in the order of the plan.

    ``notes`` say what was left out; ``evidence`` is the folder of what the workers left, where it was kept.
    """

    producer: Fingerprint
    device: str
    rows: tuple[Packed, ...]
    notes: tuple[str, ...] = ()
    evidence: str = ""

    @property
    def complete(self) -> bool:
        return all(row.path for row in self.rows)
