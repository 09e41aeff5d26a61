"""What a policy requires of a whole run, and whether the run meets it: a green run must have tested enough."""

from collections.abc import Collection, Mapping, Sequence

from harness.core.outcome import Status
from harness.core.plan import PolicySettings
from harness.core.policy import Demand, ModelPolicy
from harness.core.text import first_few
from harness.core.verdict import RowVerdict
from harness.serving.scenarios import TIMING
from harness.verdict.waivers.uses import HIDES

# The run says of these whether the upgrade changes them. What fails in both releases and what nobody could test says
# nothing.
JUDGED = (Status.PASS, Status.FAIL, Status.XFAIL, Status.XPASS)
WELL = (Status.PASS, Status.XFAIL)
# A cell of a required scenario. A latency that stays open was measured, and is reported as open.
TESTED = (*JUDGED, Status.SAME_FAIL)
NAMED = 3


def demands(
    settings: PolicySettings,
    rows: Sequence[RowVerdict],
    policies: Mapping[str, ModelPolicy],
    *,
    untimed: Collection[str] = (),
    over_budget: Collection[str] = (),
) -> tuple[Demand, ...]:
    """Return what the policy asks of the run, each with what there is.

    ``policies``: model -> what the policy says of it; ``untimed``: models that say that nobody is to time them; timing
    is not required of them; ``over_budget``: scenarios of which the budget of the run left something out.
    """
    judged = [row.model for row in rows if row.status in JUDGED]
    demanded = []
    if settings.minimum_models:
        demanded.append(
            Demand(
                what=f"minimum_models = {settings.minimum_models}",
                found=f"{len(judged)} judged",
                met=len(judged) >= settings.minimum_models,
            )
        )
    if settings.minimum_coverage:
        share = len(judged) / len(rows) if rows else 0.0
        demanded.append(
            Demand(
                what=f"minimum_coverage = {settings.minimum_coverage:g}",
                found=f"{len(judged)} of {len(rows)} models judged{_named(_unjudged(rows))}",
                met=share >= settings.minimum_coverage,
            )
        )
    return (*demanded, *_scenarios(rows, policies, untimed, over_budget))


def unmet(demanded: Sequence[Demand]) -> str:
    return "; ".join(f"{item.what}: {item.found}" for item in demanded if not item.met)


def _scenarios(
    rows: Sequence[RowVerdict],
    policies: Mapping[str, ModelPolicy],
    untimed: Collection[str],
    over_budget: Collection[str],
) -> list[Demand]:
    """Return a demand per scenario: each model that is well, and that it is required of, was tested in it.

    Not asked of a model whose waived failure alone lets nobody test it any further.
    """
    asked: dict[str, list[RowVerdict]] = {}
    for row in rows:
        for name in policies[row.model].settings.required_scenarios:
            concerned = asked.setdefault(name, [])
            concerned += [] if name == TIMING and row.model in untimed else [row]
    demanded = []
    for name, concerned in asked.items():
        well = [row for row in concerned if row.status in WELL]
        missing = [row.model for row in well if not _was_tested(row, name) and not _waived_before_an_answer(row)]
        tested = [row for row in concerned if _was_tested(row, name)]
        others = [row.model for row in concerned if not _was_tested(row, name) and row.model not in missing]
        words = f"{len(tested)} of {len(concerned)} models tested in it{_named(missing)}"
        words += " (left out by --budget)" if missing and name in over_budget else ""
        if others:
            lead, do = "nor" if missing else "not", "does" if len(others) == 1 else "do"
            words += f", {lead} {first_few(others, NAMED)}, which {do} not pass without it"
        demanded.append(Demand(what=f"required scenario {name}", found=words, met=bool(tested) and not missing))
    return demanded


def _was_tested(row: RowVerdict, scenario: str) -> bool:
    cells = [cell for cell in row.cells if cell.scenario == scenario]
    return any(
        cell.status in TESTED or any(finding.kind == "latency_undecided" for finding in cell.findings) for cell in cells
    )


def _waived_before_an_answer(row: RowVerdict) -> bool:
    """Whether a waiver covers why the model does not answer alone: then it takes part in no server group.

    One that fails so now and then and takes part in any scenario could have been tested in all.
    """
    if any(cell.scenario != "alone" for cell in row.cells):
        return False
    return any(kind in HIDES for cell in row.cells for item in cell.waived for kind in item.kinds)


def _unjudged(rows: Sequence[RowVerdict]) -> list[str]:
    return [row.model for row in rows if row.status not in JUDGED]


def _named(models: Sequence[str]) -> str:
    return f", not {first_few(models, NAMED)}" if models else ""
