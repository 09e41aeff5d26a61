"""The report: the only thing renderers see. Written as ``report.json``; the schema has a version."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from harness.core.comparison import OutputComparison
from harness.core.environment import Fingerprint
from harness.core.golden import Trust
from harness.core.machine import MachineDuringRun
from harness.core.measurement import CommonSlowdown, LatencyMeasurement, RatioEstimate
from harness.core.migration import RunMigration
from harness.core.models import ArtifactKind, UnjudgedFile
from harness.core.outcome import Decision, Outcome, Status
from harness.core.policy import PolicyReport
from harness.core.prediction import RollbackReport, StaticReport
from harness.core.timeline import Timeline
from harness.core.verdict import Cause, Fix, Judgement, Provenance, WaiverUse


class CellTrend(StrEnum):
    """How a cell has changed since the baseline, in the order of reports."""

    NEW = "new"
    GREW = "grew"
    FLAKY = "flaky"
    UNDECIDED = "undecided"
    FIXED = "fixed"
    GONE = "gone"
    ADDED = "added"
    NOT_COMPARABLE = "not_comparable"
    UNCHANGED = "unchanged"

    @property
    def words(self) -> str:
        """For a reader: ``not comparable``."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, kw_only=True, slots=True)
class CellChange:
    """One cell in both runs.

    ``was`` and ``now``: its status as the reports have it; None where that run does not have the cell; ``why``: what
    the change is read from; empty where the two statuses say it all. ``still_broken``: it fails in both releases, as in
    the baseline, which held it against the model since an earlier one in which it worked.
    """

    cell: str
    model: str
    scenario: str
    change: CellTrend
    was: Status | None = None
    now: Status | None = None
    why: str = ""
    still_broken: bool = False

    @property
    def words(self) -> str:
        """For a reader: how it has changed; what only the other run left open is decided now."""
        decided = self.now in (Status.PASS, Status.FAIL, Status.XFAIL, Status.XPASS)
        return "decided now" if self.change is CellTrend.UNDECIDED and decided else self.change.words


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineReport:
    """A run beside an earlier one.

    Attributes:
        run: name of the other run; ``decision`` and ``started_at`` are its own.
        differences: what else is not alike in the two runs, a sentence each.
        other_artifacts: models whose artifact is another one than it was.
        now_guessed: models whose requests were given there, and are guessed here.
        changes: in the order of ``Change``; cells that are unchanged only where there is something to say of them.
        counts: change -> how many cells, those that are unchanged too.
    """

    run: str
    started_at: str
    decision: Decision
    differences: tuple[str, ...] = ()
    other_artifacts: tuple[str, ...] = ()
    now_guessed: tuple[str, ...] = ()
    changes: tuple[CellChange, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """One search, and one cell that it explains.

    Attributes:
        cell: id of the cell; ``model``: its model.
        by: the command that searched: ``"bisect"``, ``"mitigate"`` or ``"first-bad"`` (``bisect --over releases``);
            ``"baseline"`` for a fix that the baseline has verified.
        answer: in a few words, e.g. ``"operator aten::mul.Tensor"``; the same for the same cause.
        operators: those that a bisection has named, without their overloads.
        lines: (label, text) in reading order, for the cell.
        paths: files and folders to look at, relative to the run where they lie in its folder, else whole.
        seconds: what the search took; 0 where nobody measured.
        fixes: what takes its symptom away, settings first, of each kind the cheapest first.
        patched: the archive with the best rewrite that fixes the cell, a path as ``paths`` has it; empty without one.
    """

    cell: str
    model: str
    by: str
    answer: str
    operators: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    paths: tuple[str, ...] = ()
    seconds: float = 0.0
    fixes: tuple[Fix, ...] = ()
    patched: str = ""

    def after(self, before: "Explained") -> "Explained":
        """Return it with what only ``before``, an earlier search for the same, has measured: the prices of its fixes.

        The archive is then the earlier one too, which is what was timed.
        """
        priced = {(fix.name, fix.rewrites): fix for fix in before.fixes if fix.price is not None}
        fixes = tuple(priced.get((fix.name, fix.rewrites), fix) if fix.price is None else fix for fix in self.fixes)
        if fixes == self.fixes:
            return self
        best, known = (next((fix for fix in found if fix.rewrites), None) for found in (fixes, before.fixes))
        return replace(self, fixes=fixes, patched=before.patched if best == known else self.patched)


SCHEMA_VERSION = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class SideReport:
    """One side of the pair: its name and fingerprint; ``golden`` if a record stood in for it."""

    name: str
    fingerprint: Fingerprint | None
    interpreter: str = ""
    golden: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelReport:
    """What the table shows of one model; None is "not measured".

    Attributes:
        export: outcome of the export in the old release; None where a golden record brought the artifact.
        load: outcome of load and calls alone in the new release, judged at loading.
        concurrent: outcome of the initializations: the first that did not complete, else completed.
        outputs: ``"bit equal"``, ``"max 2.1e-07"``, ``"differs"`` ... in words.
        worst_relative: max over tensors of max_abs / scale, or None.
        load_s: old and new seconds, from fresh processes.
        first_calls_s: old and new, sum of the calls before steady state.
        static: what the static check predicted of its artifact, beside what happened.
        guessed: what its inputs were guessed to be, e.g. ``"forward(x=float32[2, 16])"``; empty where they were given.
        provenance: what its file was rewritten from, by which search; None where the file does not say so.
        asked: digest of artifact, inputs and settings: where two runs have the same one, the same was asked of it.
        owner: who answers for it; empty where nobody said.
        timed: whether its latency is measured; a miniature, which tests correctness, says no.
    """

    model: str
    kind: ArtifactKind = ArtifactKind.TORCHSCRIPT
    export: Outcome | None = None
    load: Outcome | None = None
    concurrent: Outcome | None = None
    outputs: str = ""
    worst_relative: float | None = None
    load_s: tuple[float, float] | None = None
    first_calls_s: tuple[float, float] | None = None
    artifact_digest: str = ""
    artifact_bytes: int = 0
    group: str = ""
    where: str = ""
    comparisons: tuple[OutputComparison, ...] = ()
    latency: LatencyMeasurement | None = None
    static: StaticReport | None = None
    guessed: str = ""
    provenance: Provenance | None = None
    tags: tuple[str, ...] = ()
    owner: str = ""
    asked: str = ""
    timed: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioSide:
    """What one release made of a server group in one scenario.

    Attributes:
        rounds: initializations that say something about the release; ``failed``: those in which some model hung,
            crashed or raised.
        init_s: first load to last warm-up call, median over the rounds that nothing ended early; None without one, and
            where a process brings the group up in cycles.
        load_overlap: CPU time of the loading threads over the wall time of loading; above 1 loads truly overlapped.
        growth_bytes: growth of resident memory per cycle, update, new thread, change or new size: of what the scenario
            has; None where it has none of those.
        os_threads: threads that the kernel knew of the process in the end, where memory was read.
        max_rss_bytes: largest resident memory of a process.
    """

    rounds: int
    failed: int
    ready: int
    init_s: float | None = None
    load_overlap: float | None = None
    growth_bytes: float | None = None
    os_threads: int | None = None
    max_rss_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioReport:
    """One server group brought up in one scenario.

    ``old`` is None beside golden records, and where its time tells nothing.

    ``hang_bound`` is the largest probability of a failing initialization that the rounds of the new release do not
    exclude, with 95 % confidence; ``init_ratio`` the time to get ready, new over old, its pairs being rounds of both
    that nothing ended early; None without one.
    """

    scenario: str
    group: str
    worker: str
    threads: int
    models: int
    new: ScenarioSide
    old: ScenarioSide | None = None
    hang_bound: float = 1.0
    init_ratio: RatioEstimate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunReport:
    """A finished run.

    Attributes:
        environment_differences: ``field -> (old, new)`` where the fingerprints differ.
        models: facts per model, in the order of the rows.
        time_shares_s: where the wall time went, by category; sums to ``wall_s``.
        notes: things a reader must know, e.g. that loading was not concurrent (Python holds the GIL).
        program: what every command about this run begins with, as a shell takes it, on the machine that made or shows
            it; ``folder``: of the run, as a command names it. ``folder`` is empty in a report that lies nowhere.
        rerun: cell id -> command that repeats just that cell.
        numerics: setting that changes numbers -> its value in the exporter, on the old and on the new side; several
            values, of different models, are joined by commas; empty where nobody knows.
        limits: quantity of the benchmark -> ratio new/old from which it is told; ``steady`` -> from which it fails.
        durations_s: cell -> what its probes took, in both releases, also those of an earlier run: a model that shared
            a process counts for its own phases.
        earlier_answers: earlier run -> how many probes of this one are its, as nothing they depend on has changed.
        causes: what the cells that need a reader have in common, the worst first; each of them belongs to one.
        common: what the release costs all timed models; None where there were too few to tell.
        rollback: whether one can roll back; None where nobody asked.
        migration: what its artifacts come to outside of TorchScript; None where nobody asked. It decides nothing.
        timelines: who did what and when, per initialization and server group; one process of each side.
        baseline: what has changed since another run; None where nobody asked.
        policy: the policy that decided it, and what it made of it.
        waivers: what each waiver did, in the order of the file.
        trust: why the golden records that stood in for the old release are trusted, one per model; else empty.
        unjudged: what lay beside the models, looks like one, and has no verdict.
        during_run: what happened to the machine while it ran; None where nobody looked.
    """

    schema_version: int = SCHEMA_VERSION
    run: str
    harness_version: str
    started_at: str
    wall_s: float
    device: str
    direction: str
    profile: str
    old: SideReport
    new: SideReport
    environment_differences: Mapping[str, tuple[str, str]]
    judgement: Judgement
    models: tuple[ModelReport, ...]
    policy: PolicyReport
    program: str
    scenarios: tuple[ScenarioReport, ...] = ()
    time_shares_s: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    folder: str = ""
    rerun: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    numerics: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    rollback: RollbackReport | None = None
    migration: RunMigration | None = None
    explained: tuple[Explained, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    baseline: BaselineReport | None = None
    during_run: MachineDuringRun | None = None
    waivers: tuple[WaiverUse, ...] = ()
    trust: tuple[Trust, ...] = ()
    unjudged: tuple[UnjudgedFile, ...] = ()
    causes: tuple[Cause, ...] = ()
    common: CommonSlowdown | None = None
    durations_s: Mapping[str, float] = field(default_factory=dict)
    earlier_answers: Mapping[str, int] = field(default_factory=dict)
