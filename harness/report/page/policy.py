"""The policy that decided a run: what it says, what it asked of the run, and which findings it made weigh otherwise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.domain.plan import ERROR, PolicyRule, PolicySettings
from harness.domain.policy import PolicyReport, Regated
from harness.domain.report import RunReport
from harness.domain.text import joined, prose, visible
from harness.report.page.shapes import LINES_SHOWN, Fact, TableLine
from harness.report.page.tones import BAD, GOOD, tone
from harness.report.text.table import table_rows
from harness.report.words.phrases import percent, scenario_words, shorten

_TEXT_LIMIT = 400
_NAME_LIMIT = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyView:
    """What stands in the section about the policy.

    Attributes:
        facts: what it says for all models; ``rules``: (models, what holds for them in its place).
        demands: what it asks of the whole run, with what there is.
        ruled: findings that weigh otherwise, with the status of their cell.
        regated: what the run had decided itself, where another policy has judged it since; empty where none has.
        changes: cells that are judged otherwise than by the run itself.
    """

    source: str
    facts: tuple[Fact, ...]
    rules: tuple[tuple[str, str], ...]
    demands: tuple[TableLine, ...]
    ruled: tuple[TableLine, ...]
    regated: str
    changes: tuple[TableLine, ...]
    notes: tuple[str, ...]


def policy_view(report: RunReport, policy: PolicyReport) -> PolicyView:
    """Return the section about the policy of a run."""
    regated = policy.regated
    return PolicyView(
        source=shorten(visible(policy.source), _NAME_LIMIT),
        facts=tuple((label, shorten(prose(text), _TEXT_LIMIT)) for label, text in _facts(policy) if text),
        rules=tuple((shorten(prose(rule.models), _NAME_LIMIT), _rule_words(rule)) for rule in policy.settings.rules),
        demands=tuple(
            TableLine(
                texts=(shorten(prose(item.what), _TEXT_LIMIT), shorten(prose(item.found), _TEXT_LIMIT)),
                status="met" if item.met else "not met",
                tone=GOOD if item.met else BAD,
            )
            for item in policy.demands
        ),
        ruled=tuple(_ruled(report))[:LINES_SHOWN],
        regated=_regated_words(regated) if regated is not None else "",
        changes=tuple(_changes(regated))[:LINES_SHOWN] if regated is not None else (),
        notes=tuple(shorten(prose(note), _TEXT_LIMIT) for note in policy.notes),
    )


def _facts(policy: PolicyReport) -> Iterator[tuple[str, str]]:
    settings = policy.settings
    steady = settings.limits.get("steady", policy.steady)
    undecided = f"an undecided one does not decide below {percent(policy.undecided)}"
    yield "steady latency", f"fails from {percent(steady)}; {undecided}"
    yield "limits", _limits_words({name: limit for name, limit in settings.limits.items() if name != "steady"})
    yield "severity", _severity_words(settings.severity)
    yield "also gate", ", ".join(settings.gates)
    yield "needs", _needs_words(settings)
    yield "rollback", "a model that cannot be rolled back fails the run" if settings.rollback == "fail" else ""
    yield "accepts", ", ".join(settings.accepted_mitigations)
    yield "waivers", "one that nothing needs fails its cell" if settings.unused_waivers == "fail" else ""


def _needs_words(settings: PolicySettings) -> str:
    needs = [f"a verdict in {scenario_words(name)}" for name in settings.required_scenarios]
    needs += [f"{settings.minimum_models} models judged"] if settings.minimum_models else []
    needs += [f"{100 * settings.minimum_coverage:.3g} % of those selected judged"] if settings.minimum_coverage else []
    return ", ".join(needs)


def _limits_words(limits: Mapping[str, float]) -> str:
    said = (f"{name} {f'{limit:.3g}' if name == ERROR else percent(limit)}" for name, limit in sorted(limits.items()))
    return ", ".join(said)


def _severity_words(severity: Mapping[str, str]) -> str:
    return ", ".join(f"{kind} counts as {weight}" for kind, weight in sorted(severity.items()))


def _rule_words(rule: PolicyRule) -> str:
    needs = ", ".join(f"a verdict in {scenario_words(name)}" for name in rule.required_scenarios)
    gates = f"{', '.join(rule.gates)} gate" if rule.gates else ""
    parts = (_limits_words(rule.limits), _severity_words(rule.severity), gates, needs)
    return shorten(prose(joined(*parts)), _TEXT_LIMIT)


def _ruled(report: RunReport) -> Iterator[TableLine]:
    """Yield what the policy made of findings, in the order of the table."""
    for row in table_rows(report):
        for cell in row.verdict.cells if row.verdict is not None else ():
            for item in cell.ruled:
                texts = (
                    shorten(visible(cell.model), _NAME_LIMIT),
                    visible(scenario_words(cell.scenario)),
                    f"{visible(item.kind)}: {item.was} → {item.now}",
                    shorten(prose(joined(item.by, item.why)), _TEXT_LIMIT),
                )
                yield TableLine(texts=texts, status=cell.status.value, tone=tone(cell.status))


def _regated_words(regated: Regated) -> str:
    own = f"The run itself had decided {regated.decision.value} (exit code {regated.exit_code}): {regated.reason}"
    return shorten(prose(f"{own}. {regated.why}"), 2 * _TEXT_LIMIT)


def _changes(regated: Regated) -> Iterator[TableLine]:
    for item in regated.changes:
        texts = (shorten(visible(item.cell), 2 * _NAME_LIMIT), item.was.value, shorten(prose(item.why), _TEXT_LIMIT))
        yield TableLine(texts=texts, status=item.now.value, tone=tone(item.now))
