"""Does ``bisect`` name the right nodes, and none but them, with few tests and soon enough?

Over forty programs with planted culprits are exported by the old release and searched in the new one; their twins, the
same programs with operators that are well in both, must leave nothing to find. Beside the tests of each search stand
those that two plain ways would take in the same place: a beginning of the program that grows by one node until it
fails, and ddmin. Then the bars of the issue; the last two are asked of the command as a user would type it.
"""

import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.diagnosis import Answer, BisectAnswer, Bisection
from harness.core.environment import EnvSpec
from harness.core.releases import ReleaseAnswer
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.project import Project
from harness.search.delta_debugging import ddmin
from harness.search.first_bad_choice import Line, conclude, most_builds, next_likely, next_question
from harness.store import codec
from tests.integration.gate import PROJECT, harness
from tests.integration.search.culprits.asking import accused, libraries, stood
from tests.integration.search.culprits.cases import CASES, Case
from tests.integration.search.culprits.programs import Planting, package

LEAST_CASES = 30
RELEASES = 20
NODES_PER_STATEMENT = 2.5
DEADLINE_S = 600
COLUMNS = "{:22} {:22} {:>6} {:>6} {:>6} {:>7} {:>7} {:>7}  {}"


@dataclass(frozen=True)
class Beside:
    """How many tests two plain searches take until all groups are known."""

    linear: int
    ddmin: int


def most_tests(nodes: int) -> int:
    """Return the bar of the issue for a single culprit."""
    return math.ceil(math.log2(max(1, nodes))) + 4


def compared(planting: Planting, nodes: int) -> Beside:
    """Return what plain searches take for the planted groups among so many nodes.

    Linear: the whole, then its beginning of one node, of two, and so on, until it fails; the second group is looked for
    where the first one ended. ddmin: of all nodes, and for each further group of those that are left.
    """
    groups = _items(planting, nodes)
    items = tuple(range(nodes))
    tests = 0
    for _ in groups:
        left = set(items)
        reduced = ddmin(items, lambda kept: _answer_of(groups, frozenset(kept)))
        tests += reduced.tests
        items = tuple(sorted(left - set(reduced.items or ())))
    return Beside(linear=1 + max(max(group) for group in groups) + 1, ddmin=tests)


def _items(planting: Planting, nodes: int) -> list[frozenset[int]]:
    """Return about where the nodes of each group are; within a block there is one, that of the block."""
    if planting.where != "flat":
        return [frozenset({int(planting.places[0] * nodes)})]
    step = round(planting.apart * NODES_PER_STATEMENT)
    return [
        frozenset(min(nodes - 1, int(share * nodes) + step * index) for index in range(len(group)))
        for group, share in zip(planting.groups, planting.places, strict=True)
    ]


def _answer_of(groups: list[frozenset[int]], kept: frozenset[int]) -> Answer:
    return Answer.FAIL if any(group <= kept for group in groups) else Answer.PASS


@dataclass(frozen=True)
class Searched:
    """One case, what was found, and how long that took."""

    case: Case
    found: Bisection
    seconds: float

    @property
    def nodes(self) -> int:
        """How many there are to choose from."""
        reduction, divergence = self.found.reduction, self.found.divergence
        return reduction.nodes if reduction is not None else divergence.nodes if divergence is not None else 0

    @property
    def right(self) -> bool:
        """Whether exactly the planted groups are named."""
        return accused(self.found) == self.case.guilty

    @property
    def wrongly(self) -> set[str]:
        """The operators that are named and are not guilty."""
        return {name for group in accused(self.found) for name in group} - {
            name for group in self.case.guilty for name in group
        }

    @property
    def cost(self) -> tuple[str, str]:
        """How many subsets were tested, and how often the new release was run."""
        reduction, divergence = self.found.reduction, self.found.divergence
        if reduction is not None:
            return str(reduction.tests), str(reduction.runs)
        return "-", str(divergence.probes[1]) if divergence is not None else "0"

    def beside(self) -> Beside | None:
        """Return what plain ways would take, None without nodes."""
        return compared(self.case.planting, self.nodes) if self.nodes else None

    def _named(self) -> str:
        groups, reduction = accused(self.found), self.found.reduction
        notes = (*self.found.notes, *(reduction.notes if reduction is not None else ()))
        ended = (reduction.ended,) if reduction is not None and reduction.ended else ()
        return "; ".join((_shown(groups), *ended, *(() if groups else notes)))

    def row(self) -> str:
        """Return its line of the table."""
        verdict = "right" if self.right else f"WRONG: {self._named()}, not {_shown(self.case.guilty)}"
        beside = self.beside()
        plain = (str(beside.linear), str(beside.ddmin)) if beside is not None else ("-", "-")
        tests, runs = self.cost
        return COLUMNS.format(
            self.case.name, self.case.symptom, self.nodes, tests, runs, f"{self.seconds:.1f}", *plain, verdict
        )


@dataclass(frozen=True)
class Bar:
    """A bar of the issue, and whether it is met."""

    what: str
    value: str
    met: bool


def main(names: Sequence[str] = ()) -> int:
    """Print the table and the bars; return 0 if every bar is met. ``names``: only these cases, and no other bars."""
    pythons = _pythons()
    cases = [case for case in CASES if not names or case.name in names]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gate-bisect-") as temporary:
        folder = Path(temporary)
        print(COLUMNS.format("case", "symptom", "nodes", "tests", "runs", "s", "linear", "ddmin", "named"))
        searched = [item for timed in (False, True) for item in _searched(cases, timed, pythons, folder)]
        twins = [item for timed in (False, True) for item in _searched(cases, timed, pythons, folder, defective=False)]
        bars = [*_corpus_bars(searched, twins)]
        if not names:
            bars += [_builds(), _thousand_nodes(pythons, folder / "numeric"), _fused_hang(pythons, folder / "hang")]
    for bar in bars:
        print(f"{bar.what:62} {bar.value:44} {'met' if bar.met else 'MISSED'}")
    print(f"in all {time.monotonic() - begin:.0f} s")
    return int(not all(bar.met for bar in bars))


def _searched(
    cases: Sequence[Case], timed: bool, pythons: tuple[str, str], folder: Path, *, defective: bool = True
) -> Iterator[Searched]:
    chosen = [case for case in cases if case.timed is timed]
    if not chosen:
        return
    own = folder / f"{'timed' if timed else 'called'}-{'defective' if defective else 'healthy'}"
    with stood(chosen, pythons, own, defective=defective, timed=timed) as stand:
        for case in chosen:
            begin = time.monotonic()
            done = Searched(case, stand.ask(case), time.monotonic() - begin)
            if defective:
                print(done.row(), flush=True)
            yield done


def _corpus_bars(searched: Sequence[Searched], twins: Sequence[Searched]) -> Iterator[Bar]:
    right = [item for item in searched if item.right]
    wrong = [item.case.name for item in searched if item.wrongly]
    accusing = [
        item.case.name for item in twins if item.found.answer not in (BisectAnswer.NOTHING, BisectAnswer.UNDECIDED)
    ]
    undecided = [item for item in twins if item.found.answer is BisectAnswer.UNDECIDED]
    called = [item for item in undecided if not item.case.timed]  # a time may be undecided on a busy machine
    single = [item for item in searched if _is_single(item)]
    over = [item.case.name for item in single if int(item.cost[0]) > most_tests(item.nodes)]
    yield Bar(
        f"right nodes named in all, at least {LEAST_CASES} culprits",
        f"{len(right)} of {len(searched)}",
        len(right) == len(searched) >= LEAST_CASES,
    )
    yield Bar("false culprit in none", ", ".join(wrong) or "none", not wrong)
    yield Bar(
        "healthy twins: nothing to find",
        ", ".join(accusing) or f"{len(twins) - len(undecided)} of {len(twins)}, {len(undecided)} undecided",
        not accusing and not called,
    )
    yield Bar(
        "single culprit: at most log2(n) + 4 tests", ", ".join(over) or f"{len(single)} of {len(single)}", not over
    )


def _is_single(item: Searched) -> bool:
    """Whether one node is guilty each time by itself, in no block, and every subset could be tested: the bound binds."""
    planting, reduction = item.case.planting, item.found.reduction
    one = planting.where in ("flat", "module") and [len(group) for group in planting.groups] == [1]
    always = not planting.groups[0][0].endswith("_flaky")
    return one and always and reduction is not None and reduction.untestable == 0 and not reduction.ended


def _builds() -> Bar:
    worst = max(_built_for(first_bad) for first_bad in range(1, RELEASES))
    return Bar("first bad among 20 releases: at most 5 environments", f"{worst} at worst, over all places", worst <= 5)


def _built_for(first_bad: int) -> int:
    """Return how many environments a search builds for one first bad release, built ahead included; simulated."""
    names = tuple(map(str, range(RELEASES)))
    ends, built = {names[0], names[-1]}, set[str]()
    answers: dict[str, ReleaseAnswer] = {}

    def line() -> Line:
        left = most_builds(RELEASES) - len(built)
        return Line(releases=names, answers=answers, ready=ends | built, builds_left=left)

    while (name := next_question(line())) is not None:
        likely = next_likely(line(), name)
        built |= {name, *likely} - ends
        answers[name] = ReleaseAnswer.BAD if int(name) >= first_bad else ReleaseAnswer.GOOD
    assert conclude(line()).first_bad == str(first_bad)
    return len(built)


def _thousand_nodes(pythons: tuple[str, str], folder: Path) -> Bar:
    """An operator that answers other numbers, in a long program."""
    case = next(case for case in CASES if case.name == "numbers_long")
    models = folder / "models"
    models.mkdir(parents=True)
    (models / "models.py").write_text(package([case.planting]))
    loaded = [word for name in libraries(pythons, folder) for word in ("--library", name)]
    found, seconds = _bisect(pythons, folder, "--fixtures", str(models), *loaded)
    divergence = found.divergence
    nodes, probes = (divergence.nodes, divergence.probes) if divergence is not None else (0, (0, 0))
    right = accused(found) == case.guilty
    return Bar(
        "numbers in 1,000 nodes: at most 3 probes a side, within 60 s",
        f"{nodes} nodes, {probes[0]} + {probes[1]} probes, {seconds:.0f} s",
        right and max(probes) <= 3 and nodes >= 1000 and seconds < 60,
    )


def _fused_hang(pythons: tuple[str, str], folder: Path) -> Bar:
    """A model that hangs in the second call once CPU fusion is on."""
    fixtures = str(PROJECT / "tests" / "integration" / "checks" / "startup" / "hangs")
    model = ("--model", "busy_if_fused", "--new-profile", "cpu_fusion")
    found, seconds = _bisect(pythons, folder, "--fixtures", fixtures, *model)
    reduction = found.reduction
    culprits = reduction.culprits if reduction is not None else ()
    smallest = min((len(culprit.nodes) for culprit in culprits if culprit.minimal), default=0)
    nodes = reduction.nodes if reduction is not None else 0
    mitigations = sum(mitigation.mitigates and bool(mitigation.prices) for mitigation in found.mitigations)
    rewrites = sum(rewritten.fixes for rewritten in found.rewrites)
    return Bar(
        "hang once fused: minimal graph, switches, rewrite within 180 s",
        f"{smallest} of {nodes} nodes, {mitigations} mitigations priced, {rewrites} rewrites, {seconds:.0f} s",
        0 < smallest < nodes and mitigations > 0 and rewrites > 0 and seconds <= 180,
    )


def _bisect(pythons: tuple[str, str], folder: Path, *arguments: str) -> tuple[Bisection, float]:
    """Run ``bisect`` as a user types it; return the answer and how long it took."""
    named = [
        word for side, python in zip(("old", "new"), pythons, strict=True) for word in ("--env", f"{side}={python}")
    ]
    begin = time.monotonic()
    done = harness("bisect", *named, *arguments, "--out", str(folder / "runs"), timeout_s=DEADLINE_S)
    seconds = time.monotonic() - begin
    results = sorted((folder / "runs").glob("*/bisect.json"))
    assert results, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return codec.read_json(results[-1], Bisection), seconds


def _shown(groups: Sequence[Sequence[str]]) -> str:
    texts = (" + ".join(group[:3]) + (f" + {len(group) - 3} more" if len(group) > 3 else "") for group in groups)
    return "; ".join(texts) or "nobody"


def _pythons() -> tuple[str, str]:
    settings = Project(folder=PROJECT).settings
    builder = EnvironmentBuilder(default_environment_root(PROJECT), progress=lambda _name, _text: None, uv=find_uv())
    old, new = (builder.build(EnvSpec(name=f"torch {one}", release=one)) for one in (settings.old, settings.new))
    return old.interpreter, new.interpreter


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
