"""What a run is going to do, decided before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.core.devices import Device, device_named
from harness.core.environment import AUTO_BACKEND, EnvSpec
from harness.core.models import ModelDeclaration, UnjudgedFile
from harness.core.probe import ServingProfile
from harness.core.quantities import COMMON, QUANTITIES, QUANTITY_LIMITS, Beyond

# In the order of the report; after the first: how a server is brought up (``harness/serving/scenarios.py``).
# Without loading while serving, what fails only under traffic stays unseen (docs/evidence.md#bringing-up).
DEFAULT_SCENARIOS = ("alone", "concurrent", "while_serving")
# Where a run can be told to end before timing: loads, hangs and numbers are known by then.
UNTIL = ("correctness",)
CAPTURE_MODES = ("global", "thread_local", "relaxed")
# What is initialized at first use must not fall into a capture: torch's own advice.
WARM_CALLS = 3
RUNTIMES = ("auto", "libtorch", "python", "both")
ROLLBACKS = ("static", "probe", "off")
# Chosen, as the limits of quantities, of a server group. It is timed in few rounds beside other probes: less than a
# second is noise.
INITIALIZATION_LIMIT, INITIALIZATION_FLOOR_S = 1.25, 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadlines:
    """Limits without progress: the larger of ``floor_s`` and ``factor`` x the old release's time.

    ``fast_floor_s``: the floor of a call that the old release is known to make in far less (``Deadline`` of
    ``harness/probing/requests.py``); ``floor_s`` where that is less.
    """

    floor_s: float = 60.0
    fast_floor_s: float = 12.0
    factor: float = 20.0
    total_s: float = 900.0
    export_s: float = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyBudget:
    """How much the benchmark may spend. ``limit`` is 0.05 for +5 %; times in seconds.

    Attributes:
        floor_s: a call that is slower by less is no finding, whatever share of it that is.
        common_limit: how much slower a release may make all models together, likewise.
        budget: ``"off"``, ``"quick"`` or ``"thorough"``.
        looks: after how many rounds of fresh processes an answer may be taken; the last one ends the search.
        blocks: turns per round, one block of every arm each; ``block_s``: length of a block.
        model_s: measuring time of one model, start of the processes apart.
        total_s: how long the benchmark of a run may take, starts and planted slowdown included; None: by its models.
        undecided_limit: ratio from which an upper bound leaves the whole run undecided.
        threads: callers at the same time for the throughput; 1 leaves it out. ``together_s``: for how long.
        pin: whether all processes of a benchmark share the same cores, as many as the profile's pools can use.
    """

    budget: str = "quick"
    limit: float = 0.05
    floor_s: float = 20e-6
    common_limit: float = 0.03
    looks: tuple[int, ...] = (3, 4, 6, 8)
    blocks: int = 10
    block_s: float = 0.02
    model_s: float = 10.0
    total_s: float | None = None
    undecided_limit: float = 1.25
    threads: int = 2
    together_s: float = 0.03
    pin: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSettings:
    """``[tool.compat.limits]``: what a worker process may use. GB are 10^9 bytes; None is no limit.

    Attributes:
        memory_is_derived: whether ``memory_gb`` is "auto", which is what this machine has.
        cpu_s: None derives one from the deadline of the probe.
        network: whether probes may open sockets; exports always may.
    """

    memory_gb: float | None = None
    memory_is_derived: bool = False
    cpu_s: float | None = None
    file_gb: float = 16.0
    network: bool = False


SEVERITIES = ("fail", "inconclusive", "named", "warn", "info")
ERROR = "error"
FLOOR = "floor_s"
# Limits that are of no quantity of one model.
NO_QUANTITIES = (ERROR, FLOOR, COMMON)
TOTAL, OWN = "total", "own"


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyRule:
    """``[[tool.compat.policy.rules]]``: what holds for some models in place of what holds for all.

    Attributes:
        models: which ones, by parts of names and tags, read like ``-k``.
        limits, severity: over those of the policy, key by key; the last rule that matches a model and has a key wins.
        gates: quantities that gate for these models as well.
        required_scenarios: scenarios that these models need a verdict in as well.
    """

    models: str
    limits: Mapping[str, float] = field(default_factory=dict)
    severity: Mapping[str, str] = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    required_scenarios: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySettings:
    """``[tool.compat.policy]``, or a file of the same keys.

    Attributes:
        accepted_mitigations: the new side runs with these.
        limits: quantity of the benchmark -> ratio new/old that is accepted, where the default is not meant;
            ``initialization`` -> likewise, of the time in which a server group gets ready;
            ``steady`` -> ratio from which the steady call fails, in place of ``latency.limit``; ``error`` -> largest
            difference of a float output over the largest golden value, in place of the tolerance of its dtype;
            ``floor_s`` -> seconds, in place of ``latency.floor_s``; ``common`` -> ratio from which what all models
            share fails the run, in place of ``latency.common_limit``.
        gates: quantities whose default limit fails a model too, see ``gating``. Steady latency always gates.
        latency: what of a model's steady call is held against its limit: ``"total"``, or ``"own"``: the part that not
            all models share.
        rollback: what an artifact of the new release that the old one does not take does: ``"warn"`` or ``"fail"``.
        severity: kind of finding -> one of ``SEVERITIES``, where the default is not meant.
        required_scenarios: a run without a verdict in each of these, for each model that is well, is never green.
        minimum_models: how many models must have been judged; ``minimum_coverage``: which share of those that were
            selected, 0 to 1.
        unused_waivers: what a waiver that nothing needed does: ``"warn"`` or ``"fail"``.
    """

    accepted_mitigations: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    latency: str = TOTAL
    rollback: str = "warn"
    severity: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[PolicyRule, ...] = ()
    required_scenarios: tuple[str, ...] = ()
    minimum_models: int = 0
    minimum_coverage: float = 0.0
    unused_waivers: str = "warn"

    @property
    def quantity_limits(self) -> dict[str, float]:
        """Quantity -> ratio from which it is told: the defaults, and ``limits`` over them."""
        return {**QUANTITY_LIMITS, **{name: limit for name, limit in self.limits.items() if name in QUANTITY_LIMITS}}

    @property
    def gating(self) -> frozenset[str]:
        """The quantities whose limit fails a model: of the table, of ``gates``, and those whose limit is written here.

        A severity of their kind that is written says what such a limit does.
        """
        default = (name for name, quantity in QUANTITIES.items() if quantity.by_default is Beyond.BLOCKS)
        written = (name for name in self.limits if name in QUANTITIES and QUANTITIES[name].kind not in self.severity)
        return frozenset((*default, *self.gates, *written))


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """``[tool.compat]`` and the command line, merged.

    Attributes:
        new_profile: serving profile of the new side where it is not that of both: what if we change the release
            and this setting at once?
        scenarios: names of ``harness/serving/scenarios.py``.
        noise_threads: intra-op thread counts with which the old release runs once more; what they change is noise.
        init_rounds: how often each initialization is repeated, in processes of their own.
        fixtures: folder, package or entry point of declarations; empty where artifacts alone are tested.
        artifacts: files, folders, patterns, golden bundles and manifests.
        runtime: which worker initializes: ``"auto"`` is the C++ worker where it can be built.
        capture_mode: of graphs, one of ``CAPTURE_MODES``.
        capture_warm_calls: made in the stream of a capture before it.
        rollback: how the rollback is tested, one of ``ROLLBACKS``: read, probed as well, or not at all.
        explain: seconds that may be spent on searching for the causes of red cells; 0: none is.
        policy_file: the file that the policy was read from, as it was typed; empty where the configuration has it.
        devices: those that ``harness/core/devices.py`` does not have, by name.
        fresh: whether nothing that an earlier run was answered will do.
    """

    old: str
    new: str
    torch_backend: str = AUTO_BACKEND
    device: str = "auto"
    jobs: int = 2
    init_threads: int = 4
    init_rounds: int = 1
    runtime: str = "auto"
    capture_mode: str = "thread_local"
    capture_warm_calls: int = WARM_CALLS
    rollback: str = "static"
    explain: float = 0.0
    migrate: bool = False
    scenarios: tuple[str, ...] = DEFAULT_SCENARIOS
    calls: int = 4
    repeats: int = 2
    noise_threads: tuple[int, ...] = ()
    fixtures: str = "fixtures/zoo"
    artifacts: tuple[str, ...] = ()
    profile: ServingProfile = field(default_factory=ServingProfile)
    new_profile: ServingProfile | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    deadlines: Deadlines = field(default_factory=Deadlines)
    latency: LatencyBudget = field(default_factory=LatencyBudget)
    policy: PolicySettings = field(default_factory=PolicySettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    computes_in: Mapping[str, str] = field(default_factory=dict)
    allow_same_torch: bool = False
    policy_file: str = ""
    devices: Mapping[str, Device] = field(default_factory=dict)
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing under test: a model in a scenario. ``id`` is stable across runs."""

    model: str
    scenario: str

    @property
    def id(self) -> str:
        """``model/scenario``."""
        return f"{self.model}/{self.scenario}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Everything a run needs to know; written to ``plan.json`` so that it can be resumed and rerun.

    Attributes:
        direction: ``"backward"`` (new is the later release) or ``"forward"`` (a rollback is checked).
        golden: folder of golden records or bundles that stand in for the old environment, or None.
        models: what is tested; ``planted_defects``: planted defects and their twins.
        groups: server group name -> models that share a process.
        scenarios: names of ``harness/serving/scenarios.py``.
        until: ``"correctness"``: the run ends before timing, whatever ``settings.latency`` says; empty: it does all.
        repeats_common: it repeats all models that a run has timed, for what they share: that is estimated, and decides.
        more_s: the benchmark goes on for so many seconds with what it left undecided; 0: it does what was planned.
        budget_s: what is not begun so many seconds after the environments stand is left out; 0: there is no such limit.
        unjudged: what lay beside the models and looks like one.
        notes: what a reader of the report must know about this plan.
    """

    settings: Settings
    old: EnvSpec | None
    new: EnvSpec
    device: str
    direction: str
    models: tuple[ModelDeclaration, ...]
    planted_defects: tuple[ModelDeclaration, ...]
    groups: Mapping[str, tuple[str, ...]]
    scenarios: tuple[str, ...] = DEFAULT_SCENARIOS
    golden: str | None = None
    until: str = ""
    repeats_common: bool = False
    more_s: float = 0.0
    budget_s: float = 0.0
    arguments: tuple[str, ...] = ()
    unjudged: tuple[UnjudgedFile, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_timed(self) -> bool:
        return self.settings.latency.budget != "off" and not self.until

    @property
    def runs_on(self) -> Device:
        return device_named(self.device, self.settings.devices)

    @property
    def profile_name(self) -> str:
        """Name of the serving profile, or ``OLD-to-NEW`` where the sides have different ones."""
        old, new = self.settings.profile, self.settings.new_profile
        return old.name if new is None else f"{old.name}-to-{new.name}"
