"""The version matrix: what each release does with the artifacts that each release wrote."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.outcome import Outcome, Status
from harness.domain.prediction import PredictedLoad, Prediction

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
        exported: whether there is an artifact.
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
        notes: what a reader must know.
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
