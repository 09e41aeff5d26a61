"""The report: the only thing renderers see. Written as ``report.json``; the schema has a version."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.baseline import BaselineReport
from harness.domain.comparison import OutputComparison
from harness.domain.course import Course
from harness.domain.environment import Fingerprint
from harness.domain.explained import Explained
from harness.domain.foretold import RollbackReport, StaticReport
from harness.domain.golden import Trust
from harness.domain.measurement import LatencyMeasurement
from harness.domain.outcome import Outcome
from harness.domain.policy import PolicyReport
from harness.domain.timeline import Timeline
from harness.domain.verdict import Judgement
from harness.domain.waiver import WaiverUse

SCHEMA_VERSION = 2


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
        tags: of its declaration.
        guessed: what its inputs were guessed to be, e.g. ``"forward(x=float32[2, 16])"``; empty where they were given.
        asked: digest of artifact, inputs and settings: where two runs have the same one, the same was asked of it.
    """

    model: str
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
    tags: tuple[str, ...] = ()
    asked: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioSide:
    """What one release made of a server group in one scenario.

    Attributes:
        rounds: initializations that say something about the release; ``failed``: those in which some model hung,
            crashed or raised.
        ready: how many models came through every round.
        init_s: first load to last warm-up call, median over the rounds that nothing ended early; None without one.
        load_overlap: CPU time of the loading threads over the wall time of loading; above 1 loads truly overlapped.
        growth_bytes: growth of resident memory per cycle, for cycles of init and teardown.
        max_rss_bytes: largest resident memory of a process.
    """

    rounds: int
    failed: int
    ready: int
    init_s: float | None = None
    load_overlap: float | None = None
    growth_bytes: float | None = None
    max_rss_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioReport:
    """One server group brought up in one scenario; ``old`` is None beside golden records.

    ``hang_bound`` is the largest probability of a failing initialization that the rounds of the new release do not
    exclude, with 95 % confidence.
    """

    scenario: str
    group: str
    worker: str
    threads: int
    models: int
    new: ScenarioSide
    old: ScenarioSide | None = None
    hang_bound: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunReport:
    """A finished run.

    Attributes:
        run: name of the run directory.
        old, new: the two sides.
        environment_differences: ``field -> (old, new)`` where the fingerprints differ.
        judgement: decision, rows, canaries.
        models: facts per model, in the order of the rows.
        scenarios: facts per scenario and server group.
        time_shares_s: where the wall time went, by category; sums to ``wall_s``.
        notes: things a reader must know, e.g. that loading was not concurrent (Python holds the GIL).
        rerun: cell id -> command that repeats just that cell.
        numerics: setting that changes numbers -> its value in the exporter, on the old and on the new side; several
            values, of different models, are joined by commas; empty where nobody knows.
        limits: quantity of the duel -> ratio new/old from which it is told; ``steady`` -> from which it fails.
        rollback: whether one can roll back; None where nobody asked.
        explained: what searches have found about its red cells.
        timelines: who did what and when, per initialization and server group; one process of each side.
        baseline: what has changed since another run; None where nobody asked.
        policy: the policy that decided it, and what it made of it; None in reports of older harnesses.
        waivers: what each waiver did, in the order of the file.
        trust: why the golden records that stood in for the old release are trusted, one per model; else empty.
        course: what happened to the machine while it ran; None where nobody looked.
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
    scenarios: tuple[ScenarioReport, ...] = ()
    time_shares_s: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rerun: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    numerics: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    rollback: RollbackReport | None = None
    explained: tuple[Explained, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    baseline: BaselineReport | None = None
    course: Course | None = None
    policy: PolicyReport | None = None
    waivers: tuple[WaiverUse, ...] = ()
    trust: tuple[Trust, ...] = ()
