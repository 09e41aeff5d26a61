"""A document of every kind of result, by name: as most readers meet it, large, and with hostile texts."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.core.atlas import Kind, OperatorChange, OperatorChanges
from harness.core.archive import ArchiveProblem
from harness.core.diagnosis import BisectAnswer, Bisection
from harness.core.golden import Packing
from harness.core.prediction import InspectedFile, Inspection
from harness.core.report import RunReport
from harness.report.document import Document
from harness.report.documents.attach import attach_document
from harness.report.documents.diagnosis import bisection_document, mitigation_document
from harness.report.documents.doctor import checkup_document
from harness.report.documents.first_bad import first_bad_document
from harness.report.documents.fleet import fleet_document, kept_document, plan_document, shard_document
from harness.report.documents.golden import left_over_document, proposed_document, review_document, status_document
from harness.report.documents.inspection import inspection_document
from harness.report.documents.interference import interference_document
from harness.report.documents.matrix import matrix_document
from harness.report.documents.migration import migration_document
from harness.report.documents.cache import cache_document, cleaning_document
from harness.report.documents.operators import operators_document
from harness.report.documents.packing import packing_document
from harness.report.documents.run import run_document
from harness.report.documents.shadow import shadow_document
from harness.report.documents.waivers import waivers_document
from tests.unit.builders import (
    attached,
    caches,
    fleets,
    golden_reviews,
    interferences,
    matrices,
    migrations,
    searches,
    shadows,
)
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.pages import governed, hanging
from tests.unit.builders.reports import HOSTILE_NAMES, REPORTS

MANY = tuple(f"model_{at:04}" for at in range(90))
TIMES = ((1, 9000.0), (4, 2400.0))


def _run(made: Callable[[], RunReport]) -> Callable[[], Document]:
    return lambda: run_document(made())


def _bisection(model: str = "m") -> Document:
    found = Bisection(
        model=model,
        old="torch 2.1.2",
        new="torch 2.6.0",
        answer=BisectAnswer.OPERATOR,
        symptom=(f"output[0] of {model}: off by 0.002",),
        divergence=searches.DIVERGENCE,
        reduction=searches.REDUCTION,
        rewrites=(searches.REWRITTEN, replace(searches.REWRITTEN, rule="other", fixes=False, note="it still hangs")),
        reproducers=(searches.MADE,),
        mitigations=(searches.mitigated("fuser off"), *searches.IN_VAIN),
        notes=("the list is old",),
    )
    return bisection_document(found, directory="reports/x")


def _mitigating(name: str = "") -> Document:
    found = searches.mitigating(searches.mitigated("profiling off", "fuser off", note=name), *searches.IN_VAIN)
    return mitigation_document(replace(found, model=name or found.model), directory="reports/x")


def _hostile_inspection() -> Document:
    files = tuple(
        InspectedFile(path=name, failure=ArchiveProblem(kind="damaged", text=name), advice=name, verdicts={})
        for name in HOSTILE_NAMES
    )
    return inspection_document(Inspection(releases={"new": HOSTILE_NAMES[1]}, files=files))


def _packing(*names: str) -> Document:
    rows = tuple(replace(searches.LOST, model=name, why=name) for name in names)
    return packing_document(Packing(producer=searches.PRODUCER, device="cpu", rows=(searches.DIN, *rows), notes=names))


def _waivers(name: str = "m") -> Document:
    use = searches.WAIVER_USE
    hostile = replace(use, waiver=replace(use.waiver, model=name, owner=name, reason=name, issue=name))
    return waivers_document([hostile], f"1 waiver in {name}", in_a_run=True)


def _first_bad(name: str) -> Document:
    search = replace(searches.FIRST_BAD, model=name, notes=(name,), source=name)
    return first_bad_document(search)


def _checkup() -> Document:
    sick = searches.checkup(sick=True)
    checks = tuple(
        replace(check, name=name, about=name, read=f"{name} {name}", so_what=name, do_this=name)
        for check, name in zip(sick.checks, HOSTILE_NAMES, strict=False)
    )
    return checkup_document(replace(sick, checks=checks, environments=HOSTILE_NAMES))


def _operators(operator: str = "") -> OperatorChanges:
    """Return changes of two operators, one of which ends a process."""
    old, new = "2.1.2", "2.6.0"
    changes = (
        OperatorChange(
            operator="aten::planted",
            kind=Kind.LOST,
            features=("empty",),
            before="answers",
            after="crashes",
            old=old,
            new=new,
        ),
        OperatorChange(
            operator="aten::softshrink",
            kind=Kind.NAN,
            features=("NaN",),
            dtypes=("bfloat16", "float32"),
            calls=15,
            tolerances=12.5,
            when={"lambd": 0.5},
            call="torch.ops.aten.softshrink.default(torch.tensor([torch.nan, torch.nan]), 0.5)",
            before="[0, 0]",
            after="[nan, nan]",
            old=old,
            new=new,
        ),
    )
    kept = changes[1:] if operator else changes
    calls = {change.operator: 80 for change in kept}
    return OperatorChanges(
        operator=operator, releases=(old, new), measured="x86-64", calls=calls, changes=kept, old=old, new=new
    )


PLAIN: Mapping[str, Callable[[], Document]] = {
    **{f"run_{name}": _run(made) for name, made in REPORTS.items() if name != "hostile"},
    "run_causes": _run(lambda: of_three_causes(6, 3)),
    "run_hanging": _run(hanging),
    "run_governed": _run(governed),
    "matrix": lambda: matrix_document(matrices.mixed(), directory="reports/matrix"),
    "golden": lambda: review_document(golden_reviews.REVIEW),
    "golden_status": lambda: status_document(golden_reviews.STATUS),
    "golden_broken": lambda: status_document(golden_reviews.BROKEN),
    "golden_proposed": lambda: proposed_document(["a"], [("b", "fails")], golden_reviews.STATUS.waiting),
    "golden_left_over": lambda: left_over_document(golden_reviews.LEFT, removed=False),
    "migration": lambda: migration_document(migrations.OWNED, directory="reports/matrix"),
    "migration_mixed": lambda: migration_document(migrations.MIXED),
    "migration_priced": lambda: migration_document(migrations.PRICED),
    "fleet": lambda: fleet_document(fleets.fleet_answer(MANY[:9]), more="python -m harness fleet report fleet"),
    "fleet_plan": lambda: plan_document(
        fleets.fleet_plan(MANY[:9]), TIMES, command="python -m harness fleet run fleet"
    ),
    "fleet_shard": lambda: shard_document(fleets.shard_done(), again="python -m harness fleet report x"),
    "fleet_more": lambda: shard_document(fleets.shard_done(), again="python -m harness fleet report x", more=True),
    "fleet_kept": lambda: kept_document(fleets.store_status()),
    "operators": lambda: operators_document(_operators()),
    "operators_one": lambda: operators_document(_operators("softshrink")),
    "attach": lambda: attach_document(attached.GROUP),
    "attach_idle": lambda: attach_document(attached.ALONE),
    "bisection": _bisection,
    "cache": lambda: cache_document(caches.CACHE),
    "cache_empty": lambda: cache_document(caches.EMPTY),
    "cache_cleaned": lambda: cleaning_document(caches.CLEANED),
    "cache_dry_run": lambda: cleaning_document(caches.WOULD),
    "mitigating": _mitigating,
    "doctor": lambda: checkup_document(searches.checkup(sick=True)),
    "doctor_well": lambda: checkup_document(searches.checkup(sick=False)),
    "first_bad": lambda: first_bad_document(searches.FIRST_BAD),
    "first_bad_undecided": lambda: first_bad_document(searches.FIRST_BAD_UNDECIDED),
    "inspection": lambda: inspection_document(searches.PAIR),
    "inspection_alone": lambda: inspection_document(searches.ALONE),
    "shadow_same": lambda: shadow_document(shadows.SAME),
    "shadow_differs": lambda: shadow_document(shadows.DIFFERS),
    "shadow_hangs": lambda: shadow_document(shadows.HANGS),
    "held_up": lambda: interference_document(interferences.HELD_UP, directory="reports/attach-system"),
    "held_up_by_nobody": lambda: interference_document(interferences.NOBODY),
    "held_up_seldom": lambda: interference_document(interferences.FEW),
    "held_up_not": lambda: interference_document(interferences.WELL),
    "packing": lambda: _packing("lost"),
    "waivers": _waivers,
}
LARGE: Mapping[str, Callable[[], Document]] = {
    "many causes": lambda: run_document(of_three_causes()),
    "many obstacles": lambda: migration_document(migrations.many()),
    "many teams": lambda: migration_document(migrations.of_teams(500)),
    "many artifacts": lambda: fleet_document(fleets.fleet_answer(MANY, causes=60), more="more"),
    "many reasons": lambda: plan_document(fleets.fleet_plan(MANY, reasons=60), TIMES, command="run it"),
}
HOSTILE: Mapping[str, Callable[[], Document]] = {
    "run": _run(REPORTS["hostile"]),
    "governed run": _run(lambda: governed(" ".join(HOSTILE_NAMES))),
    "matrix": lambda: matrix_document(matrices.hostile(), directory=HOSTILE_NAMES[1]),
    "golden": lambda: review_document(golden_reviews.hostile_review()),
    "cache": lambda: cache_document(caches.named(HOSTILE_NAMES)),
    "golden status": lambda: status_document(golden_reviews.hostile_status()),
    "migration": lambda: migration_document(migrations.hostile(), directory=HOSTILE_NAMES[1]),
    "fleet": lambda: fleet_document(fleets.fleet_answer(HOSTILE_NAMES), more=HOSTILE_NAMES[2]),
    "fleet plan": lambda: plan_document(fleets.fleet_plan(HOSTILE_NAMES), TIMES, command=HOSTILE_NAMES[3]),
    "bisection": lambda: _bisection("".join(HOSTILE_NAMES)),
    "mitigating": lambda: _mitigating("".join(HOSTILE_NAMES)),
    "doctor": _checkup,
    "first bad": lambda: _first_bad("".join(HOSTILE_NAMES)),
    "inspection": _hostile_inspection,
    "held up": lambda: interference_document(interferences.named(*HOSTILE_NAMES), directory=HOSTILE_NAMES[1]),
    "packing": lambda: _packing(*HOSTILE_NAMES),
    "shadow": lambda: shadow_document(shadows.hostile(HOSTILE_NAMES)),
    "waivers": lambda: _waivers("".join(HOSTILE_NAMES)),
}
