"""Tests one artifact in one release: probes it there, compares with its golden outputs, and says good or bad.

A symptom may show only sometimes. The new end is asked until it has shown it twice; from that follows how often another
release must come through before it counts as good (``harness/search/repeated.py``). One failure is proof.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from harness.correctness.compare import compare_alone
from harness.decision.cells import judge_alone
from harness.domain.diagnosis import Said, SearchAnswer
from harness.domain.first_bad import ReleaseAnswer, ReleaseResult
from harness.domain.verdict import CellVerdict
from harness.probing.alone import deadline_of
from harness.probing.facts import Answered, Effects
from harness.releases.judging import answer_of, failing_kinds, reason_of
from harness.releases.matrix_judging import direction_between
from harness.releases.matrix_rows import Release, Row
from harness.search.budget import Budget
from harness.search.repeated import UNTESTABLE_AFTER, Repeated, repeats_needed

# The new end is asked until it has failed so often, or so often at all: a symptom of 30 % shows in 99 of 100 cases.
FAILURES_OF_THE_END = 2
RUNS_OF_THE_END = 12
# The hang was proven with the whole deadline; a repeat only has to be distinguished from a run that ends.
HANG_FLOOR_S = 6.0
BUDGET = 10_000

SAID = {Said.PASSES: ReleaseAnswer.GOOD, Said.FAILS: ReleaseAnswer.BAD, Said.UNTESTABLE: ReleaseAnswer.UNTESTABLE}


@dataclass(kw_only=True)
class Prober:
    """The artifact of one row, asked of one release after another.

    Attributes:
        model: its name.
        symptom: kinds of the new end's findings; empty until that was asked.
        clean: how many runs must come through before a release is good.
    """

    row: Row
    model: str
    effects: Effects
    symptom: tuple[str, ...] = ()
    clean: int = 1
    releases: dict[str, Release] = field(default_factory=dict)
    repeated: Repeated[str] = field(init=False)
    last: dict[str, tuple[CellVerdict, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repeated = Repeated(self._run, Budget(BUDGET))

    def ask_end(self, release: Release) -> ReleaseResult:
        """Return what the new end says; what it shows is the symptom from now on."""
        self.releases[release.name] = release
        name = release.name
        while not self._end_is_known(name):
            self.repeated.run(name)
        tally = self.repeated.tally(name)
        if tally.fails:
            self.repeated.only_failures_like(name)
            self.symptom = tuple(self.repeated.same)
            self.clean = repeats_needed(fails=tally.fails, judged=tally.judged)
            return self._asked(name, Said.FAILS)
        return self._asked(name, Said.PASSES if tally.passes >= RUNS_OF_THE_END else Said.UNTESTABLE)

    def ask(self, release: Release) -> ReleaseResult:
        """Return what a release between the ends says."""
        self.releases[release.name] = release
        return self._asked(release.name, self.repeated.settle(release.name, self.clean))

    def _end_is_known(self, name: str) -> bool:
        tally = self.repeated.tally(name)
        if not tally.fails and tally.untestable >= UNTESTABLE_AFTER:
            return True
        return tally.fails >= FAILURES_OF_THE_END or tally.runs >= RUNS_OF_THE_END

    def _asked(self, name: str, said: Said) -> ReleaseResult:
        verdict, evidence = self.last[name]
        tally = self.repeated.tally(name)
        kinds = failing_kinds(verdict.findings)
        reason = "" if said is Said.PASSES else reason_of(verdict)
        if said is Said.FAILS and tally.passes:
            reason = f"in {tally.fails} of {tally.judged} runs: {reason}"
        if said is Said.UNTESTABLE and kinds and self.symptom:
            reason = f"another failure ({kinds[0]}): {reason}"
        kind = next((kind for kind in kinds if kind in self.symptom), kinds[0] if kinds else "")
        return ReleaseResult(
            release=name,
            answer=SAID[said],
            kind=kind if said is Said.FAILS else "",
            reason=reason,
            runs=tally.runs,
            evidence=evidence,
        )

    def _run(self, name: str, repeat: int) -> SearchAnswer:
        verdict, evidence = self._probe(self.releases[name], repeat)
        answer = answer_of(verdict, self.symptom)
        if answer.said is not Said.PASSES or name not in self.last:
            self.last[name] = verdict, evidence
        return answer

    def _probe(self, release: Release, repeat: int) -> tuple[CellVerdict, str]:
        """Return the verdict on one run, and where it left its folder."""
        facts, effects = self._facts(release), self.effects
        baseline = facts.baselines[self.model]
        declaration = facts.exports[self.model].declaration
        deadline = deadline_of(declaration, facts)
        artifact = facts.artifact(self.model)
        probe = effects.runner(facts.requests.run(release.key, [artifact], deadline, repeat=repeat))
        evidence = effects.evidence(probe.directory)
        direction = direction_between(self.row.release.fingerprint.torch, release.fingerprint.torch)
        verdict = judge_alone(
            replace(facts.plan.cell(self.model, "alone"), direction=direction).id,
            old=baseline.results,
            new=probe.models[0],
            comparison=compare_alone(self.model, probe, baseline, facts),
            old_name=self.row.release.environment.name,
            new_name=release.environment.name,
            exit_detail=probe.exit_detail,
            evidence=evidence,
            seen=probe.evidence,
        )
        return verdict, evidence

    def _facts(self, release: Release) -> Answered:
        facts = self.row.facts
        facts = replace(facts, fingerprints={**facts.fingerprints, release.key: release.fingerprint})
        if not _hangs(self.symptom) and not self._hung(release.name):
            return facts
        settings = facts.plan.settings
        floor_s = min(HANG_FLOOR_S, settings.deadlines.floor_s)
        shorter = replace(settings, deadlines=replace(settings.deadlines, floor_s=floor_s))
        return replace(facts, plan=replace(facts.plan, settings=shorter))

    def _hung(self, name: str) -> bool:
        return name in self.last and _hangs(failing_kinds(self.last[name][0].findings))


def _hangs(kinds: Collection[str]) -> bool:
    return "hang" in kinds
