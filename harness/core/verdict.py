"""Opinions: findings, verdicts, causes, waivers, mitigations and the decision. Formed in ``harness.verdict``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from harness.core.measurement import RatioEstimate
from harness.core.outcome import Decision, Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Standstill:
    """Where a process hangs or crashes.

    Attributes:
        reading: name of what its stacks are known to mean (``checks.hang.readings``), and that in a few words in
            ``title``; both empty where they resemble nothing known.
        is_busy: whether it was proven to compute.
        stacks: of the threads that tell most, without what is on every stack: names of functions, the innermost first.
    """

    reading: str = ""
    title: str = ""
    is_busy: bool = False
    stacks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing worth telling about one cell.

    Attributes:
        kind: from the open list in ``harness/core/findings.py``, e.g. ``"values"``, ``"hang"``.
        where: input set, call and path, e.g. ``"example call 1 output[0]"``; or the phase.
        rule: for numbers, the rule of the chain that decided, e.g. ``"scaled tolerance"``.
        detail: a few facts for machines.
        quantity: of a time or of memory which it is, as in ``core.quantities``; ``limit``: the ratio new/old that was
            accepted when it was made, None where its maker did not say.
        subject: what it is about where the kind does not say that: an operator, or several with commas; what was not
            measured.
        error: what torch or the model said, its type first; empty where nothing was raised.
        standstill: of a hang or crash where it is, as far as somebody looked.
        advice: what to do about it, where its kind says that; empty where only a search or its owner can tell.
        settings: those that differ between the sides and may be why: name -> what they are, in words.
        evidence: path of a file in the run directory, or empty.
        story: (label, text) lines that explain it: threads, stacks, what they mean.
        size: how large it is, in the measure of its kind (``MEASURES`` in ``harness/core/findings.py``): error over
            the largest golden value, or the ratio new/old; None where the kind has no size, or it was not measured.
    """

    kind: str
    message: str
    where: str = ""
    rule: str = ""
    detail: Mapping[str, str] = field(default_factory=dict)
    evidence: str = ""
    story: tuple[tuple[str, str], ...] = ()
    size: float | None = None
    quantity: str = ""
    limit: float | None = None
    subject: str = ""
    error: str = ""
    advice: str = ""
    standstill: Standstill | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Waived:
    """The waiver that let a cell be XFAIL, as the report shows it.

    Attributes:
        kinds: of findings that it covers in this cell.
        expires: last day that it counts, ISO 8601.
        issue: a link, or empty; ``bound``: the largest size that it covers, None where any.
    """

    kinds: tuple[str, ...]
    owner: str
    reason: str
    expires: str
    issue: str = ""
    bound: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruled:
    """What the policy made of one kind of finding in one cell.

    Attributes:
        was: its severity without the policy, one of ``SEVERITIES`` in ``harness/core/plan.py``; ``now``: with it.
        by: the key that says so and where it stands, e.g. ``severity.values of policy.toml``.
        why: of a limit, both numbers; empty for a severity.
    """

    kind: str
    was: str
    now: str
    by: str
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellVerdict:
    """The status of one cell with everything that led to it.

    ``decides`` is False for a status that is shown and does not decide the run: a steady latency that could
    not be decided while the upper bound of its interval stays under the limit of DESIGN.md (1.25), and any latency of
    guessed inputs.

    ``judged`` is its status before the policy's severities, the waivers and the baseline (``broken_since``), where
    these made another one of it; None where they did not; ``judged_note`` is its note before them, likewise.
    ``waived`` are the waivers that made it XFAIL; ``ruled`` is what the policy made of findings.

    ``rounds`` are the initializations of the new release that say something, ``failed_rounds`` those in which this
    model hung, crashed or raised; both 0 where nothing was repeated.
    """

    cell: str
    model: str
    scenario: str
    status: Status
    findings: tuple[Finding, ...] = ()
    note: str = ""
    decides: bool = True
    judged: Status | None = None
    waived: tuple[Waived, ...] = ()
    rounds: int = 0
    failed_rounds: int = 0
    ruled: tuple[Ruled, ...] = ()
    judged_note: str | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(finding.kind for finding in self.findings))

    @property
    def own_note(self) -> str:
        return self.note if self.judged_note is None else self.judged_note


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What one quantity costs under a mitigation: to the old release, and to the new one without; None: not known."""

    quantity: str
    to_old: RatioEstimate | None = None
    to_new: RatioEstimate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Mitigation:
    """Settings that were tried on a red cell.

    Attributes:
        name: e.g. ``"profiling off"``, of several ``"A + B"``; ``settings``: the name of each, as in
            ``harness/serving/settings/table.py``; ``switches``: JIT switches that they set.
        mitigates: applied and read back, the symptom gone in every repeat, outputs equal to the golden.
        price: the steady call, new (under them) over old; None where not measured; ``call_s``: its seconds, old and
            new. ``prices``: of every quantity that
            was measured, in the order in which they are shown; empty where only the steady call was.
        breaks: other models of the server group that fail under them.
        note: why they do not mitigate, or what a reader should know.
        untestable: that could not be told: not there in this release, without effect, no time left, or the machine was
            too busy.
        unaffected: what is wrong is the same as without them: every answer has the same bits, or a slow call is not
            quicker for sure.
        minimal: no smaller set of them mitigates; False where a smaller one could not be tested.
        repeats: how many clean runs say so.
        paste: where ("python", "c++", "triton", "environment") -> the lines to paste; absent where there is no way.
    """

    cell: str
    model: str
    name: str
    settings: tuple[str, ...] = ()
    switches: Mapping[str, bool | int] = field(default_factory=dict)
    mitigates: bool
    price: RatioEstimate | None = None
    call_s: tuple[float, float] | None = None
    prices: tuple[Price, ...] = ()
    breaks: tuple[str, ...] = ()
    note: str = ""
    untestable: bool = False
    unaffected: bool = False
    minimal: bool = True
    repeats: int = 1
    paste: Mapping[str, str] = field(default_factory=dict)

    def price_of(self, quantity: str) -> Price | None:
        """Return what one quantity costs, None where it was not measured."""
        return next((price for price in self.prices if price.quantity == quantity), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """What was seen to take a failure away, and what it costs.

    Attributes:
        name: of settings, e.g. ``"profiling off"``, or of the rules of a rewrite; ``rewrites``: which of the two. The
            old release was seen to answer alike with a rewrite.
        what: what a rewrite does; ``needs``: what must hold for it to be right with other requests than those tried.
        price: the steady call, new with it over old without; None where not measured; ``call_s``: seconds of a call
            then, in the old release without it and in the new one with it.
        breaks: other models that fail with it.
        run: the earlier run that has verified it; empty where it is this one, or a search about it.
    """

    name: str
    rewrites: bool = False
    what: str = ""
    needs: str = ""
    price: RatioEstimate | None = None
    call_s: tuple[float, float] | None = None
    breaks: tuple[str, ...] = ()
    run: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """What an artifact says of itself that a search has rewritten from another one.

    Attributes:
        origin: name of that other one, empty in archives of earlier versions; ``from_digest``: sha256 of its file.
        old: the release whose answers the rewrite gives, ``new``: the one that it was verified in, as a reader calls
            them; ``new`` is empty, and ``fix`` has no price, where the archive alone speaks.
    """

    origin: str
    from_digest: str
    old: str
    fix: Fix
    new: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowVerdict:
    """One model: its cells, its worst status, and the reason in words where that is not PASS."""

    model: str
    status: Status
    cells: tuple[CellVerdict, ...]
    reason: str = ""
    mitigations: tuple[Mitigation, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlantedDefectResult:
    """Whether a planted defect was reported (or a healthy twin left alone)."""

    name: str
    expected: str
    reported: tuple[str, ...]
    caught: bool
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """The whole run: the decision, why, and what stands behind it.

    ``mitigation`` is what is to be set and its price: ``"profiling off, latency +1.0 % [-0.2, +2.2]"``; empty
    unless the decision is OK_WITH_MITIGATION. ``vacuous`` is why the run cannot be green whatever its rows say, or
    empty; ``interrupted``: during what a signal ended it, after which nothing is known; empty where none did;
    ``left_out``: what it was told to leave out, which a green decision says; ``of_cell``: it repeated one cell,
    so there are no planted defects and it says nothing about an upgrade. ``findings`` are of the run and of no single
    cell: what the release costs all models. ``counts`` is how many models came to what, in the words of every format;
    ``exceeded`` what is surely beyond a limit and does not block, in short, the furthest first.
    """

    decision: Decision
    reason: str
    exit_code: int
    rows: tuple[RowVerdict, ...]
    planted_defects: tuple[PlantedDefectResult, ...] = ()
    accepted_mitigations: tuple[str, ...] = ()
    mitigation: str = ""
    vacuous: str = ""
    interrupted: str = ""
    left_out: str = ""
    of_cell: bool = False
    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    exceeded: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[CellVerdict, ...]:
        return tuple(cell for row in self.rows for cell in row.cells)


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiver:
    """One entry of ``golden/waivers.toml``: findings of ``kind`` on ``model`` are known until ``expires``.

    Attributes:
        issue: a link to where it is followed up, or empty.
        bound: the largest size (``Finding.size``) that it covers; None where any.
        about: what fails, as ``subject_of`` of ``harness/verdict/causes.py`` has it, e.g. ``"aten::foo"``; empty where
            any of its kind.
        old, new: specifiers (PEP 440) of the torch releases that it is for, e.g. ``"~=2.6.0"``; empty where any.
        scenario, device, profile: those that it is for; each empty where any.
    """

    model: str
    kind: str
    reason: str
    owner: str
    expires: date
    issue: str = ""
    bound: float | None = None
    about: str = ""
    old: str = ""
    new: str = ""
    scenario: str = ""
    device: str = ""
    profile: str = ""


class WaiverState(StrEnum):
    """What a waiver did in a run."""

    USED = "used"
    EXCEEDED = "exceeded"
    EXPIRED = "expired"
    OTHER_PAIR = "other pair"
    UNUSED = "unused"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverUse:
    """A waiver and what it did in a run.

    Attributes:
        cells: in which a finding of its kind was; those that it let be XFAIL, or would have.
        size: of the largest such finding; None where nothing was found, or it has no size.
        broad: what makes it cover more than it need, in words.
        days_left: until its last day; negative once it is over.
    """

    waiver: Waiver
    state: WaiverState
    cells: tuple[str, ...] = ()
    size: float | None = None
    broad: tuple[str, ...] = ()
    days_left: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Beyond:
    """A value beyond what is allowed: two ratios new/old, or two differences of outputs."""

    value: float
    allowed: float
    is_ratio: bool

    @property
    def factor(self) -> float:
        """How many times what is allowed: +6 % of +3 % is 2.0."""
        return (self.value - self.is_ratio) / (self.allowed - self.is_ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """One thing that went wrong, or could not be decided, with every cell that it shows in.

    Attributes:
        id: stable over runs of one pair and short enough to be typed, e.g. ``"operator-aten::foo"``; what
            ``rerun RUN --cause ID`` and a waiver name.
        kind: from the open list ``KINDS`` in ``harness/verdict/causes.py``, e.g. ``"operator"``, ``"slowdown"``.
        status: the worst of its cells' ones; PASS where something is over a limit that does not block.
        title: what happened, in at most 80 characters, e.g. ``"aten::foo is unknown to torch 2.6.0"``.
        cells: ids, the clearest first (the largest excess over its limit, the surest verdict); ``models``: of these
            cells, each once, in the same order.
        excess: how far the worst of them is over its limit, as a factor of the limit: 2.0 is twice as much as is
            allowed; None where there is no limit to exceed: a hang, a missing operator. ``beyond``: what that is
            measured of.
        evidence: (label, text) lines of the clearest cell, in reading order.
        fix: what takes it away, with its cost, in one sentence; empty where nothing is known.
        fix_verified: whether the fix was tried and answers as the golden does; else it is advice.
        deploy: what a verified fix puts into production: (where, line to paste) of a setting, (model, patched archive,
            relative to the run where it lies in its folder) of a rewrite.
        remedy: a verified fix as data, with the highest price that was measured in its cells; None without one.
        commands: (label, command) pairs to repeat and to search it, whole, to be copied.
    """

    id: str
    kind: str
    status: Status
    title: str
    cells: tuple[str, ...]
    models: tuple[str, ...]
    excess: float | None = None
    beyond: Beyond | None = None
    evidence: tuple[tuple[str, str], ...] = ()
    fix: str = ""
    fix_verified: bool = False
    deploy: tuple[tuple[str, str], ...] = ()
    remedy: Fix | None = None
    commands: tuple[tuple[str, str], ...] = ()
