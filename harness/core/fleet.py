"""A fleet: what a plan over a store says, what is kept of each artifact, and what the merged answer is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.core.models import ArtifactKind
from harness.core.outcome import Decision, Status
from harness.core.prediction import Prediction
from harness.core.report import CellTrend, Explained, ModelReport, ScenarioReport
from harness.core.verdict import Cause, RowVerdict

PLAN_SCHEMA = 1
MERGED_SCHEMA = 1
NO_OWNER = "nobody"
"""Whose an artifact is that no manifest gives to anybody."""


class Examination(StrEnum):
    """How much is asked of an artifact.

    ``FULL``: everything that a run asks, once per program. ``WEIGHTS``: it is loaded and its numbers are compared;
    initialization and latency are those of the artifact of the same program that was examined in full.
    """

    FULL = "full"
    WEIGHTS = "weights"


class StoreKind(StrEnum):
    """Where a store has an artifact from."""

    FILE = "file"
    TRITON = "triton"
    TORCHSERVE = "torchserve"


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving:
    """How an artifact is asked and served, as far as its store or the manifest says it.

    Attributes:
        inputs: path of the file with its requests, in the store; empty without one.
        requests: as of ``GivenArtifact``: described by a manifest, or named inputs of a server's configuration; without
            these and a file they are guessed.
        methods, tolerance, reset, seed, unordered, timed: as of ``ModelDeclaration`` and ``GivenArtifact``.
        profile: name of its serving profile in the plan.
    """

    inputs: str = ""
    requests: tuple[Mapping[str, Any], ...] = ()
    methods: tuple[str, ...] = ()
    tolerance: float | None = None
    reset: str | None = None
    seed: int = 0
    unordered: tuple[str, ...] = ()
    timed: bool = True
    profile: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetArtifact:
    """One artifact of a store, read without torch.

    Attributes:
        name: unique in the plan; ``path``: in the store, of the file that holds it.
        member: of a TorchServe archive the file in it that is the artifact; else empty.
        loaded_as: what it is, by its content; what is not read is taken for TorchScript.
        sha256, inputs_sha256: of the artifact's bytes and of its requests' when it was planned; nothing else is judged.
        program: digest of its code and structure; ``weights``: of its tensors. Equal programs have equal code. What is
            no TorchScript is a program as a whole, without weights.
        examination: what is asked of it; ``key``: what its result is kept under, empty where nothing can be asked.
        predictions: side -> what reading predicts; ``why``: the first reason where one is not "will load", or what is
            known to answer otherwise.
        left_out: why it is not run, in words; empty where it is; ``left_out_for``: the same without what is of this
            artifact alone.
        notes: what a reader should know of how its requests and its profile were come by.
    """

    name: str
    path: str
    kind: StoreKind = StoreKind.FILE
    member: str = ""
    loaded_as: ArtifactKind = ArtifactKind.TORCHSCRIPT
    size_bytes: int = 0
    sha256: str = ""
    inputs_sha256: str = ""
    program: str = ""
    weights: str = ""
    serving: Serving = field(default_factory=Serving)
    owner: str = ""
    tier: str = ""
    tags: tuple[str, ...] = ()
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    why: str = ""
    examination: Examination = Examination.WEIGHTS
    key: str = ""
    left_out: str = ""
    left_out_for: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Unjudged:
    """Something that a store holds and that no verdict speaks of, for a reason that is none to doubt an upgrade.

    ``path``: in the store; ``member``: of a TorchServe archive the file in it; ``reason``: in words, the same for all
    of a kind.
    """

    path: str
    reason: str
    member: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedOptions:
    """What the command line said of the runs of a plan, with paths that mean the same in any folder."""

    overrides: Mapping[str, Any]
    assignments: tuple[str, ...]
    environments: tuple[str, ...]
    libraries: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetUnit:
    """What is run once: one content under one key, however many artifacts have it.

    Attributes:
        artifact: the one that is run for all; ``artifacts``: all of them, by name.
        risk: 0 is the greatest; units are in the order in which they run.
        cost_s: seconds that it is expected to take on one machine.
        known: whether its result was kept already when the plan was made.
    """

    key: str
    artifact: str
    artifacts: tuple[str, ...]
    examination: Examination
    profile: str
    risk: int
    cost_s: float
    known: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetPlan:
    """What a fleet's run will do; written to ``plan.json``.

    Attributes:
        store: as it was named, absolute where it is a folder.
        old, new: releases, as they were named; ``releases``: side -> what its results are kept under.
        options: what the command line said of the runs, to be said again by each.
        settings: digest of everything configured that may change a result.
        profiles: serving profile -> assignments as of ``--set``; the empty name is that of the configuration.
        tiers: in the order in which they are upgraded.
        artifacts: by name; ``units``: in the order in which they run.
        unjudged: what else the store holds, by path.
        run_s: what each run costs beside its artifacts: environments, planted defects.
        measured: of how many kept results the costs were estimated; 0: they are the defaults.
        within_s: how long all may take, where somebody said it; ``machines``: how many that takes.
    """

    schema_version: int = PLAN_SCHEMA
    harness_version: str
    store: str
    old: str
    new: str
    releases: Mapping[str, str]
    options: PlannedOptions
    settings: str
    device: str
    profiles: Mapping[str, tuple[str, ...]]
    tiers: tuple[str, ...]
    artifacts: tuple[FleetArtifact, ...]
    units: tuple[FleetUnit, ...]
    run_s: float
    measured: int = 0
    within_s: float | None = None
    machines: int = 1
    notes: tuple[str, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetResult:
    """What one run found about one content; immutable once it is kept.

    Attributes:
        key: what it is kept under; ``content``: what the key is a digest of, by name.
        name: of the model in the run that made it: cells and facts have that name.
        frame: digest of the report of that run without its models; kept beside the results.
    """

    key: str
    content: Mapping[str, str]
    name: str
    examination: Examination
    frame: str
    row: RowVerdict
    facts: ModelReport
    scenarios: tuple[ScenarioReport, ...] = ()
    explained: tuple[Explained, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Something of the machine, the network or the gate that kept a unit from having a result.

    ``label``: ``spurious-...``, from the open list in ``harness/apps/fleet/faults.py``; ``text``: what happened;
    ``tries``: how often it was tried in vain.
    """

    key: str
    label: str
    text: str
    tries: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetRow:
    """One artifact in the merged answer.

    Attributes:
        status: None where it has no result; ``reason``: why it is not PASS or has none, or what to know of one that
            passes: what is open, warned of, or over a limit that does not block.
        word: what it counts as, as a model of a run does: ``undecided`` and ``over limit`` pass; empty without one.
        cause: id of the cause that decides it; empty where it has none.
        content: the first digits of what its result is kept under; equal ones were asked the same of the same.
        guessed: what its requests were guessed to be; empty where somebody gave them, or where it has no result.
        member: of a TorchServe archive the file in it; with ``path`` its place, which is who it is in another answer.
    """

    name: str
    path: str
    owner: str
    tier: str
    tags: tuple[str, ...]
    program: str
    status: Status | None
    reason: str = ""
    cause: str = ""
    content: str = ""
    guessed: str = ""
    member: str = ""
    word: str = ""

    @property
    def standing(self) -> str:
        """Its word; its status where an older answer has none, and empty without a result."""
        return self.word or (self.status.value if self.status is not None else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetCause:
    """A cause, with whose artifacts it concerns: owner -> how many."""

    cause: Cause
    owners: Mapping[str, int]
    programs: int


class WaveKind(StrEnum):
    """What a wave waits for."""

    READY = "ready"
    SWITCH = "ready_with_switch"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wave:
    """Artifacts that can, or cannot, move together.

    Attributes:
        needs: the switch to set, the cause that blocks, or why nothing is known; of what is ready its tier.
        warning: operators of what is ready that are known to answer otherwise, which guessed requests may not show.
        cost: of a switch, in words; ``cause``: id of the cause, ``fix``: what takes it away.
        profile: serving profile that a switch is set in: processes have one set of switches.
        owners: owner -> how many of ``artifacts``.
    """

    kind: WaveKind
    needs: str = ""
    warning: str = ""
    cost: str = ""
    cause: str = ""
    fix: str = ""
    profile: str = ""
    owners: Mapping[str, int] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetChange:
    """What became of an artifact since an earlier answer; ``why``: what says so where two statuses do not."""

    name: str
    owner: str
    change: CellTrend
    was: Status | None = None
    now: Status | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetOutline:
    """An answer in numbers; ``waves``: what a wave waits for, of ``WaveKind`` -> how many artifacts."""

    old: str
    new: str
    decision: Decision
    waves: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetSince:
    """An answer beside an earlier one over the same store.

    Attributes:
        counts: of ``CellTrend`` -> how many artifacts.
        changes: of every artifact that changed, or is waived no more, the gravest first.
        new_causes, ended_causes: titles of what blocks now and did not, and the other way around.
        trend: all answers that were named in numbers, the oldest first, this one last.
    """

    old: str
    new: str
    decision: Decision
    counts: Mapping[str, int]
    changes: tuple[FleetChange, ...]
    new_causes: tuple[str, ...] = ()
    ended_causes: tuple[str, ...] = ()
    trend: tuple[FleetOutline, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetReport:
    """The merged answer over a store.

    Attributes:
        decision, reason, exit_code: as of a run; never green while an artifact has no result.
        rows: by name; ``waves``: in the order in which they move; ``causes``: the worst first.
        faults: what has no result since something of ours or of the machine failed.
        counts: word -> how many artifacts with a result; ``exceeded``: as of a run's judgement.
        since: what changed since an earlier answer, where one was named.
        unjudged: what the store holds beside its artifacts, as of the plan.
    """

    schema_version: int = MERGED_SCHEMA
    harness_version: str
    store: str
    old: str
    new: str
    device: str
    decision: Decision
    reason: str
    exit_code: int
    rows: tuple[FleetRow, ...]
    causes: tuple[FleetCause, ...]
    waves: tuple[Wave, ...]
    faults: tuple[Fault, ...] = ()
    machines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    since: FleetSince | None = None
    unjudged: tuple[Unjudged, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    exceeded: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreStatus:
    """How much a fleet's folder keeps.

    Attributes:
        programs: of how many the results are; ``faults``: how many contents have none for a reason that is labelled.
        by_pair: "old -> new" -> how many results.
        oldest_used: date on which what was not used for longest was used; empty where nothing is kept.
        cache_bytes: of what was fetched; ``runs_bytes``: of the runs that made the results.
    """

    folder: str
    results: int
    bytes: int
    programs: int
    faults: int
    by_pair: Mapping[str, int]
    oldest_used: str
    cache_bytes: int = 0
    runs_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardDone:
    """What a call of ``fleet run`` did.

    ``units``: how many the shard has; ``known``: of these had a result already; ``made``: have one now; ``faults``:
    what has none; ``runs``: folders of the runs that were made, or gone on with.
    """

    units: int
    known: int
    made: int
    faults: tuple[Fault, ...] = ()
    runs: tuple[str, ...] = ()
