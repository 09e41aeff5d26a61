"""Leaving TorchScript: what became of each artifact on its way to an exported program and a package of AOTInductor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from harness.core.outcome import Outcome
from harness.core.prediction import Prediction
from harness.core.verdict import Cause


class Migrated(StrEnum):
    """What an artifact's way out of TorchScript comes to; each has exactly one, the first of these that holds."""

    UNDECIDED = "undecided"
    NOT_CONVERTIBLE = "not convertible"
    DIFFERS = "answers otherwise"
    FIXED = "dimensions fixed"
    NOT_LOADABLE = "not loadable"
    NOT_PACKAGEABLE = "not packageable"
    FAILS_SERVED = "fails when served"
    SLOWER = "slower"
    GUARDED = "guarded"
    READY = "ready"


@dataclass(frozen=True, kw_only=True, slots=True)
class Dimension:
    """One size or value of a request that the exported program takes in part.

    Attributes:
        argument: path, e.g. ``input[0]``.
        axis: of a tensor; None where the argument is a plain value.
        taken: the size or value that it was converted with.
        asked: the others that requests have; where none has another one, that with which TorchScript was called too.
    """

    argument: str
    axis: int | None
    taken: str
    asked: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One probe of the way.

    Attributes:
        name: ``convert``, ``run``, ``package``, ``run package``, ``run package in C++``, or ``serve`` and how;
            ``release``: where.
        outcome: what happened; of ``run`` the worst over all input sets.
        seconds: of the conversion or compilation, or of the load; None where it did not end.
        size_bytes: of what it has written, None where it has written nothing.
        reason: why it did not complete, or that its answers are others; empty otherwise.
        evidence: the probe's folder, relative to that of the results.
    """

    name: str
    release: str
    outcome: Outcome
    seconds: float | None = None
    size_bytes: int | None = None
    reason: str = ""
    evidence: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One quantity of the package beside that of the artifact as TorchScript, in one release.

    Attributes:
        quantity: ``steady`` (a warm call), ``load``, ``first_calls``, ``request`` (of several callers at once) or
            ``peak_rss``.
        unit: ``"s"`` or ``"bytes"``.
        ratio: package over TorchScript; ``low``, ``high``: its 95 % confidence interval. None where it has none.
    """

    quantity: str
    unit: str
    torchscript: float
    package: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


class Presence(Enum):
    """Of an argument by whose value nobody chooses a program: whether it is there. No text, which could be a value."""

    LEFT_OUT = "left out"
    GIVEN = "given"


@dataclass(frozen=True, kw_only=True, slots=True)
class PartProgram:
    """One of several programs that an artifact needs.

    Attributes:
        method: that it was made of.
        fixed: arguments that it holds: path -> a value in words, or its presence; None is left out.
        program: the ``.pt2``, ``package``: what was compiled of it; as in ``MigratedModel``.
    """

    method: str
    fixed: tuple[tuple[str, str | Presence], ...] = ()
    program: str = ""
    package: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallestPart:
    """The few nodes of an artifact that are not convertible by themselves, in the same way.

    Attributes:
        nodes: their operators, in the order of the run; nothing where none were found, and ``note`` says why.
        source: ``file:line`` of the first; ``reason``: what the converter says of them.
        archive: they alone; ``inputs``: the folder of what they were called with.
        reproducer: folder of a script that shows it with torch alone; empty where there is none.
        minimal: whether each of them is needed; ``tests``: how many parts were asked.
    """

    nodes: tuple[str, ...] = ()
    source: str = ""
    reason: str = ""
    archive: str = ""
    inputs: str = ""
    reproducer: str = ""
    minimal: bool = False
    tests: int = 0
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loading:
    """What reading a file says of loading it in one release; ``why``: the first reason where that is not yes."""

    release: str
    prediction: Prediction
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Horizon:
    """How long an artifact still loads, as far as that is known: predicted by reading, not seen.

    Attributes:
        archive: of the TorchScript archive, one for each release that was asked; ``program``: of the ``.pt2`` that was
            written, empty where none was.
        deprecated: those that it has and warns of -> what to write instead, empty where the warning does not say.
    """

    archive: tuple[Loading, ...] = ()
    program: tuple[Loading, ...] = ()
    newest: str = ""
    gone: tuple[str, ...] = ()
    deprecated: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseFact:
    """One thing that is known of TorchScript in a release, and where that stands."""

    release: str
    text: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MigratedArtifact:
    """What one artifact comes to outside of TorchScript.

    ``reason``: why it is not ready, in a line; ``advice``: what to do instead, empty where nothing is known; ``kind``:
    stable word for what stands in the way, such as ``prim::If``; what causes are grouped by.
    """

    model: str
    outcome: Migrated
    reason: str = ""
    advice: str = ""
    kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MigratedModel(MigratedArtifact):
    """One artifact, with all that ``migrate`` knows of it.

    Attributes:
        source: ``file:line`` of the exported code, of the node that is not convertible; ``code``: that line.
        example: the input set that it was converted with.
        program: the ``.pt2`` that was written, relative to the folder of the results; empty where there is none;
            ``package``: what AOTInductor compiled of it, likewise.
        programs: where one is not enough, all that it needs; ``program`` and ``package`` are the first one's.
        walked: whether the program was made by walking the graph, in place of torch's own converter.
        steps: what was tried, in order.
        costs: of the package, where it was timed.
        part: the smallest part that is not convertible; None where nobody looked for it.
        horizon: how long it still loads; None where nothing could be read.
        owner: whose it is, as a manifest says; empty where none does.
        guessed: what its requests were guessed to be; empty where they were given.
    """

    source: str = ""
    code: str = ""
    example: str = ""
    program: str = ""
    package: str = ""
    programs: tuple[PartProgram, ...] = ()
    walked: bool = False
    dimensions: tuple[Dimension, ...] = ()
    steps: tuple[Step, ...] = ()
    costs: tuple[Cost, ...] = ()
    part: SmallestPart | None = None
    horizon: Horizon | None = None
    owner: str = ""
    guessed: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MigrationOutcome(MigratedArtifact):
    """One artifact of a run, beside which it was tried.

    ``evidence``: what shows why it is not ready, stacks or the folder of a probe; ``program``: the ``.pt2`` that was
    written. Both are relative to the run, and empty where there is none.
    """

    evidence: str = ""
    program: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMigration:
    """What the artifacts of a run come to outside of TorchScript, tried beside it: it decides nothing of the run.

    Attributes:
        release: the new one, which has converted them.
        models: in the order of the run; ``left``: those that are exported programs or packages already.
        why_not: why none could be converted, empty where one could.
        command: the ``migrate`` that says more of the same models; empty where there is no old release to ask.
    """

    release: str
    models: tuple[MigrationOutcome, ...] = ()
    left: tuple[str, ...] = ()
    why_not: str = ""
    command: str = ""

    @property
    def stopped(self) -> tuple[MigrationOutcome, ...]:
        """The models that could not leave as they are, in the order of the run."""
        return tuple(model for model in self.models if model.outcome is not Migrated.READY)


@dataclass(frozen=True, kw_only=True, slots=True)
class Unlocked:
    """What one piece of advice takes away.

    Attributes:
        advice: what to do; ``causes``: ids of those that it is for.
        models: that stop there. What would stop them next is not known, but of those in ``then_ready``: nothing.
        owners: owner -> how many of ``models``; empty where no manifest names one.
    """

    advice: str
    causes: tuple[str, ...]
    models: tuple[str, ...]
    then_ready: tuple[str, ...] = ()
    owners: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """What ``migrate`` found.

    Attributes:
        old: name of the release whose TorchScript answers are the golden ones; ``new``: where artifacts are converted.
        releases: name -> torch of every release that was asked, ``old`` and ``new`` among them.
        loaders: names of those in which the programs were loaded, ``new`` first.
        packaged: whether packages of AOTInductor were asked for; ``package_command``: what asks for them, if they were
            not.
        models: in the order of declaration.
        causes: of what is not ready, the worst first; each model belongs to one.
        asked, known: results that it is made of, and how many of them were known before.
    """

    device: str
    profile: str
    old: str
    new: str
    releases: Mapping[str, str]
    loaders: tuple[str, ...]
    packaged: bool = False
    package_command: str = ""
    models: tuple[MigratedModel, ...]
    causes: tuple[Cause, ...] = ()
    facts: tuple[ReleaseFact, ...] = ()
    asked: int = 0
    known: int = 0
    wall_s: float = 0.0
    notes: tuple[str, ...] = field(default=())

    @property
    def counts(self) -> dict[Migrated, int]:
        """How many models have each outcome, those that none has left out."""
        return counts_of(self.models)


def counts_of(models: Sequence[MigratedArtifact]) -> dict[Migrated, int]:
    """Return how many models have each outcome, those that none has left out."""
    outcomes = [model.outcome for model in models]
    return {outcome: outcomes.count(outcome) for outcome in Migrated if outcome in outcomes}
