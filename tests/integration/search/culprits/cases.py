"""The corpus: which operators are planted where, and what they do there."""

from dataclasses import dataclass

from tests.integration.search.culprits.programs import Group, Planting

LONG = 400  # statements of a program of a thousand nodes


@dataclass(frozen=True, kw_only=True)
class Case:
    """A planting, and what is expected of a search for it.

    Attributes:
        symptom: in words, for the table.
        alone: whether an operator misbehaves when it is run by itself: one trace names it. Else the optimised program
            has to be reduced.
        timed: whether it shows only in how long a call takes.
    """

    planting: Planting
    symptom: str
    alone: bool = True
    timed: bool = False

    @property
    def name(self) -> str:
        """The model's."""
        return self.planting.name

    @property
    def guilty(self) -> list[Group]:
        """The operators of each group as a report names them, sorted."""
        return sorted(tuple(f"planted::{name}" for name in group) for group in self.planting.groups)


def _by_itself(name: str, symptom: str, *operators: str, **planted: object) -> Case:
    groups = tuple((operator,) for operator in operators)
    return Case(planting=Planting(name=name, groups=groups, **planted), symptom=symptom)  # type: ignore[arg-type]


def _optimised(name: str, symptom: str, *groups: Group, **planted: object) -> Case:
    return Case(planting=Planting(name=name, groups=groups, **planted), symptom=symptom, alone=False)  # type: ignore[arg-type]


def _slow(name: str, **planted: object) -> Case:
    planting = Planting(name=name, groups=(("slow",),), **planted)  # type: ignore[arg-type]
    return Case(planting=planting, symptom="8 x slower", alone=False, timed=True)


BY_ITSELF = (
    _by_itself("numbers_short", "numbers", "numbers", statements=12),
    _by_itself("numbers_long", "numbers", "numbers", statements=LONG, places=(0.73,)),
    _by_itself("numbers_branch", "numbers", "numbers", where="branch"),
    _by_itself("numbers_loop", "numbers", "numbers", where="loop"),
    _by_itself("numbers_module", "numbers", "numbers", where="module"),
    _by_itself("numbers_fork", "numbers", "numbers", where="fork"),
    _by_itself("nan_flat", "NaN", "nan", statements=120, places=(0.1,)),
    _by_itself("nan_nested", "NaN", "nan", where="nested"),
    _by_itself("structure_flat", "structure", "structure", places=(0.9,)),
    _by_itself("structure_module", "structure", "structure", where="module"),
    _by_itself("error_flat", "error", "error", statements=120),
    _by_itself("error_branch", "error", "error", where="branch"),
    _by_itself("segv_loop", "crash", "segv", where="loop"),
    _by_itself("abort_long", "crash", "abort", statements=LONG, places=(0.4,)),
    _by_itself("busy_flat", "hang, busy", "busy"),
    _by_itself("blocked_module", "hang, blocked", "blocked", where="module"),
    _by_itself("two_numbers_nan", "numbers, NaN", "numbers", "nan", places=(0.3, 0.7)),
    _by_itself("two_numbers_structure", "numbers, structure", "numbers", "structure", places=(0.2, 0.8), statements=90),
)

OPTIMISED = (
    _optimised("opt_numbers_long", "numbers", ("numbers_optimised",), statements=LONG, places=(0.31,)),
    _optimised("opt_numbers_branch", "numbers", ("numbers_optimised",), where="branch"),
    _optimised("opt_nan_loop", "NaN", ("nan_optimised",), where="loop"),
    _optimised("opt_structure", "structure", ("structure_optimised",), statements=90),
    _optimised("opt_error", "error", ("error_optimised",), statements=120, places=(0.15,)),
    _optimised("opt_error_fork", "error", ("error_optimised",), where="fork"),
    _optimised("opt_segv_long", "crash", ("segv_optimised",), statements=LONG, places=(0.88,)),
    _optimised("opt_abort_nested", "crash", ("abort_optimised",), where="nested"),
    _optimised("opt_busy", "hang, busy", ("busy_optimised",), statements=90, places=(0.5,)),
    _optimised("opt_blocked_module", "hang, blocked", ("blocked_optimised",), where="module"),
    _optimised("opt_two_numbers", "numbers, twice", ("numbers_optimised",), ("nan_optimised",), places=(0.25, 0.65)),
    _optimised("opt_two_errors", "error, twice", ("error_optimised",), ("error_optimised",), places=(0.4, 0.8)),
    _optimised("pair_numbers", "numbers, two together", ("arms", "numbers_armed"), statements=90, apart=20),
    _optimised("pair_error", "error, two together", ("arms", "error_armed"), places=(0.1,), apart=30),
    _optimised("pair_segv", "crash, two together", ("arms", "segv_armed"), apart=1),
    _optimised("pair_busy", "hang, two together", ("arms", "busy_armed"), apart=8),
    _optimised("flaky_numbers", "numbers, 30 %", ("numbers_flaky",), statements=30),
    _optimised("flaky_error", "error, 30 %", ("error_flaky",), statements=60, places=(0.2,)),
    _optimised("flaky_busy", "hang, 30 %", ("busy_flaky",), statements=20),
)

LOADING = (
    _by_itself("gone_flat", "load error", "gone"),
    _by_itself("gone_dead", "load error, dead branch", "gone", where="dead"),
    _by_itself("gone_module", "load error, called method", "gone", where="module"),
)

SLOW = (
    _slow("slow_flat", statements=60),
    _slow("slow_module", where="module", places=(0.3,)),
)

CASES = (*BY_ITSELF, *OPTIMISED, *LOADING, *SLOW)
