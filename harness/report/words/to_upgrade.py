"""What is to be done so that a blocked upgrade is none, a step per cause; every format shows the same steps."""

from typing import NamedTuple

from harness.core.measurement import limit_words
from harness.core.outcome import Decision, Status
from harness.core.prediction import RollbackAnswer
from harness.core.quantities import STEADY
from harness.core.report import RunReport
from harness.core.text import counted, first_few, joined
from harness.core.verdict import Cause, Fix
from harness.report.words.phrases import path_in_run, shorten
from harness.verdict.commands import more_command
from harness.verdict.mitigation import conditions, price_words, provenance_words

NAMED = 2
BLOCKING = (Status.FAIL, Status.XPASS)
OF_A_FINDING = ("error", "alone")
"""Kinds of causes whose advice, where they have one, is that of what was found."""
NOT_GREEN = (*BLOCKING, Status.INCONCLUSIVE)
BELOW = "the file below"
"""What a step calls its first ``path``, where that stands on a line of its own."""


NOT_HERE = " (not in this copy; the bisect command of its cause writes it)"


class Step(NamedTuple):
    """What to do for the models ``whose``: ``text`` has ``BELOW`` where it means ``path``, an archive, or empty.

    ``commands``: (label, command) of what the text speaks of.
    """

    whose: str
    text: str
    path: str = ""
    commands: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> str:
        """The step in one text, without whose it is."""
        return self.text.replace(BELOW, self.path)


def steps(report: RunReport, where: str) -> tuple[Step, ...]:
    """Return a step per cause that keeps a blocked run from green, in their order.

    ``where``: the folder of the run as its reader types it.
    """
    if report.judgement.decision not in (Decision.BLOCKED, Decision.OK_WITH_MITIGATION):
        return ()
    return tuple(_step(report, cause, where) for cause in report.causes if cause.status in NOT_GREEN)


def expectation(report: RunReport) -> str:
    """Return what comes of all fixes; empty where a cause that blocks has none, or more than causes is in the way."""
    causes = [cause for cause in report.causes if cause.status in BLOCKING]
    judgement, rollback = report.judgement, report.rollback
    other = judgement.of_cell or judgement.vacuous or any(not demand.met for demand in report.policy.demands)
    shut = rollback is not None and rollback.gates and rollback.answer is not RollbackAnswer.YES
    if judgement.decision is not Decision.BLOCKED or not causes or other or shut:
        return ""
    remedies = [cause.remedy for cause in causes if cause.remedy is not None and not cause.remedy.breaks]
    if len(remedies) < len(causes):
        return ""
    if open_ := _open(report):
        still = f"{Decision.INCONCLUSIVE.value}, for {first_few(open_, NAMED)}"
        return f"Not tested yet: with these fixes it is still {still}."
    files = all(remedy.rewrites for remedy in remedies)
    again = f"Not tested yet: run it again with {'these files' if files else 'these fixes'}."
    if any(is_dear(remedy, report) for remedy in remedies if remedy.rewrites):
        return f"{again} The gate will then pass, and will not see the price: decide on that first."
    return f"{again} {(Decision.UPGRADE_OK if files else Decision.OK_WITH_MITIGATION).value} is expected."


def upgradable_after(report: RunReport) -> str:
    """Return what all steps come to: ``upgradable after 2 file swaps and 1 setting``.

    Empty as ``expectation`` is, and where something stays undecided.
    """
    if not expectation(report) or _open(report):
        return ""
    remedies = [(cause, cause.remedy) for cause in report.causes if cause.status in BLOCKING and cause.remedy]
    files = sum(max(1, len(cause.deploy)) for cause, fix in remedies if fix.rewrites)
    settings = len({fix.name for _, fix in remedies if not fix.rewrites})
    what = [counted(number, noun) for number, noun in ((files, "file swap"), (settings, "setting")) if number]
    return f"upgradable after {' and '.join(what)}{dear_words(report)}"


def _open(report: RunReport) -> list[str]:
    causes = [cause for cause in report.causes if cause.status is Status.INCONCLUSIVE]
    return list(dict.fromkeys(model for cause in causes for model in cause.models))


def dear_words(report: RunReport) -> str:
    """Return how many fixes of causes cost more than the limit, as the end of a sentence about them; or nothing."""
    fixes = [cause.remedy for cause in report.causes if cause.status in BLOCKING and cause.remedy is not None]
    dear = sum(is_dear(fix, report) for fix in fixes)
    how_many = "" if len(fixes) == 1 else ", all" if dear == len(fixes) else f", {dear} of them"
    return f"{how_many} beyond the latency limit" if dear else ""


def rewritten_files(report: RunReport) -> tuple[str, ...]:
    """Return what each file is that a search has rewritten; ``price_command`` measures its price."""
    known = [(model.model, model.provenance) for model in report.models if model.provenance is not None]
    return tuple(f"{name}: its file is {provenance_words(provenance)}" for name, provenance in known)


def is_dear(fix: Fix, report: RunReport) -> bool:
    """Whether a fix surely costs more than the limit of the steady call lets a release cost."""
    return fix.price is not None and fix.price.low > _limit(report)


def _limit(report: RunReport) -> float:
    return report.limits.get(STEADY, report.policy.steady)


def _step(report: RunReport, cause: Cause, where: str) -> Step:
    owners = owners_of(report, cause)
    models = cause.models[0] if len(cause.models) == 1 else counted(len(cause.models), "model")
    few = f" ({first_few(cause.models, NAMED)})" if len(cause.models) > 1 else ""
    whose = f"{shorten(models, 60)}{few}{f', owner {joint}' if (joint := ', '.join(owners)) else ''}"
    if cause.status is Status.XPASS:
        prune = tuple(item for item in cause.commands if item[0] == "prune")
        return Step(whose, "it is mended: take its waiver out, and commit that", commands=prune)
    if cause.status is Status.INCONCLUSIVE:
        what = next((text for label, text in cause.evidence if label == "what"), cause.title)
        more = more_command(report) if cause.kind == "undecided" else ""
        return Step(whose, joined(shorten(what, 400), cause.fix), commands=(("go on", more),) if more else ())
    fix = cause.remedy
    dear = fix is not None and is_dear(fix, report)
    waive = tuple(item for item in cause.commands if item[0] == "accept" and (fix is None or dear))
    accept = ", or accept the difference" if waive else ""
    if fix is None:
        return Step(whose, f"{_ask(report, cause)}{accept}", commands=waive)
    price = f"{price_words(fix)}{f' (limit {limit_words(_limit(report))})' if dear else ''}"
    if not fix.rewrites:
        return Step(whose, joined(f"set {fix.name}, {price}{accept}", conditions(fix)), commands=waive)
    more = f" and {counted(len(cause.deploy) - 1, 'more file')} of its cause" if len(cause.deploy) > 1 else ""
    path = path_in_run(where, cause.deploy[0][1]) if cause.deploy else ""
    deploy = f"deploy {BELOW}{more}" if path else f"deploy its rewrite {fix.name}{NOT_HERE}"
    return Step(whose, joined(f"{deploy}, {price}{accept}", conditions(fix)), path, waive)


def owners_of(report: RunReport, cause: Cause) -> tuple[str, ...]:
    """Return who answers for the models of a cause, and for the waivers of its cells."""
    of_models = [item.owner for item in report.models if item.model in cause.models]
    of_waivers = [use.waiver.owner for use in report.waivers if {*use.cells} & {*cause.cells}]
    return tuple(dict.fromkeys(filter(None, (*of_models, *of_waivers))))


def _ask(report: RunReport, cause: Cause) -> str:
    """Return what to do about a cause that nothing was seen to take away."""
    search = (
        "; the bisect command of its cause looks for one"
        if any(label == "bisect" for label, _ in cause.commands)
        else ""
    )
    if cause.fix and cause.kind in OF_A_FINDING:
        return cause.fix
    if cause.fix:
        return f"no verified fix: {cause.fix}{search}"
    if search:
        return f"no fix found{search}"
    if cause.kind in ("slowdown", "limit"):
        return "no fix found: accept its time by a limit of the policy, or ask its owner for a faster model"
    return f"no fix found: ask its owner for an export by {report.new.name}"
