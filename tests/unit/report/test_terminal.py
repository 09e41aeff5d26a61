"""Every text for a terminal: 80 columns, nothing that steers it, colour only where it is asked for.

What a reader copies (a command, a path, a link) stands whole, and alone beside its label, however long it is.
"""

import ast
import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from harness.core.diagnosis import Cure
from harness.core.diagnosis import BisectAnswer, Bisection
from harness.core.environment import Fingerprint
from harness.core.golden import Packed, Packing
from harness.core.machine import Checkup
from harness.core.models import GivenArtifact
from harness.core.prediction import Inspection
from harness.core.verdict import Waiver, WaiverState, WaiverUse
from harness.verdict.matrix import judge_matrix
from harness.report.text.bisection import render_bisection
from harness.report.text.bundles import render_packing
from harness.report.text.console import render_console
from harness.report.text.cures import render_curing
from harness.report.text.doctor import render_checkup
from harness.report.text.first_bad import render_first_bad
from harness.report.text.fleet import render_answer, render_kept, render_more, render_plan, render_shard
from harness.report.text.golden import render_left_over, render_review, render_status
from harness.report.text.inspection import render_static
from harness.report.text.matrix import render_heat_map
from harness.report.text.migration import render_migration
from harness.report.text.models import render_models
from harness.report.text.so_far import render_so_far
from harness.report.text.waivers import render_waivers
from tests.unit.builders import fleets, golden_reviews as goldens, migrations
from tests.unit.report.text import (
    test_bisection as test_divergence_text,
    test_cures,
    test_doctor as test_checkup,
    test_first_bad,
    test_models as test_model_list,
    test_static,
)
from tests.unit.builders.reports import HOSTILE_NAMES, REPORTS
from tests.unit.builders.matrices import hostile as hostile_matrix, mixed

PROJECT = Path(__file__).resolve().parents[3]
WIDTH = 80
COPIED = re.compile(r" *(?:\S+(?: \S+){0,2} +)?\S+")
COMMANDS = re.compile(r"-m harness |nox -s |^  (?:evidence|artifact)  +reports/")  # also a path with blanks in it

Text = Callable[[], str]


def _paths(name: str) -> str:
    return f"models/{'deep/' * 20}{name}"


def _inspection() -> Inspection:
    """Return files of every length and kind, asked of two environments with long names."""
    files = [replace(file, path=_paths(file.path)) for file in test_static.PAIR.files]
    files += [
        replace(test_static.PAIR.files[1], path=f"{name}.pt", facts=replace(test_static.FACTS, format=kind))
        for name, kind in zip(HOSTILE_NAMES, list(type(test_static.FACTS.format)), strict=False)
    ]
    return Inspection(releases={"old": "production-2.6.0+cu124", "new": "candidate-2.15.0+cu130"}, files=tuple(files))


def _packing() -> Packing:
    rows = tuple(
        Packed(model=name, path=_paths("b.gate"), size_bytes=10**9, why="", note=f"guessed: {name} {name}")
        for name in HOSTILE_NAMES
    )
    return Packing(producer=Fingerprint(torch="2.1.2+cu121"), device="cpu", rows=rows, notes=(_paths("x"),))


def _cures() -> tuple[Cure, ...]:
    return (test_cures.cured("profiling off", "fuser off", note="a note " * 30), *test_cures.IN_VAIN)


def _first_bad(name: str) -> str:
    long = [
        replace(item, release=f"{item.release}-{name}", reason=f"{name} " * 9) for item in test_first_bad.FOUND.asked
    ]
    releases = tuple(f"{release}-{name}" for release in test_first_bad.FOUND.releases)
    found = replace(test_first_bad.FOUND, model=name, releases=releases, asked=tuple(long), notes=(name * 2,))
    return render_first_bad(found, width=WIDTH)


def _listed(name: str) -> str:
    declared = replace(test_model_list.DECLARED, name=name, tags=("ranking", "named_tuple", "optional", "int_inputs"))
    given = replace(declared, how="file", given=GivenArtifact(path=_paths("ranker.pt")))
    return render_models([declared, given], [f"{name} was left out " * 4], width=WIDTH)


def _waivers(name: str) -> str:
    waiver = Waiver(
        model=name,
        kind="values",
        reason=f"{name} " * 9,
        owner=name,
        expires=dt.date(2027, 3, 31),
        issue=f"https://example.org/{'deep/' * 20}",
    )
    cells = (f"{name}/backward/alone/cpu/default",) * 3
    uses = [
        WaiverUse(waiver=replace(waiver, bound=bound), state=state, cells=cells, size=0.1, broad=("no bound",) * 9)
        for state in WaiverState
        for bound in (None, 0.2)
    ]
    return render_waivers(uses, f"2 waivers in {_paths('waivers.toml')}", in_a_run=True, width=WIDTH)


def _curing(name: str) -> str:
    found = replace(test_cures.curing(*_cures()), model=name, notes=(name * 2,))
    return render_curing(found, directory="reports/x", width=WIDTH)


def _bisection(name: str) -> str:
    found = Bisection(
        model=name,
        old="torch 2.1.2",
        new="torch 2.6.0",
        answer=BisectAnswer.OPERATOR,
        symptom=(name * 2,),
        divergence=test_divergence_text.FOUND,
        reproducers=(test_divergence_text.MADE,),
        cures=_cures(),
    )
    return render_bisection(found, directory="reports/x", width=WIDTH)


def _hostile_checkup() -> Checkup:
    sick = test_checkup.checkup(sick=True)
    checks = tuple(
        replace(check, about=name, read=f"{name} {name}", blocks=HOSTILE_NAMES[:2])
        for check, name in zip(sick.checks, HOSTILE_NAMES, strict=False)
    )
    return replace(sick, checks=checks, environments=HOSTILE_NAMES)


def _console(name: str) -> str:
    return render_console(REPORTS[name](), width=WIDTH)


def _verbose(name: str) -> str:
    return render_console(REPORTS[name](), width=WIDTH, verbose=True)


def _so_far(name: str) -> str:
    rows = REPORTS[name]().judgement.rows
    return render_so_far(rows, missed=HOSTILE_NAMES, then="timing takes about 40 s", width=WIDTH)


def _of(render: Callable[[str], str], names: Iterable[str] = HOSTILE_NAMES) -> dict[str, Text]:
    return {name: partial(render, name) for name in names}


def _fleet_plan(names: tuple[str, ...]) -> str:
    return render_plan(
        fleets.fleet_plan(names), ((1, 9000.0), (4, 2400.0)), command="python -m harness fleet", width=WIDTH
    )


def _fleet_answer(names: tuple[str, ...]) -> str:
    return render_answer(fleets.fleet_answer(names), more="python -m harness fleet report fleet", width=WIDTH)


MANY = tuple(f"model_{at}" for at in range(90))
TEXTS: Mapping[str, Mapping[str, Text]] = {
    "render_answer": {"many": partial(_fleet_answer, MANY), "hostile": partial(_fleet_answer, HOSTILE_NAMES)},
    "render_kept": {"much": lambda: render_kept(fleets.store_status(), width=WIDTH)},
    "render_plan": {"many": partial(_fleet_plan, MANY), "hostile": partial(_fleet_plan, HOSTILE_NAMES)},
    "render_more": {"some": lambda: render_more(fleets.shard_done(), again="python -m harness x", width=WIDTH)},
    "render_shard": {"faults": lambda: render_shard(fleets.shard_done(), again="python -m harness x", width=WIDTH)},
    "render_bisection": _of(_bisection),
    "render_checkup": {
        "sick": lambda: render_checkup(test_checkup.checkup(sick=True)),
        "hostile": lambda: render_checkup(_hostile_checkup()),
    },
    "render_console": {
        **_of(_console, REPORTS),
        **{f"{name}, verbose": made for name, made in _of(_verbose, REPORTS).items()},
    },
    "render_curing": _of(_curing),
    "render_first_bad": _of(_first_bad, ("2.6.0+cu124.post1", *HOSTILE_NAMES)),
    "render_migration": {
        "mixed": lambda: render_migration(migrations.MIXED, width=WIDTH, directory=_paths("matrix")),
        "cured": lambda: render_migration(migrations.CURED, width=WIDTH, directory=_paths("matrix")),
        "many": lambda: render_migration(migrations.many(), width=WIDTH),
        "owned": lambda: render_migration(migrations.OWNED, width=WIDTH),
        "hostile": lambda: render_migration(migrations.hostile(), width=WIDTH, verbose=True),
    },
    "render_heat_map": {
        "mixed": lambda: render_heat_map(mixed(), judge_matrix(mixed()), width=WIDTH),
        "hostile": lambda: render_heat_map(hostile_matrix(), judge_matrix(hostile_matrix()), width=WIDTH),
    },
    "render_left_over": {
        "two": lambda: render_left_over(goldens.LEFT, removed=False),
        "names": lambda: render_left_over([replace(goldens.LEFT[0], path=_paths("x"))], removed=True),
    },
    "render_models": _of(_listed),
    "render_packing": {"hostile": lambda: render_packing(_packing(), width=WIDTH)},
    "render_review": {
        "mixed": lambda: render_review(goldens.REVIEW),
        "hostile": lambda: render_review(goldens.hostile_review(), every_row=True),
    },
    "render_so_far": _of(_so_far, REPORTS),
    "render_static": {
        "pair": lambda: render_static(test_static.PAIR, width=WIDTH),
        "alone": lambda: render_static(test_static.ALONE, width=WIDTH),
        "long": lambda: render_static(_inspection(), width=WIDTH),
    },
    "render_status": {
        "sound": lambda: render_status(goldens.STATUS),
        "broken": lambda: render_status(goldens.BROKEN),
        "hostile": lambda: render_status(goldens.hostile_status()),
    },
    "render_waivers": _of(_waivers),
}
CASES = [pytest.param(text, id=f"{name}-{case}") for name, texts in TEXTS.items() for case, text in texts.items()]


def is_copied(line: str) -> bool:
    """Whether a line is as long as it is because of one thing that is copied whole."""
    return COMMANDS.search(line) is not None or COPIED.fullmatch(line) is not None


@pytest.mark.parametrize("text", CASES)
def test_fits_80_columns_except_for_what_is_copied(text: Text) -> None:
    assert [line for line in text().splitlines() if len(line) > WIDTH and not is_copied(line)] == []


@pytest.mark.parametrize("text", CASES)
def test_is_plain_and_steers_no_terminal(text: Text) -> None:
    assert [line for line in text().split("\n") if not line.isprintable()] == []


@pytest.mark.parametrize("text", CASES)
def test_ends_with_one_newline(text: Text) -> None:
    said = text()
    assert said.endswith("\n")
    assert not said.endswith("\n\n")


def test_every_renderer_of_a_text_for_a_terminal_is_here() -> None:
    """One that takes a width or a colour is for a terminal; so is one in a module that says so of itself."""
    found = set()
    for path in (PROJECT / "harness" / "report").rglob("*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        said = "terminal" in (ast.get_docstring(module) or "")
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("render_") and "str" == _returned(node):
                arguments = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
                found |= {node.name} if said or arguments & {"width", "colour"} else set()
    assert found == set(TEXTS)


def _returned(function: ast.FunctionDef) -> str:
    return ast.unparse(function.returns) if function.returns else ""


def test_a_line_that_is_too_long_would_be_seen() -> None:
    assert not is_copied("  what      " + "two words " * 10)
    assert is_copied("  evidence  " + "a/" * 60)
    assert is_copied("  rerun     python -m harness rerun last " + "a/" * 60)
