"""Scripts of the initializations: an interpreter without torch shows that each of them ends, in every order."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.plan import CAPTURE_MODES, DEFAULT_SCENARIOS, WARM_CALLS
from harness.serving.scenarios import CELL_SCENARIOS, SCENARIOS, TIMING
from harness.core.probe import Script, Step, copy_name, model_of
from harness.serving.scenarios import (
    INITIALIZATIONS,
    INTRA_OP_THREADS,
    KEPT_ANSWERS,
    LEAST_LOADS,
    affordable,
    NEW_SIZES,
    CYCLES,
    STAGGER_MS,
    START_UP,
    UPDATES,
    Scenario,
    copies,
    captured_so,
    in_turn,
    open_orders,
    reordered,
)
from harness.serving.settings.mitigations import MITIGATIONS

KINDS = {
    "load",
    "share",
    "calls",
    "serve",
    "drop",
    "capture",
    "barrier",
    "delay",
    "count_down",
    "memory",
    "exit",
    "fork",
    "join",
    "answer",
    "set_threads",
}
NAMES = ("dlrm", "din", "bert", "a b", "mmoe", "x1", "x")
SIZES = st.tuples(st.integers(1, 7), st.integers(2, 6))

each_scenario = pytest.mark.parametrize("scenario", INITIALIZATIONS.values(), ids=list(INITIALIZATIONS))


def forked(script: Script) -> set[int]:
    return {int(step[1]) for steps in script.threads for step in steps if step[0] == "fork"}


class Stuck(AssertionError):
    """No thread can go on."""


class Wrong(AssertionError):
    """A step that the worker could not do as it is meant."""


class Play:
    """Performs a script one step at a time, the next thread by ``chance``; remembers what became of every name."""

    def __init__(self, script: Script, chance: random.Random) -> None:
        self._script, self._chance = script, chance
        self._at = [0] * len(script.threads)
        self._waiting: dict[str, set[int]] = {}
        self._count = dict(script.latches)
        self._held: dict[str, int] = {}
        self._exited = False
        self._begun = set(range(len(script.threads))) - forked(script)
        self.loaded: set[str] = set()
        self.modules: Counter[str] = Counter()
        self.called: list[str] = []
        self.dropped: list[str] = []
        self.served: dict[str, set[str]] = {}
        self.log: list[tuple[int, Step]] = []

    def run(self) -> "Play":
        while not self._exited and any(
            at < len(steps) for at, steps in zip(self._at, self._script.threads, strict=True)
        ):
            able = [thread for thread in range(len(self._at)) if self._can_go_on(thread)]
            if not able:
                raise Stuck(f"threads stand at {self._at}, barriers {self._waiting}, latches {self._count}")
            self._do(self._chance.choice(able))
        if any(self._waiting.values()) or (any(self._count.values()) and not self._exited):
            raise Wrong(f"left over: barriers {self._waiting}, latches {self._count}")
        return self

    def _step(self, thread: int) -> Step | None:
        steps = self._script.threads[thread]
        return steps[self._at[thread]] if self._at[thread] < len(steps) else None

    def _can_go_on(self, thread: int) -> bool:
        step = self._step(thread)
        if step is None or thread not in self._begun or any(thread in threads for threads in self._waiting.values()):
            return False
        if step[0] == "join":
            return self._at[int(step[1])] == len(self._script.threads[int(step[1])])
        if step[0] == "lock" and step[1] in self._held:
            return False
        # Serving goes on until the latch opens; as a last step of the play it would never end.
        return step[0] != "serve" or self._count[str(step[2])] == 0 or step[1] not in self.served.get(str(step[2]), ())

    def _do(self, thread: int) -> None:
        step = self._step(thread)
        assert step is not None
        self.log.append((thread, step))
        if getattr(self, f"_do_{step[0]}")(thread, *map(str, step[1:])) is not False:
            self._at[thread] += 1

    def _need(self, condition: bool, step: str) -> None:
        if not condition:
            raise Wrong(step)

    def _do_load(self, _: int, name: str) -> None:
        self._need(name not in self.loaded, f"{name} is brought in twice")
        self.loaded.add(name)
        self.modules[name] += 1

    def _do_fork(self, _: int, thread: str) -> None:
        self._need(int(thread) not in self._begun, f"{thread} is forked twice")
        self._begun.add(int(thread))

    def _do_exit(self, _: int) -> None:
        self._exited = True

    def _do_join(self, _: int, thread: str) -> None:
        self._need(int(thread) in self._begun, f"{thread} is waited for before it is forked")

    def _do_share(self, _: int, name: str, source: str) -> None:
        self._need(name not in self.loaded, f"{name} is brought in twice")
        self._need(source in self.loaded, f"{name} shares {source} before it is there")
        self.loaded.add(name)

    def _do_calls(self, _: int, name: str) -> None:
        self._need(name in self.loaded, f"{name} is called before it is there")
        self._need(name not in self.dropped, f"{name} is called after it has been dropped")
        self.called.append(name)

    def _do_capture(self, _: int, name: str, mode: str, warm_calls: str) -> None:
        self._need(name in self.called, f"{name} is captured before its warm-up")
        self._need(mode in CAPTURE_MODES and int(warm_calls) >= 0, f"{mode} {warm_calls}")

    def _do_drop(self, _: int, name: str) -> None:
        self._need(name in self.called and name not in self.dropped, f"{name} is dropped too early or twice")
        self.dropped.append(name)

    def _do_serve(self, _: int, name: str, latch: str) -> bool:
        self._need(name in self.called, f"{name} serves before its warm-up")
        self.served.setdefault(latch, set()).add(name)
        return self._count[latch] == 0

    def _do_count_down(self, _: int, latch: str) -> None:
        self._need(self._count[latch] > 0, f"{latch} is counted down too often")
        self._count[latch] -= 1

    def _do_barrier(self, thread: int, name: str) -> bool:
        waiting = self._waiting.setdefault(name, set())
        waiting.add(thread)
        if len(waiting) < self._script.barriers[name]:
            return False
        for other in waiting:
            self._at[other] += 1
        waiting.clear()
        return False

    def _do_lock(self, thread: int, name: str) -> None:
        self._held[name] = thread

    def _do_unlock(self, thread: int, name: str) -> None:
        self._need(self._held.pop(name, None) == thread, f"{name} is let go by somebody who does not hold it")

    def _do_delay(self, _: int, milliseconds: str) -> None:
        self._need(int(milliseconds) >= 0, milliseconds)

    def _do_answer(self, _: int, name: str, thread: str, larger: str) -> None:
        self._need(name in self.called and name not in self.dropped, f"{name} answers before its warm-up")
        self._need(thread in ("own", "ends", "stays") and int(larger) >= 0, f"{thread} {larger}")

    def _do_set_threads(self, _: int, number: str) -> None:
        self._need(int(number) > 0, number)

    def _do_memory(self, _: int, label: str) -> None:
        self._need(bool(label), "memory without a label")


def steps_of(script: Script, *kinds: str) -> Iterator[Step]:
    return (step for steps in script.threads for step in steps if step[0] in kinds)


def written(scenario: Scenario, size: tuple[int, int]) -> tuple[list[str], Script]:
    models = list(NAMES[: size[0]])
    return models, scenario.write(models, size[1])


# the interpreter sees what it is for


def test_scripts_that_hang_or_cheat_are_seen() -> None:
    load: tuple[Step, ...] = (("load", "m"), ("calls", "m"))
    meet: tuple[Step, ...] = (("barrier", "x"), ("barrier", "y"))
    other: tuple[Step, ...] = (("barrier", "y"), ("barrier", "x"))
    stuck = (
        Script(threads=(meet, other), barriers={"x": 2, "y": 2}),
        Script(threads=(meet, meet), barriers={"x": 3, "y": 2}),
        Script(threads=((*load, ("serve", "m", "z")),), latches={"z": 1}),
    )
    for script in stuck:
        with pytest.raises(Stuck):
            Play(script, random.Random(0)).run()
    wrong: tuple[tuple[Step, ...], ...] = (
        (*load, ("load", "m")),
        (("calls", "m"),),
        (("share", "m", "n"),),
        (("load", "m"), ("drop", "m")),
        (("load", "m"), ("capture", "m", "global", 3)),
        (("load", "m"), ("serve", "m", "z")),
        (("count_down", "z"), ("count_down", "z")),
        (*load, ("drop", "m"), ("calls", "m")),
        load,
    )
    for steps in wrong:
        with pytest.raises(Wrong):
            Play(Script(threads=(steps,), latches={"z": 1}), random.Random(0)).run()


# every scenario


@each_scenario
@pytest.mark.parametrize("kinds", [("load",), ("calls",), ("load", "calls")])
@settings(max_examples=15)
@given(size=SIZES, seed=st.integers(0, 2**16))
def test_serialized_script_ends_in_every_order_and_does_such_steps_under_the_one_lock(
    scenario: Scenario, kinds: tuple[str, ...], size: tuple[int, int], seed: int
) -> None:
    _, plain = written(scenario, size)
    script = in_turn(plain, kinds)
    play = Play(script, random.Random(seed)).run()
    assert sorted(play.called) == sorted(copies(plain))
    holder: int | None = None
    for thread, step in play.log:
        if step[0] in kinds:
            assert holder == thread
        holder = thread if step[0] == "lock" else None if step[0] == "unlock" else holder
    unlocked = [tuple(step for step in steps if step[0] not in ("lock", "unlock")) for steps in script.threads]
    assert tuple(unlocked) == plain.threads
    assert in_turn(plain, ()) == plain


@each_scenario
@settings(max_examples=30)
@given(size=SIZES, seed=st.integers(0, 2**16))
def test_script_ends_in_every_order_of_its_threads(scenario: Scenario, size: tuple[int, int], seed: int) -> None:
    models, script = written(scenario, size)
    play = Play(script, random.Random(seed)).run()
    assert {model_of(name) for name in play.called} == set(models)
    assert sorted(play.called) == sorted(play.loaded) == sorted(copies(script))
    assert all(play.modules[name] <= 1 for name in play.loaded)


@each_scenario
@settings(max_examples=15)
@given(size=SIZES, seed=st.integers(0, 2**16), sick=st.sets(st.sampled_from(NAMES), min_size=1))
def test_failed_models_keep_nobody_waiting(
    scenario: Scenario, size: tuple[int, int], seed: int, sick: set[str]
) -> None:
    """A worker leaves the steps of a failed model out, and nothing else."""
    models, script = written(scenario, size)
    left_out = ("load", "share", "calls", "serve", "answer", "drop", "capture")
    threads = tuple(
        tuple(step for step in steps if not (step[0] in left_out and model_of(str(step[1])) in sick))
        for steps in script.threads
    )
    play = Play(replace(script, threads=threads), random.Random(seed)).run()
    assert {model_of(name) for name in play.called} == set(models) - sick


@each_scenario
@settings(max_examples=30)
@given(size=SIZES)
def test_script_says_how_many_meet_and_how_often_a_latch_is_counted_down(
    scenario: Scenario, size: tuple[int, int]
) -> None:
    _, script = written(scenario, size)
    assert 1 <= len(script.threads) - len(forked(script)) <= max(2, size[1], scenario.exits * (1 + size[0]))
    assert len(forked(script)) in (0, size[1])
    assert all(script.threads)
    assert {step[0] for steps in script.threads for step in steps} <= KINDS
    parties = {
        name: [sum(step == ("barrier", name) for step in steps) for steps in script.threads]
        for name in {str(step[1]) for step in steps_of(script, "barrier")}
    }
    assert {name: sum(map(bool, counts)) for name, counts in parties.items()} == dict(script.barriers)
    assert all(max(counts) == 1 for counts in parties.values())
    counted = Counter(str(step[1]) for step in steps_of(reordered(script, scenario.orders), "count_down"))
    assert counted == dict(script.latches)
    assert {str(step[2]) for step in steps_of(script, "serve")} == set(script.latches)


@each_scenario
@given(size=SIZES)
def test_copies_of_a_model_have_names_of_their_own_and_the_first_has_the_models(
    scenario: Scenario, size: tuple[int, int]
) -> None:
    models, script = written(scenario, size)
    names = copies(script)
    assert len(set(names)) == len(names)
    assert set(models) <= set(names)
    for model in models:
        mine = [name for name in names if model_of(name) == model]
        assert len({name.partition("#")[2] for name in mine}) == len(mine)


@given(name=st.sampled_from(NAMES), index=st.integers(0, 99))
def test_copy_reads_back_as_its_model(name: str, index: int) -> None:
    assert model_of(copy_name(name, index)) == name
    assert (copy_name(name, index) == name) is (index == 0)


@each_scenario
def test_equal_input_writes_an_equal_script(scenario: Scenario) -> None:
    assert scenario.write(["a", "b", "c"], 2) == scenario.write(["a", "b", "c"], 2)


# the list


def test_alone_and_the_initializations_are_the_scenarios_and_timing_is_none() -> None:
    assert [name for name in SCENARIOS if name in DEFAULT_SCENARIOS] == list(DEFAULT_SCENARIOS)
    assert len(SCENARIOS) == len(set(SCENARIOS)) and SCENARIOS[0] == "alone"
    assert TIMING not in SCENARIOS and CELL_SCENARIOS == (*SCENARIOS, TIMING)
    assert all(name == scenario.name for name, scenario in INITIALIZATIONS.items())


def test_words_fit_into_a_column_and_are_distinguished() -> None:
    words = [scenario.words for scenario in INITIALIZATIONS.values()]
    assert len(set(words)) == len(words)
    assert max(map(len, words)) <= 20
    assert all(scenario.about and "\n" not in scenario.about for scenario in INITIALIZATIONS.values())


# what each is for


def flat(name: str, models: Sequence[str] = ("a", "b", "c"), threads: int = 2) -> list[list[Step]]:
    return [list(steps) for steps in INITIALIZATIONS[name].write(list(models), threads).threads]


def both(name: str) -> list[Step]:
    return [("load", name), ("calls", name)]


@pytest.mark.parametrize("name", ["sequential", "processes"])
def test_models_one_after_another_share_the_main_thread(name: str) -> None:
    assert flat(name) == [[*both("a"), *both("b"), *both("c")]]


def test_concurrent_threads_start_from_a_barrier_and_divide_the_models() -> None:
    assert flat("concurrent") == [[("barrier", "start"), *both("a"), *both("c")], [("barrier", "start"), *both("b")]]


def test_first_models_are_brought_up_again_where_there_are_fewer_than_threads() -> None:
    names = [[step[1] for step in steps if step[0] == "load"] for steps in flat("concurrent", threads=8)]
    assert names == [["a"], ["b"], ["c"], ["a#1"], ["b#1"], ["c#1"], ["a#2"], ["b#2"]]
    assert INITIALIZATIONS["concurrent"].write(["a"], 3).barriers == {"start": 3}


ALL_AT_WORK = ["concurrent", "staggered", "inter_op", "small_pools", "reinit", "cuda_graphs", "while_serving"]


@pytest.mark.parametrize("name", ALL_AT_WORK)
@given(size=SIZES)
def test_every_thread_brings_something_up_and_no_model_much_more_often_than_another(
    name: str, size: tuple[int, int]
) -> None:
    models, script = written(INITIALIZATIONS[name], size)
    assert len(script.threads) == size[1]
    assert all(any(step[0] == "load" for step in steps) for steps in script.threads)
    for steps in script.threads:
        here = [step[1] for step in steps if step[0] == "load"]
        assert [step[1] for step in steps if step[0] == "calls"] == here
    if name != "while_serving":
        brought = Counter(model_of(str(step[1])) for step in steps_of(script, "load"))
        times = [brought[model] for model in models]
        within = CYCLES if name == "reinit" else 1
        assert times == sorted(times, reverse=True)  # the first ones are brought up again
        assert times[0] - times[-1] <= within
        assert sum(times) == max(size) * within


def test_staggered_threads_start_one_after_another() -> None:
    delays = [step for steps in flat("staggered", threads=3) for step in steps if step[0] == "delay"]
    assert delays == [("delay", 0), ("delay", STAGGER_MS), ("delay", 2 * STAGGER_MS)]


@given(size=SIZES)
def test_shared_module_is_loaded_once_and_called_by_every_thread(size: tuple[int, int]) -> None:
    models, script = written(INITIALIZATIONS["shared"], size)
    assert len(script.threads) == size[1]
    assert sorted(str(step[1]) for step in steps_of(script, "load")) == sorted(models)
    assert all(step[2] == model_of(str(step[1])) for step in steps_of(script, "share"))
    for steps in script.threads:
        assert [model_of(str(step[1])) for step in steps if step[0] == "calls"] == models


@given(size=SIZES, seed=st.integers(0, 99))
def test_shared_module_is_called_only_when_every_thread_has_it(size: tuple[int, int], seed: int) -> None:
    _, script = written(INITIALIZATIONS["shared"], size)
    log = Play(script, random.Random(seed)).run().log
    ready: Counter[str] = Counter()
    for _, step in log:
        if step[0] in ("load", "share"):
            ready[model_of(str(step[1]))] += 1
        elif step[0] == "calls":
            assert ready[model_of(str(step[1]))] == size[1]


@given(size=SIZES)
def test_same_file_is_loaded_by_every_thread(size: tuple[int, int]) -> None:
    models, script = written(INITIALIZATIONS["same_file"], size)
    for steps in script.threads:
        assert [model_of(str(step[1])) for step in steps if step[0] == "load"] == models


def shares(models: Sequence[str], threads: int) -> Counter[str]:
    """Return how often each model is brought up so that every thread has one."""
    return Counter(models[index % len(models)] for index in range(max(threads, len(models))))


@given(size=SIZES)
def test_python_server_loads_every_model_often_enough_and_keeps_one_module_of_each_loader(
    size: tuple[int, int],
) -> None:
    models, script = written(INITIALIZATIONS["python_server"], size)
    loading = [steps for steps in script.threads if any(step[0] == "count_down" for step in steps)]
    verbs = [[step[0] for step in steps] for steps in loading]
    assert all(steps == ["barrier", *["load", "calls", "drop"] * (len(steps) // 3), "count_down"] for steps in verbs)
    loaded = Counter(model_of(str(step[1])) for steps in loading for step in steps if step[0] == "load")
    assert loaded == shares(models, max(LEAST_LOADS, len(loading)))
    keeping = INITIALIZATIONS["python_keeping"].write(models, size[1])
    assert (script.keeps, keeping) == (0, replace(script, keeps=KEPT_ANSWERS))


@pytest.mark.parametrize(
    ("load_s", "loads"),
    [
        ({}, {"slow": 8, "quick": 8}),
        ({"slow": 0.1, "quick": 0.1}, {"slow": 8, "quick": 8}),
        ({"slow": 3.0, "quick": 0.1}, {"slow": 4, "quick": 8}),  # three more in the ten seconds, and its first
        ({"slow": 13.0, "quick": 0.1}, {"slow": 1, "quick": 8}),
        ({"slow": 13.0, "quick": 13.0}, {"slow": 1, "quick": 1}),
    ],
)
def test_files_that_load_slowly_are_loaded_again_for_ten_seconds_at_most(
    load_s: dict[str, float], loads: dict[str, int]
) -> None:
    whole = INITIALIZATIONS["python_server"].write(["slow", "quick"], 4)
    script = affordable(INITIALIZATIONS["python_server"], ["slow", "quick"], 4, load_s)
    loading = [steps for steps in script.threads if any(step[0] == "count_down" for step in steps)]
    assert Counter(model_of(str(step[1])) for steps in loading for step in steps if step[0] == "load") == loads
    assert script.threads[:2] == whole.threads[:2]  # who serves stays
    assert Counter(step[0] for steps in loading for step in steps) == {
        "barrier": 2,
        "count_down": 2,
        **dict.fromkeys(("load", "calls", "drop"), sum(loads.values())),
    }


def test_what_every_thread_loads_once_stays_however_slow_it_is() -> None:
    for name in ("concurrent", "while_serving", "rolling"):
        scenario = INITIALIZATIONS[name]
        assert affordable(scenario, ["slow"], 4, {"slow": 60.0}) == scenario.write(["slow"], 4), name


@given(size=SIZES)
def test_servers_serve_while_every_model_is_loaded_once(size: tuple[int, int]) -> None:
    models, script = written(INITIALIZATIONS["while_serving"], size)
    serving = [steps for steps in script.threads if any(step[0] == "serve" for step in steps)]
    loading = [steps for steps in script.threads if any(step[0] == "count_down" for step in steps)]
    assert serving
    assert loading
    assert len(serving) + len(loading) == len(script.threads) == script.barriers["serving"]
    for latch in script.latches:
        assert all(sum(step[0] == "serve" and step[2] == latch for step in steps) == 1 for steps in serving)
    loaded = Counter(model_of(str(step[1])) for steps in loading for step in steps if step[0] == "load")
    again = shares(models, len(loading))
    assert loaded == again
    assert INITIALIZATIONS["while_serving"].rounds == 1


@given(size=SIZES, seed=st.integers(0, 99))
def test_each_model_is_replaced_by_its_next_copy_while_others_serve(size: tuple[int, int], seed: int) -> None:
    models, script = written(INITIALIZATIONS["rolling"], size)
    *serving, updates = script.threads
    assert len(serving) == max(1, size[1] - 1)
    assert all(any(step[0] == "serve" for step in steps) for steps in serving)
    here: list[str] = []
    for step in updates:
        if step[0] == "calls":
            here.append(str(step[1]))
        elif step[0] == "drop":
            assert here.count(str(step[1])) == 1 and sum(model_of(name) == model_of(str(step[1])) for name in here) == 2
            here.remove(str(step[1]))
        elif step[0] == "memory":
            assert sorted(map(model_of, here)) == sorted(models)
    assert [step[1] for step in updates if step[0] == "memory"] == [f"update {number}" for number in range(UPDATES)]
    Play(script, random.Random(seed)).run()
    assert INITIALIZATIONS["rolling"].rounds == UPDATES


@pytest.mark.parametrize(("name", "then"), [("thread_per_request", "ends"), ("thread_per_connection", "stays")])
@given(size=SIZES)
def test_every_model_answers_in_new_threads_of_which_each_cycle_has_as_many(
    name: str, then: str, size: tuple[int, int]
) -> None:
    scenario = INITIALIZATIONS[name]
    for models, script in (written(scenario, size), ([f"m{index}" for index in range(100)], None)):
        lines = (script or scenario.write(models, size[1])).threads
        cycles = [
            [step for line in lines for step in line[line.index(("barrier", begin)) : line.index(("barrier", end))]]
            for begin, end in ((f"cycle {index}", f"end of cycle {index}") for index in range(CYCLES))
        ]
        answers = [[step for step in steps if step[0] == "answer"] for steps in cycles]
        assert {len(steps) for steps in answers} == {scenario.per_cycle(len(models))}
        assert {step[2:] for steps in answers for step in steps} == {(then, 0)}
        assert {model_of(str(step[1])) for steps in answers for step in steps} == set(models)


@given(size=SIZES)
def test_all_threads_have_one_size_of_pool_at_a_time_and_large_and_small_ones_take_turns(size: tuple[int, int]) -> None:
    _, script = written(INITIALIZATIONS["thread_counts"], size)
    sizes = [tuple(step[1] for step in steps if step[0] == "set_threads") for steps in script.threads]
    assert set(sizes) == {INTRA_OP_THREADS}
    assert INTRA_OP_THREADS == INTRA_OP_THREADS[::-1] and len(INTRA_OP_THREADS) == CYCLES - 1


@given(size=SIZES)
def test_no_size_is_asked_in_two_cycles_and_recorded_requests_come_last(size: tuple[int, int]) -> None:
    _, script = written(INITIALIZATIONS["growing_shapes"], size)
    for steps in script.threads:
        asked: dict[str, list[int]] = {}
        for step in steps:
            if step[0] == "answer":
                asked.setdefault(str(step[1]), []).append(int(step[3]))
        assert all(larger == sorted([*range(1, CYCLES * NEW_SIZES + 1)] * 2) for larger in asked.values())
        after = steps[max(index for index, step in enumerate(steps) if step[0] == "memory" or step[0] == "answer") :]
        called = [script_step[1] for script_step in after if script_step[0] == "calls"]
        assert len(called) == len(asked)


@pytest.mark.parametrize("name", ["inter_op", "small_pools"])
def test_calls_go_through_the_inter_op_pool(name: str) -> None:
    script = INITIALIZATIONS[name].write(["a", "b"], 2)
    assert script.calls_through == "inter_op"
    assert INITIALIZATIONS[name].native_only
    assert script == replace(INITIALIZATIONS["concurrent"].write(["a", "b"], 2), calls_through="inter_op")


def test_nothing_else_goes_through_a_pool() -> None:
    others = [scenario for name, scenario in INITIALIZATIONS.items() if name not in ("inter_op", "small_pools")]
    assert {scenario.write(["a"], 2).calls_through for scenario in others} == {"thread"}
    assert not any(scenario.native_only for scenario in others)
    assert [name for name, scenario in INITIALIZATIONS.items() if scenario.pools is not None] == ["small_pools"]
    assert INITIALIZATIONS["small_pools"].pools == (1, 1)


@given(size=SIZES, seed=st.integers(0, 99))
def test_memory_is_read_after_every_cycle_when_everything_is_gone(size: tuple[int, int], seed: int) -> None:
    models, script = written(INITIALIZATIONS["reinit"], size)
    play = Play(script, random.Random(seed)).run()
    here: set[str] = set()
    readings = []
    for _, step in play.log:
        if step[0] == "load":
            here.add(str(step[1]))
        elif step[0] == "drop":
            here.remove(str(step[1]))
        elif step[0] == "memory":
            assert here == set()
            readings.append(step[1])
    assert readings == [f"cycle {index}" for index in range(CYCLES)]
    again = shares(models, size[1])
    assert Counter(map(model_of, play.dropped)) == {model: times * CYCLES for model, times in again.items()}
    assert INITIALIZATIONS["reinit"].rounds == CYCLES


@pytest.mark.parametrize("mode", CAPTURE_MODES)
def test_every_graph_is_captured_after_warm_up_in_the_mode_that_is_asked_for(mode: str) -> None:
    scenario = INITIALIZATIONS["cuda_graphs"]
    script = captured_so(scenario.write(["a", "b", "c"], 2), mode=mode, warm_calls=2)
    assert scenario.graphs
    assert sorted(steps_of(script, "capture")) == [("capture", name, mode, 2) for name in ("a", "b", "c")]
    Play(script, random.Random(0)).run()


@pytest.mark.parametrize("mode", CAPTURE_MODES)
def test_thread_local_capture_is_a_mitigation_of_graphs_alone(mode: str) -> None:
    for name, scenario in INITIALIZATIONS.items():
        script = captured_so(scenario.write(["a", "b"], 2), mode=mode, warm_calls=0)
        for order, captured in (("capture", ("thread_local", 0)), ("warm_capture", (mode, WARM_CALLS))):
            mitigated = reordered(script, (order,))
            assert {step[2:] for step in steps_of(mitigated, "capture")} == ({captured} if scenario.graphs else set())
            assert [step for step in mitigated.threads[0] if step[0] != "capture"] == [
                step for step in script.threads[0] if step[0] != "capture"
            ]
            assert (order in scenario.orders) is (name == "cuda_graphs")


@given(size=SIZES, seed=st.integers(0, 99))
def test_threads_take_turns_where_any_of_them_could_end_the_capture_of_another(
    size: tuple[int, int], seed: int
) -> None:
    models, script = written(INITIALIZATIONS["cuda_graphs"], size)
    script = captured_so(script, mode="global", warm_calls=3)
    for steps in script.threads:
        for before, step, after in zip(steps, steps[1:], steps[2:], strict=False):
            if step[0] in ("load", "calls", "capture"):
                assert (before, after) == (("lock", START_UP), ("unlock", START_UP))
    assert reordered(script, ("load", "calls")) == script
    assert set(map(model_of, Play(script, random.Random(seed)).run().called)) == set(models)


def test_how_graphs_are_captured_changes_no_other_script() -> None:
    for name, scenario in INITIALIZATIONS.items():
        script = scenario.write(["a", "b"], 3)
        assert (captured_so(script, mode="global", warm_calls=0) == script) is (name != "cuda_graphs")


def test_an_order_that_captures_keep_already_is_not_open() -> None:
    graphs, other = INITIALIZATIONS["cuda_graphs"], INITIALIZATIONS["concurrent"]
    assert open_orders(graphs, mode="thread_local", warm_calls=3) == ("load", "calls")
    assert open_orders(graphs, mode="relaxed", warm_calls=0) == ("load", "calls", "warm_capture")
    assert open_orders(graphs, mode="global", warm_calls=3) == ("capture",)
    assert open_orders(other, mode="global", warm_calls=0) == other.orders


@pytest.mark.parametrize(("name", "warm"), [("prefork", True), ("prefork_cold", False)])
@given(size=SIZES, seed=st.integers(0, 99))
def test_forked_processes_call_every_model_that_was_loaded_before(
    name: str, warm: bool, size: tuple[int, int], seed: int
) -> None:
    scenario = INITIALIZATIONS[name]
    models, script = written(scenario, size)
    parent, *workers = script.threads
    assert forked(script) == set(range(1, size[1] + 1)) and scenario.forks
    for steps in workers:
        assert not [step for step in steps if step[0] == "load"]
        assert [model_of(str(step[1])) for step in steps if step[0] == "calls"] == models
    log = Play(script, random.Random(seed)).run().log
    done = [step[0] for thread, step in log if thread == 0]
    before = [verb for verb in done if verb in ("load", "calls")]
    assert before == ["load", "calls"] * len(models) if warm else before == ["load"] * len(models)
    assert done == [*before, *["fork"] * size[1], *["join"] * size[1]]


@given(size=SIZES, seed=st.integers(0, 99))
def test_main_thread_exits_while_every_model_is_called_and_under_its_mitigation_after_all_threads(
    size: tuple[int, int], seed: int
) -> None:
    models, plain = written(INITIALIZATIONS["exit"], size)
    main, *serving = plain.threads
    assert main[-1] == ("exit",) and not plain.rests
    assert {model_of(str(steps[-1][1])) for steps in serving} == set(models)
    assert {steps[-1][0] for steps in serving} == {"serve"}
    log = Play(reordered(plain, ("exit",)), random.Random(seed)).run().log
    assert log[-1] == (0, ("exit",))
    assert [step for thread, step in log if thread == 0 and step[0] == "join"] == [
        ("join", index) for index in range(1, len(plain.threads))
    ]


@each_scenario
@settings(max_examples=15)
@given(size=SIZES, seed=st.integers(0, 99))
def test_after_the_fork_every_process_loads_its_own_and_no_other_script_changes(
    scenario: Scenario, size: tuple[int, int], seed: int
) -> None:
    models, plain = written(scenario, size)
    script = reordered(plain, ("fork",))
    assert (script == plain) is not scenario.forks
    if not scenario.forks:
        return
    play = Play(script, random.Random(seed)).run()
    parent, *workers = script.threads
    assert {step[0] for step in parent} == {"fork", "join"}
    assert all([step[0] for step in steps] == ["load", "calls"] * len(models) for steps in workers)
    assert sorted(play.called) == sorted(copies(script))


def test_only_a_shared_module_needs_models_without_state() -> None:
    assert [name for name, scenario in INITIALIZATIONS.items() if scenario.stateless] == ["shared"]
    assert [name for name, scenario in INITIALIZATIONS.items() if scenario.processes] == ["processes"]
    assert [name for name, scenario in INITIALIZATIONS.items() if scenario.forks] == ["prefork", "prefork_cold"]


def test_what_a_scenario_is_mitigated_by_is_a_mitigation_that_can_matter_there() -> None:
    for scenario in INITIALIZATIONS.values():
        for name in scenario.mitigations:
            assert set(MITIGATIONS[name].order) <= set(scenario.orders)
