"""What searches find about a red cell: mitigations, bisection, reduction, rewrites, attribution, issues."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from harness.core.environment import Fingerprint
from harness.core.measurement import RatioEstimate
from harness.core.probe import FailurePlace
from harness.core.verdict import Mitigation

Place: TypeAlias = tuple[int, ...]
"""Labels of nodes from the graph's own into nested blocks, with branch or turn between: node, turn, node, ..."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One thing that a server can set otherwise.

    Attributes:
        name: by which policy accepts it; ``about``: what it does, in a few words.
        switches, env, numerics: what it adds to the serving profile, see ``ServingProfile``.
        intra_op_threads, inter_op_threads: pool sizes in place of the profile's; None leaves them.
        order: what it changes about the order of loading and calling, see ``reordered`` of ``serving.scenarios``.
        needs: what a device must have for it to mean anything, an attribute of ``Device``; blank: nothing.
        waives: the worker cannot read its effect back; what it would say then.
    """

    name: str
    about: str
    switches: Mapping[str, bool | int] = field(default_factory=dict)
    intra_op_threads: int | None = None
    inter_op_threads: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    numerics: Mapping[str, bool | str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    needs: str = ""
    waives: str = ""

    @property
    def values(self) -> Mapping[str, bool | int | str]:
        """What it sets in a profile, by the name of each: switches, numerics, variables, pools."""
        pools = {"intra_op_threads": self.intra_op_threads, "inter_op_threads": self.inter_op_threads}
        sizes = {name: size for name, size in pools.items() if size is not None}
        return {**self.switches, **self.numerics, **self.env, **sizes}


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedNode:
    """One run of one node of the inlined graph.

    Attributes:
        place: where in the run; ``address``: where in the graph, the same in all turns of a loop.
        kind: ``"aten::mul"``; ``schema``: of the overload, empty for nodes without one.
        source: ``file:line`` of the code that was exported; ``code``: that line; as far as the archive tells.
        module: path of the submodule whose code it is, e.g. ``"encoder.layers.3"``; empty at the top, or if unknown.
        inputs: each input in words, e.g. ``"float32[2, 16]"``.
        error: what it raised; ``finished``: False for a node in which the process ended.
        unaligned: the other release's graph has no such node.
    """

    place: Place
    address: Place = ()
    kind: str
    schema: str = ""
    source: str = ""
    code: str = ""
    module: str = ""
    inputs: tuple[str, ...] = ()
    error: str = ""
    finished: bool = True
    unaligned: bool = False
    unchecked: str = ""

    @property
    def operator(self) -> str:
        """Its name with the overload: ``"aten::mul.Tensor"``."""
        return self.schema.partition("(")[0] or self.kind


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFault:
    """A node that does something else in the new release.

    Attributes:
        node: the first run of it that does.
        what: in words, the findings on its outputs first; ``kinds``: theirs, e.g. ``"values"``.
        places: every run of it that does, in the order of the run.
    """

    node: TracedNode
    what: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """What the traces of one call say.

    Attributes:
        shows: whether the call, made node by node, shows the symptom as well; else it is the executor's.
        culprits: nodes that differ although they got the old release's inputs, in the order of the run.
        rounding: nodes that differ, but no more than rounding explains, where there are no culprits.
        inherited: how many further nodes differ in the new release's own run.
        confirmed: whether the call agrees once what differs is taken from the old release; None: not asked.
    """

    input_set: str
    call: int
    nodes: int = 0
    shows: bool = False
    culprits: tuple[NodeFault, ...] = ()
    rounding: tuple[NodeFault, ...] = ()
    inherited: int = 0
    confirmed: bool | None = None
    probes: tuple[int, int] = (1, 1)
    notes: tuple[str, ...] = ()


class Symptom(StrEnum):
    """What is looked for in a part of the program."""

    HANG = "hang"
    CRASH = "crash"
    ERROR = "error"
    MEMORY = "out of memory"
    VALUES = "values"
    LATENCY = "latency"
    CONVERSION = "failed conversion"


@dataclass(frozen=True, kw_only=True, slots=True)
class Culprit:
    """Nodes that show the symptom by themselves, as an archive of their own.

    Attributes:
        place: which run of which block they are in; ``keep``: their indices there.
        nodes: as the trace tells them, in the order of the run.
        artifact: of the archive, relative to the run; ``inputs`` the folder of its request.
        minimal: without any one of them the symptom was not seen; False: the search was ended before that was known.
        fails, runs: how often it showed in the new release, of how many runs.
        steady: new over old of its call, for latency.
    """

    place: Place = ()
    keep: tuple[int, ...]
    nodes: tuple[TracedNode, ...]
    artifact: str
    inputs: str
    minimal: bool = True
    fails: int = 1
    runs: int = 1
    old: str = ""
    new: str = ""
    steady: RatioEstimate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduction:
    """The search for the nodes whose optimised program shows a symptom.

    Attributes:
        nodes: how many the graph has; ``shows``: whether all of them, extracted out, still show it.
        culprits: each shows it without the others; empty where none was found.
        rest_passes: whether all the nodes without the culprits are well; None: not asked.
        tests: how many subsets were asked; ``runs``: how often the symptom was looked for in the new release.
        untestable: subsets that no archive could be made of, or whose run said neither.
        waited_s: for how long a call of a subset was waited for before it was said to hang.
    """

    symptom: Symptom
    nodes: int
    shows: bool
    culprits: tuple[Culprit, ...] = ()
    rest_passes: bool | None = None
    tests: int = 0
    runs: int = 0
    untestable: int = 0
    waited_s: float | None = None
    ended: str = ""
    notes: tuple[str, ...] = ()


Edit: TypeAlias = tuple[str, Place]
"""A rule, and the address of the node that it is applied to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleWords:
    """What a rule says of itself: what it does, and what it needs to be right."""

    what: str
    needs: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A rule that does not fit a node, and why."""

    rule: str
    address: Place
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedNode:
    """A node that the new release refuses, in the graph of one method as the old release loads it.

    ``branch`` is how many blocks one has to leave to be out of the innermost branch around it; None: in no branch.
    """

    method: str
    address: Place
    operator: str
    schema: str
    source: str
    branch: int | None = None

    @property
    def branch_address(self) -> Place | None:
        """The innermost branch around it: the labels of the If and of its block; None where there is none."""
        return None if self.branch is None else self.address[: len(self.address) - 2 * self.branch + 1]


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteReport:
    """What the old release's worker says of a rewrite.

    Attributes:
        fits: which rules fit which of the nodes that were asked for; ``refused``: which do not, with why.
        rules: all of them, in their words.
        found: nodes of the operators that were asked for: in the saved archive, in the loaded one where none was saved.
        emptied: methods of submodules that nobody calls any more and that raise now.
        done: the nodes that were rewritten, without what only a run can tell of them.
    """

    fits: tuple[Edit, ...] = ()
    refused: tuple[Refusal, ...] = ()
    rules: Mapping[str, RuleWords] = field(default_factory=dict)
    found: tuple[RefusedNode, ...] = ()
    emptied: tuple[str, ...] = ()
    done: tuple[TracedNode, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewritten:
    """One rewrite of one artifact, tried.

    Attributes:
        rule: its name, or names; ``what``: what it does, in words.
        needs: what must hold for it to be right with other requests than those that were tried; empty for nothing.
        artifact: the patched archive, relative to the run; empty unless it fixes.
        fixes: whether the new one does too, in each of ``repeats`` runs.
        steady: new (patched) over old (unpatched) of the steady call, None where not measured; ``call_s``: its seconds,
            old and new.
    """

    rule: str
    what: str
    needs: str = ""
    nodes: tuple[TracedNode, ...] = ()
    artifact: str = ""
    fixes: bool = False
    repeats: int = 0
    steady: RatioEstimate | None = None
    call_s: tuple[float, float] | None = None
    note: str = ""

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts what fixes to the front, the quickest first; what was not measured is the last of these."""
        return not self.fixes, self.steady.ratio if self.steady is not None else math.inf


class MitigationAnswer(StrEnum):
    """What the search for a mitigation came to."""

    NOTHING = "nothing to mitigate"
    FOUND = "mitigated"
    NOT_FOUND = "no mitigation found"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class MitigationResult:
    """What ``mitigate`` found about one model.

    Attributes:
        scenario: the cell in which it was looked for, e.g. ``"alone"``; ``words``: as a reader calls it.
        mitigations: every set that was tried, those that mitigate first, cheapest first.
        rewrites: of the guilty operators: those that the run knows to fix, else what was tried where no setting does.
        price_note: why there is no price, or none against the new release as it is; empty where there are both.
        measure: the command that measures prices, where none was asked for.
    """

    model: str
    old: str
    new: str
    scenario: str
    words: str
    answer: MitigationAnswer
    symptom: tuple[str, ...] = ()
    mitigations: tuple[Mitigation, ...] = ()
    rewrites: tuple[Rewritten, ...] = ()
    price_note: str = ""
    measure: str = ""
    ended: str = ""
    notes: tuple[str, ...] = ()


class BisectAnswer(StrEnum):
    """Whose doing a red cell is, as far as was found."""

    NOTHING = "nothing to find"
    OPERATOR = "operator"
    EXECUTOR = "executor"
    NODES = "nodes"
    LOADING = "loading"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reproducer:
    """A program that shows a failure by itself; ``operator`` is what it is about.

    Attributes:
        folder: relative to the run; empty where there is none: ``note`` says why.
        old, new: what it said in either release, under the settings of each.
        note: what else to know of it, such as that the settings make the failure and not the release.
    """

    operator: str
    folder: str = ""
    old: str = ""
    new: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bisection:
    """What ``bisect`` found about one model.

    Attributes:
        divergence: where the call was made node by node.
        refusals: for a model that does not load: operator, line and how it is reached, one line each.
        smallest: the archive of one node that is refused as well, where one could be made.
        mitigations: settings that take the symptom away, priced; ``rewrites``: of the guilty operators.
    """

    model: str
    old: str
    new: str
    answer: BisectAnswer
    symptom: tuple[str, ...] = ()
    divergence: Divergence | None = None
    refusals: tuple[str, ...] = ()
    reproducers: tuple[Reproducer, ...] = ()
    smallest: Culprit | None = None
    reduction: Reduction | None = None
    mitigations: tuple[Mitigation, ...] = ()
    rewrites: tuple[Rewritten, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Issue:
    """One finding, as somebody who has never heard of this project needs it told.

    Attributes:
        what: an operator or a program, as the subject of a sentence.
        does: what it does in the bad release: ``"does not return"``.
        by_settings: the old release does the same under the new one's settings: these, a line each; empty where the
            release makes it.
        fine: what is fine, as a sentence, where the good release shows it as well; else empty.
        expected: what the good release does; ``actual``: what the bad one does instead, a line each.
        schema: of the operator, where it is one; ``nodes``: of the program, in the order of the run.
        code: of the archive, as torch prints it; ``snippet``: the same as Python that needs no file and was seen to
            show it, where that can be written.
        settings: that it runs under and that are not torch's own, a line each.
        answers: (torch and settings, what the reproducer said there).
        shown: whether the reproducer shows it where it was made.
        files: (name, what it is) of the reproducer beside the program.
        remarks: what else a reader should know, a sentence each.
    """

    what: str
    does: str
    by_settings: tuple[str, ...] = ()
    fine: str = ""
    expected: str
    actual: tuple[str, ...]
    schema: str = ""
    nodes: tuple[TracedNode, ...] = ()
    code: str = ""
    snippet: str = ""
    settings: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    shown: bool = True
    mitigations: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    old: Fingerprint
    new: Fingerprint
    remarks: tuple[str, ...] = ()


class Answer(StrEnum):
    """Delta debugging's three answers to "does the symptom show?"; UNRESOLVED is never read as another one."""

    FAIL = "FAIL"
    PASS = "PASS"  # noqa: S105
    UNRESOLVED = "UNRESOLVED"


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchAnswer:
    """What one run said.

    ``outcome``: tells failures apart, e.g. ``"hang"``; empty where nobody can; ``place``: where it failed.
    """

    answer: Answer
    outcome: str = ""
    place: FailurePlace = ("", None, None)


# Asking on what could not be tested twice (a starved machine, an archive that cannot be built) is waste.
UNRESOLVED_AFTER = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What repeated runs of one thing said.

    ``differently``: runs that failed, but not as the failure that is searched for; ``outcomes``: the outcomes of all
    failures, each once, in the order in which they came.
    """

    fails: int = 0
    passes: int = 0
    untestable: int = 0
    differently: int = 0
    outcomes: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """Runs that showed the failure or did not: what a rate refers to."""
        return self.fails + self.passes

    @property
    def runs(self) -> int:
        return self.judged + self.untestable + self.differently

    def with_run(self, answer: SearchAnswer, *, same: bool) -> "Tally":
        """Return the tally with one more run; ``same``: whether a failure is the one that is searched for."""
        match answer.answer:
            case Answer.PASS:
                return replace(self, passes=self.passes + 1)
            case Answer.UNRESOLVED:
                return replace(self, untestable=self.untestable + 1)
            case Answer.FAIL:
                seen = answer.outcome in self.outcomes or not answer.outcome
                tally = self if seen else replace(self, outcomes=(*self.outcomes, answer.outcome))
                return (
                    replace(tally, fails=self.fails + 1) if same else replace(tally, differently=self.differently + 1)
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One initialization in one process of its own.

    Attributes:
        models: in the order in which they are started; not empty.
        threads: how many threads initialize them; with more threads than models, threads share a model.
        side: ``"new"`` or ``"old"``.
        concurrent: False: one after another in one thread (``threads`` is 1).
        repeat: 0, 1, ...: distinguishes repeats of the same trial; each must be a run of its own.
    """

    models: tuple[str, ...]
    threads: int
    side: str = "new"
    concurrent: bool = True
    repeat: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRates:
    """How often one trial fails in the same way in either release.

    All runs were made after the trial was chosen, so none of them is a reason why it was.

    Attributes:
        outcomes: of the failures that are counted; nothing is known of others.
        input_set: of the request that fails, of a model alone; empty where it is no request's failure.
    """

    outcomes: tuple[str, ...] = ()
    input_set: str = ""
    new: Tally = field(default_factory=Tally)
    old: Tally = field(default_factory=Tally)


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribution:
    """What a failing initialization needs in order to fail. None is always "not known".

    Attributes:
        reproduced: whether it failed again; None if it could not be tested, or the budget ended before.
        minimal_models, minimal_threads: the smallest initialization seen to fail; empty and 0 if none was.
        minimal: it was shown that no single model and no thread can be left out, but for ``unjudged``.
        unjudged: models of the minimal set without which it could not be tested.
        one_model_suffices: whether one model fails alone, in one thread or many.
        needs_concurrency: whether the minimal models pass one after another in one process.
        runs: the runs of the minimal trial in the new release: how often it fails.
        sequential: the runs of the minimal models one after another.
        rates: of the minimal trial in both releases, of the whole one where none is known; None: there is no old one.
        budget_ended: a question was left open because the budget ended; ``time_ended``: because the time did.
        left_out: models of the failing initialization that were not asked about: that they fail was known before.
        as_in: the scenario, in words, in which the same models were found already; here only they were asked again.
        beside: sick models that need none of the others; this is about a sick model that they do not explain.
        apart: the runs without those in which it did not fail again; none where that was not settled.
    """

    models: tuple[str, ...]
    threads: int
    reproduced: bool | None = None
    whole: Tally = field(default_factory=Tally)
    minimal_models: tuple[str, ...] = ()
    minimal_threads: int = 0
    minimal: bool = False
    unjudged: tuple[str, ...] = ()
    one_model_suffices: bool | None = None
    needs_concurrency: bool | None = None
    runs: Tally = field(default_factory=Tally)
    sequential: Tally = field(default_factory=Tally)
    rates: FailureRates | None = None
    trials: int = 0
    budget_ended: bool = False
    time_ended: bool = False
    left_out: tuple[str, ...] = ()
    as_in: str = ""
    beside: tuple[str, ...] = ()
    apart: Tally = field(default_factory=Tally)
