"""What searches over releases find: the version matrix, and the first bad release."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.core.outcome import Outcome, Status
from harness.core.prediction import PredictedLoad, Prediction

GIVEN = "as given"
"""The row of artifacts that nothing here exported."""
SAME, BACKWARD, FORWARD = "same", "backward", "forward"
"""The loader is the exporter or holds the same torch; it is newer (an upgrade); it is older (a rollback)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixCell:
    """One model, exported by one release and loaded by one.

    Attributes:
        exporter, loader: names of releases; the exporter may be ``GIVEN``.
        direction: ``SAME``, ``BACKWARD`` or ``FORWARD``.
        status: UNSUPPORTED, or INCONCLUSIVE with ``exported`` unset, where there is no artifact to load.
        predicted: what the static check said before anything was loaded; None where the file is nothing to judge.
        why_predicted: its first reason, where it is not ``will load``.
        outcome: what happened in the loader; of the export where that failed.
        happened: whether the loader loaded it, whatever the calls did.
        kind: of the first finding, empty without one; ``reason``: in words, why the status is not PASS.
        evidence: folder of the probe, relative to the matrix's.
    """

    model: str
    exporter: str
    loader: str
    direction: str
    status: Status
    exported: bool = True
    predicted: Prediction | None = None
    why_predicted: str = ""
    outcome: Outcome
    happened: PredictedLoad = PredictedLoad.UNKNOWN
    kind: str = ""
    reason: str = ""
    evidence: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixRelease:
    """One release of the matrix: its name there, and what it says of itself."""

    name: str
    torch: str
    python: str = ""
    cpu: str = ""


Confusion = Mapping[Prediction, Mapping[PredictedLoad, int]]
"""What was predicted -> what happened -> how often."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """A whole matrix.

    Attributes:
        releases: the loaders, in the order named.
        exporters: the rows in order: releases, and ``GIVEN`` where artifacts were given.
        golden_in: the release whose answers are the golden ones of given artifacts; empty without any.
        models: names, in the order of declaration.
        cells: by exporter, loader and model, each in order.
        asked, known: results that the matrix is made of, and how many of them were known before this run.
        command: what repeats one model of one pair, without ``--old``, ``--new`` and ``-k``;
            ``command_words``: what it needs to be told of a release, by name, such as ``(--env, NAME=PYTHON)``.
    """

    device: str
    profile: str
    releases: tuple[MatrixRelease, ...]
    exporters: tuple[str, ...]
    golden_in: str = ""
    models: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    asked: int = 0
    known: int = 0
    wall_s: float = 0.0
    command: str = ""
    command_words: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class ReleaseAnswer(StrEnum):
    """The three answers of a release to "does the symptom show?"; UNTESTABLE is never read as one of the others."""

    GOOD = "good"
    BAD = "bad"
    UNTESTABLE = "untestable"


class Ending(StrEnum):
    """How a search ended.

    FOUND: one release, with a good one right before it. ONE_OF: releases in between could not be tested, or were not
    asked within the limit. NOT_BAD: the new end does not show a symptom. OLD_NOT_GOOD: the old end is no place to start
    from. END_UNTESTABLE: an end could not be tested.
    """

    FOUND = "found"
    ONE_OF = "one of"
    NOT_BAD = "not bad"
    OLD_NOT_GOOD = "old not good"
    END_UNTESTABLE = "end untestable"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseResult:
    """One release and what it answered.

    Attributes:
        release: as named, ``"2.2.0"``.
        answer: what it said; ``kind``: of the finding where it is bad; ``reason``: in words where it is not good.
        runs: probes that were made of the artifact there, whether now or in an earlier run.
        seconds: that the answer took, waiting for the environment included.
        build_s: that the environment took to build, in this run; 0 where it was found.
        remembered: whether an earlier search had the answer already, and nothing was asked now.
        evidence: folder of the last probe, relative to the folder of results.
    """

    release: str
    answer: ReleaseAnswer
    kind: str = ""
    reason: str = ""
    runs: int = 0
    seconds: float = 0.0
    build_s: float = 0.0
    remembered: bool = False
    evidence: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Conclusion:
    """What the answers amount to.

    Attributes:
        last_good, first_bad: the neighbours that are known; both stand for themselves only where ``ending`` is FOUND.
        one_of: the releases of which one is the first bad one, in order, where more than one may be.
        untestable: those between the neighbours that could not be tested; ``not_asked``: those that were not asked.
        good_again: (bad release, later good one) pairs: answers that contradict one switch from good to bad.
    """

    ending: Ending
    last_good: str = ""
    first_bad: str = ""
    one_of: tuple[str, ...] = ()
    untestable: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()
    good_again: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstBad:
    """A whole search.

    Attributes:
        model: its name; ``kind``: of the symptom of the new end, empty without one.
        releases: in the order from the old end to the new one, which may be backwards in time.
        asked: in the order in which they were asked.
        built: environments that this search built; ``unused``: those of them that were never asked.
        build_limit: how many it was allowed.
        command: what goes on between the two neighbours, empty where nothing was found.
    """

    model: str
    releases: tuple[str, ...]
    source: str
    asked: tuple[ReleaseResult, ...]
    conclusion: Conclusion
    kind: str = ""
    built: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    build_limit: int = 0
    wall_s: float = 0.0
    command: str = ""
    notes: tuple[str, ...] = ()
