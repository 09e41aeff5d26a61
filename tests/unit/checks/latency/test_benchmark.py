"""How the benchmark shares rounds among models, and when each of them is through."""

import math
from pathlib import Path
from types import SimpleNamespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.core.measurement import ArmSample, Block, PairSample, Problem
from harness.core.plan import LatencyBudget
from harness.core.probe import ServingProfile
from harness.checks.latency import benchmark
from harness.core.errors import ConfigError
from harness.checks.latency.benchmark import Time, contest, extra_rounds
from harness.probing.facts import Effects
from harness.machine.cores import Placement
from tests.unit.builders.stages import artifact, declared, effects, known, planned, planted_defect

LOOKS = (3, 4, 6)
QUIET = (0.0, 0.001, -0.001, 0.0, 0.001, -0.001, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class Rounds:
    """Stands where processes would be started: answers with planned log ratios, and keeps a record of the rounds."""

    def __init__(
        self,
        logs: Mapping[str, Sequence[float]],
        broken: Mapping[str, int] | None = None,
        model_s: float = 0.0,
        beside: Mapping[str, tuple[str, Sequence[float]]] | None = None,
    ) -> None:
        self._beside = beside or {}
        self._model_ns = int(1e9 * model_s)
        self.measured: list[list[str]] = []
        self.extras: list[bool] = []
        self.confirming: list[list[str]] = []
        self._logs = logs
        self._broken = broken or {}
        self._count = dict.fromkeys(logs, 0)

    def __call__(self, *_: object, number: int, **__: object) -> "Rounds":
        self.number = number
        self.problems: dict[str, Problem] = {}
        self.wall_ns = (0, 0)
        self.machine_state = None
        self.unreaped: list[str] = []
        return self

    def measure(
        self, models: Sequence[str], tick: Callable[[str], None], *, extras: bool, confirming: Sequence[str]
    ) -> list[PairSample]:
        self.measured.append(list(models))
        self.extras.append(extras)
        self.confirming.append(list(confirming))
        self.wall_ns = (0, len(models) * self._model_ns)
        return [self._sample(model) for model in models if not self._breaks(model)]

    def _breaks(self, model: str) -> bool:
        if self._broken.get(model) == self._count[model]:
            self.problems[model] = Problem(words="the new process died", arm="new")
        return model in self.problems

    def _sample(self, model: str) -> PairSample:
        log = self._logs[model][self._count[model]]
        name, changes = self._beside.get(model, ("load_s", ()))
        more = math.exp(changes[self._count[model]]) if changes and (name == "load_s" or self.extras[-1]) else 1.0
        self._count[model] += 1
        times = {"old": 1.0, "control": 1.0, "new": math.exp(log)}
        return PairSample(
            model=model,
            round=self.number,
            blocks=tuple(Block(arm=arm, turn=0, p50_s=time_s, calls=1) for arm, time_s in times.items()),
            arms={arm: _arm(name, more if arm == "new" else 1.0) for arm in times},
            spent_s=0.1,
        )


def _arm(name: str, value: float) -> ArmSample:
    changes: Any = {name: value}
    return replace(ArmSample(load_s=1.0, calls_s=()), **changes)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the rounds are stored."""
    monkeypatch.setattr(Effects, "folder", lambda _, name: tmp_path / name)
    return tmp_path


def benchmarked(monkeypatch: pytest.MonkeyPatch, rounds: Rounds, **changes: Any) -> Any:
    """Let the models of ``rounds`` have their benchmark."""
    names = list(rounds._logs)
    monkeypatch.setattr(benchmark, "Round", rounds)
    monkeypatch.setattr(benchmark, "choose", lambda _: Placement(cores=(0,)))
    monkeypatch.setattr(benchmark, "physical_cores", lambda: 1)
    facts = known(planned(*names, settings={"latency": LatencyBudget(looks=LOOKS)}))
    contestants = {name: (same, same) for name in names for same in [artifact(name)]}
    runner: Any = SimpleNamespace(record_round=lambda *_: None, rounds_ns=[])
    return contest(contestants, facts, effects(runner), profile=facts.plan.settings.profile, **changes)


def test_model_that_is_decided_leaves_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = [0.03 * (-1) ** index for index in range(12)]
    rounds = Rounds({"calm": QUIET, "noisy": noisy})
    found = benchmarked(monkeypatch, rounds)
    assert rounds.measured == [["calm", "noisy"]] * 3 + [["noisy"]] * 3
    assert {name: found[name].steady.pairs for name in found} == {"calm": 3, "noisy": 6}
    assert found["noisy"].confirmation is None


def test_suspicion_is_taken_to_rounds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds({"slow": [0.2 + value for value in QUIET], "calm": QUIET})
    found = benchmarked(monkeypatch, rounds)
    assert rounds.measured == [["slow", "calm"]] * 3 + [["slow"]] * 3
    assert rounds.confirming == [[]] * 3 + [["slow"]] * 3  # which all have the control
    assert (found["slow"].steady.pairs, found["slow"].confirmation.pairs) == (3, 3)
    assert found["slow"].confirmation.low > 1.2
    assert [sample.round for sample in found["slow"].samples] == [0, 1, 2, 3, 4, 5]


def test_bad_luck_of_the_first_rounds_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds({"unlucky": [0.2, 0.2001, 0.2002, *QUIET]})
    found = benchmarked(monkeypatch, rounds)["unlucky"]
    assert found.steady.low > 1.03
    assert found.confirmation.high < 1.03


@pytest.mark.parametrize("name", ["load_s", "request_s"])
@pytest.mark.parametrize(("fresh", "low"), [(0.7, 1.5), (0.0, 0.9)])
def test_what_only_is_named_is_taken_to_one_look_at_fresh_rounds(
    monkeypatch: pytest.MonkeyPatch, name: str, fresh: float, low: float
) -> None:
    """Throughput is measured there again, which later rounds leave out else."""
    changes = [0.7, 0.701, 0.702, *(fresh + value for value in QUIET)]
    rounds = Rounds({"served": QUIET, "calm": QUIET}, beside={"served": (name, changes)})
    found = benchmarked(monkeypatch, rounds)["served"]
    assert rounds.measured == [["served", "calm"]] * 3 + [["served"]] * 3
    assert rounds.extras[3:] == [name == "request_s"] * 3
    again = found.fresh_quantities[name.removesuffix("_s")].ratio
    assert again.low > low and again.pairs == 3


def test_what_fresh_rounds_leave_open_has_no_second_look_where_it_only_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noisy = [0.7, 0.701, 0.702, 1.5, -0.3, 0.6, *[0.7] * 6]
    rounds = Rounds({"served": QUIET}, beside={"served": ("load_s", noisy)})
    benchmarked(monkeypatch, rounds)
    assert len(rounds.measured) == 6


@pytest.mark.parametrize(("models", "extra"), [(15, 3), (16, 2)])
def test_many_models_need_a_round_less_for_what_is_beside_the_steady_call(
    monkeypatch: pytest.MonkeyPatch, models: int, extra: int
) -> None:
    rounds = Rounds({f"m{index}": QUIET for index in range(models)})
    benchmarked(monkeypatch, rounds)
    assert rounds.extras == [True] * extra + [False] * (3 - extra)


@pytest.mark.parametrize(
    ("shapes", "gated", "rounds"), [(0, False, 2), (1, False, 3), (7, False, 3), (8, False, 2), (16, True, 6)]
)
def test_what_few_models_have_or_policy_gates_is_measured_in_more_rounds(
    shapes: int,
    gated: bool,  # noqa: FBT001
    rounds: int,
) -> None:
    contestants = {}
    for index in range(16):
        one = artifact(f"m{index}")
        one = replace(one, input_sets=one.input_sets[:1] * (2 if index < shapes else 1))
        contestants[one.model] = (one, one)
    assert extra_rounds(contestants, LatencyBudget(looks=LOOKS), gated=gated) == rounds


@pytest.mark.parametrize(("centre", "rounds"), [(0.07, 3), (0.03, 6)])
def test_what_need_only_be_fast_is_given_up_at_a_look_that_finds_it_slow(
    monkeypatch: pytest.MonkeyPatch, centre: float, rounds: int
) -> None:
    """Both are undecided: one more likely slow than not, the other more likely fast."""
    logs = [centre + 0.03 * (-1) ** index for index in range(12)]
    asked = {"undecided": logs, "calm": QUIET}
    found = benchmarked(monkeypatch, Rounds(asked), confirm=False, give_up=["undecided"])
    assert found["undecided"].steady.pairs == rounds
    assert found["undecided"].steady.low < 1.05 < found["undecided"].steady.high
    assert benchmarked(monkeypatch, Rounds(asked), confirm=False)["undecided"].steady.pairs == 6


def test_price_needs_no_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds({"slow": [0.2 + value for value in QUIET]})
    assert benchmarked(monkeypatch, rounds, confirm=False)["slow"].confirmation is None
    assert len(rounds.measured) == 3


@pytest.mark.parametrize("after", [0, 2])
def test_model_that_breaks_a_process_is_out_and_costs_nobody_else(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    rounds = Rounds({"bad": QUIET, "good": QUIET}, broken={"bad": after})
    found = benchmarked(monkeypatch, rounds)
    assert (found["bad"].problem, len(found["bad"].samples)) == ("the new process died", after)
    assert (found["good"].problem, found["good"].steady.pairs) == ("", 3)
    assert len(rounds.measured) == 3


def test_models_that_are_not_timed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds({"served": QUIET})
    monkeypatch.setattr(benchmark, "Round", rounds)
    models = (declared("served"), declared("miniature", timed=False))
    plan = planned(models=models, scenarios=("alone",), settings={"latency": LatencyBudget(looks=LOOKS)})
    runner: Any = SimpleNamespace(record_round=lambda *_: None, rounds_ns=[], native={})
    timed = benchmark.benchmark(known(plan), effects(runner, sides=("old", "new")))
    assert set(timed.latency) == {"served"}
    assert rounds.measured == [["served"]] * 3


@pytest.mark.parametrize(("planted", "repeats_common"), [(True, False), (False, True), (False, False)])
def test_run_that_repeats_cells_does_not_estimate_what_all_share_unless_it_repeats_that(
    monkeypatch: pytest.MonkeyPatch,
    planted: bool,  # noqa: FBT001
    repeats_common: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(benchmark, "Round", Rounds({name: QUIET for name in "abc"}))
    more = {"planted_defects": (replace(planted_defect(), timed=False),)} if planted else {}
    plan = planned("a", "b", "c", settings={"latency": LatencyBudget(looks=LOOKS)}, **more)
    plan, estimated = replace(plan, repeats_common=repeats_common), planted or repeats_common
    runner: Any = SimpleNamespace(record_round=lambda *_: None, rounds_ns=[], native={})
    timed = benchmark.benchmark(known(plan), effects(runner, sides=("old", "new")))
    assert ((timed.common is not None), len(timed.latency)) == (estimated, 3)
    assert all((found.own is not None) == estimated for found in timed.latency.values())


def test_cpp_worker_is_timed_where_it_initializes_and_the_python_one_for_what_it_cannot_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing(Rounds):
        def __call__(self, *_: object, number: int, **more: Any) -> Rounds:
            started.append(dict(more["native"]))
            self._broken = {"odd": 0} if more["native"] else {}
            return super().__call__(number=number)

        def measure(self, *told: Any, **more: Any) -> list[PairSample]:
            found = super().measure(*told, **more)
            self.problems = dict.fromkeys(
                self.problems, Problem(words="old: TypeError: no such argument", arm="old", refused=True)
            )
            return found

    started: list[dict[str, Path]] = []
    rounds = Refusing({"plain": QUIET, "odd": QUIET})
    monkeypatch.setattr(benchmark, "Round", rounds)
    plan = planned("plain", "odd", scenarios=("alone",), settings={"latency": LatencyBudget(looks=LOOKS)})
    native = {"old": Path("/native/old"), "new": Path("/native/new")}
    runner: Any = SimpleNamespace(record_round=lambda *_: None, rounds_ns=[], native=native)
    facts = known(plan, worker="libtorch")
    timed = benchmark.benchmark(facts, effects(runner, sides=("old", "new"))).latency
    assert {name: (one.runtime, one.problem) for name, one in timed.items()} == {
        "plain": ("libtorch", ""),
        "odd": ("python", ""),
    }
    assert started == [native] * 3 + [{}] * 3
    assert rounds.measured == [["plain", "odd"], ["plain"], ["plain"], ["odd"], ["odd"], ["odd"]]


def test_python_worker_is_timed_on_a_gpu_and_with_operator_libraries() -> None:
    facts = known(planned("m"), worker="libtorch")
    both = effects(sides=("old", "new"))
    assert benchmark.timed_runtime(facts, both) == "libtorch"
    assert benchmark.timed_runtime(replace(facts, plan=replace(facts.plan, device="cuda")), both) == "python"
    old = both.environments["old"]
    with_library = replace(old, spec=replace(old.spec, libraries=("/lib/ops.so",)))
    environments = {**both.environments, "old": with_library}
    assert benchmark.timed_runtime(facts, replace(both, environments=environments)) == "python"


def test_interrupted_benchmark_goes_on_with_the_rounds_that_it_has(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    slow = {"slow": [0.2 + value for value in QUIET], "calm": QUIET}
    whole = benchmarked(monkeypatch, Rounds(slow))
    (folder / "benchmark" / "round-4.json").unlink()
    (folder / "benchmark" / "round-5.json").write_text("damaged")
    again = Rounds({"slow": slow["slow"][4:], "calm": ()})
    resumed = benchmarked(monkeypatch, again)
    assert again.measured == [["slow"]] * 2
    assert resumed == whole


def test_round_that_was_asked_for_something_else_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmarked(monkeypatch, Rounds({"calm": QUIET}))
    another = Rounds({"calm": QUIET})
    benchmarked(monkeypatch, another, budget=LatencyBudget(looks=LOOKS, blocks=9))
    assert len(another.measured) == 3


NOISY = [0.05 + 0.03 * (-1) ** index for index in range(30)]


def test_time_that_is_over_ends_the_benchmark_at_a_look_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds({"calm": QUIET, "noisy": NOISY}, model_s=10.0)
    found = benchmarked(monkeypatch, rounds, time=Time(left_s=75.0))
    assert rounds.measured == [["calm", "noisy"]] * 3 + [["noisy"]]
    assert (found["calm"].out_of_time, found["noisy"].out_of_time) == (False, True)
    assert found["noisy"].steady.pairs == 4


def test_rounds_after_the_last_look_are_kept_for_the_next_one_and_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slowing(Rounds):
        def measure(self, *told: Any, **more: Any) -> list[PairSample]:
            found = super().measure(*told, **more)
            if len(self.measured) == 5:
                self.wall_ns = (0, int(1e12))
            return found

    rounds = Slowing({"noisy": NOISY}, model_s=10.0)
    found = benchmarked(monkeypatch, rounds, time=Time(left_s=100.0))["noisy"]
    assert len(rounds.measured) == 5
    assert (found.steady.pairs, len(found.samples), found.out_of_time) == (4, 4, True)


def test_model_nearest_to_a_decision_goes_on_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    near = [0.8 * value - 0.02 for value in NOISY]
    rounds = Rounds({"far": NOISY, "near": near}, model_s=10.0)
    found = benchmarked(monkeypatch, rounds, time=Time(left_s=75.0))
    assert rounds.measured[:4] == [["far", "near"]] * 3 + [["near"]]
    assert found["far"].out_of_time
    assert found["far"].steady.pairs == 3


def test_planted_slowdown_and_one_model_are_looked_at_whatever_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds({"planted": QUIET, "a": QUIET, "b": QUIET}, model_s=10.0)
    found = benchmarked(monkeypatch, rounds, time=Time(left_s=1.0), planted=("planted",))
    assert rounds.measured[1:] == [["planted", "a"]] * 2
    assert {name: one.out_of_time for name, one in found.items()} == {"planted": False, "a": False, "b": True}
    assert found["b"].steady is None


def test_more_time_goes_on_with_what_is_undecided_beside_the_rounds_that_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = {"calm": QUIET, "noisy": NOISY}
    whole = benchmarked(monkeypatch, Rounds(logs, model_s=10.0))
    assert (whole["noisy"].steady.pairs, whole["noisy"].out_of_time) == (6, False)
    again = Rounds({"calm": (), "noisy": NOISY[6:]}, model_s=10.0)
    more = benchmarked(monkeypatch, again, time=Time(left_s=85.0, is_more=True))
    assert again.measured == [["noisy"]] * 8
    assert (more["noisy"].steady.pairs, more["noisy"].out_of_time) == (14, True)
    assert more["noisy"].steady.detectable < whole["noisy"].steady.detectable
    assert more["calm"] == whole["calm"]
    kept = benchmarked(monkeypatch, Rounds({"calm": (), "noisy": ()}), time=Time(left_s=20.0))
    assert kept["noisy"].samples == more["noisy"].samples


def test_more_time_that_reaches_no_look_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmarked(monkeypatch, Rounds({"noisy": NOISY}, model_s=10.0))
    again = Rounds({"noisy": NOISY[6:]}, model_s=10.0)
    found = benchmarked(monkeypatch, again, time=Time(left_s=20.0, is_more=True))["noisy"]
    assert again.measured == []
    assert (found.steady.pairs, found.out_of_time) == (6, True)


def test_total_that_is_too_little_for_one_round_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "Round", Rounds({"m": QUIET}))
    budget = LatencyBudget(looks=LOOKS, total_s=0.01)
    runner: Any = SimpleNamespace(record_round=lambda *_: None, rounds_ns=[], native={})
    given = effects(runner, sides=("old", "new"))
    with pytest.raises(ConfigError, match=r"^latency.total_s of 0.01 s is too little: one round of one model takes"):
        benchmark.benchmark(known(planned("m", settings={"latency": budget})), given)
    plan = replace(planned("m", settings={"latency": LatencyBudget(looks=LOOKS)}), more_s=0.01)
    with pytest.raises(ConfigError, match=r"^--more of 0.01 s is too little"):
        benchmark.benchmark(known(plan), given)


@pytest.mark.parametrize("left_s", [0.001, -3.0])
def test_benchmark_whose_first_round_does_not_fit_into_the_budget_is_not_begun(left_s: float) -> None:
    facts = known(planned("m", settings={"latency": LatencyBudget(looks=LOOKS)}))
    timed = benchmark.benchmark(facts, effects(left_s=left_s))
    assert [(part.scenario, part.group) for part in timed.not_begun] == [("latency", "")]
    assert timed.not_begun[0].expected_s > 0 and not timed.latency


def test_budget_of_the_run_bounds_the_time_of_the_benchmark() -> None:
    facts = known(planned("m", settings={"latency": LatencyBudget(looks=LOOKS)}))
    contestants = {"m": (artifact("m"), artifact("m"))}
    whole_s = benchmark.time_for(contestants, facts, effects()).left_s
    assert benchmark.time_for(contestants, facts, effects(left_s=10_000.0)).left_s == whole_s
    assert 29.0 < benchmark.time_for(contestants, facts, effects(left_s=30.0)).left_s <= 30.0 < whole_s


def test_processes_share_cores_only_where_that_is_wanted() -> None:
    profile = known(planned("m")).plan.settings.profile
    unpinned = benchmark.placed(LatencyBudget(pin=False), (profile,))
    assert unpinned.cores == ()
    assert unpinned.why_not


@pytest.mark.parametrize(
    ("changes", "lanes"),
    [
        ({}, 2),
        ({"cores": 1}, 1),
        ({"cores": 16}, 2),
        ({"threads": 2}, 1),
        ({"cores": 4, "threads": 2}, 2),
        ({"pin": False}, 1),
        ({"device": "cuda"}, 1),
        ({"size": 10 * 2**30}, 1),
    ],
)
def test_two_models_are_timed_at_once_where_cores_and_memory_suffice(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], lanes: int
) -> None:
    monkeypatch.setattr(benchmark, "physical_cores", lambda: changes.get("cores", 2))
    monkeypatch.setattr(benchmark, "usable_bytes", lambda: 24 * 2**30)
    facts = known(planned("a"))
    facts = replace(facts, plan=replace(facts.plan, device=changes.get("device", "cpu")))
    one = replace(artifact("a"), size_bytes=changes.get("size", 100 * 2**20))
    profiles = [ServingProfile(), ServingProfile(intra_op_threads=changes.get("threads", 1))]
    budget = LatencyBudget(pin=changes.get("pin", True))
    assert benchmark.lanes_for({"a": (one, one)}, facts, profiles, budget, arms=3) == lanes
