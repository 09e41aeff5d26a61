"""The ways in which a server may start: each scenario writes the script that one process performs.

A scenario is data for two workers that know a handful of steps (``docs/formats/wire.md``); nothing in them knows its
name. Whatever fails in one is also tried in the old release: what hangs there too is no regression.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final

from harness.core.plan import WARM_CALLS
from harness.core.probe import Script, Step, copy_name, model_of

# Far enough apart that one thread calls while the next loads: that takes 1 to 100 ms (docs/evidence.md#first-calls).
STAGGER_MS: Final = 30
# Enough for a slope of the memory after the first cycle, which fills caches.
CYCLES: Final = 6
# As many of the model updates of a server that lives on.
UPDATES: Final = CYCLES
# New threads in each cycle, at the least: as many as production sees in a second and a gate can afford.
NEW_THREADS: Final = 16
# Further sizes of each model's inputs in each cycle: with all cycles more than any depth of specialization.
NEW_SIZES: Final = 6
# Intra-op threads in each cycle but the first, which has the profile's. After the first, cycles with four and with one
# lie symmetrically, so that the slope of the memory is that of what is left behind.
INTRA_OP_THREADS: Final = (4, 1, 4, 1, 4)
# Each load of a Python server under traffic is another chance to meet a call that is not quite over
# (docs/adr/0050-python-servers.md).
LEAST_LOADS: Final = 16
# But repeated loads may take no longer than this all together: they are chances more, and a file that takes 13 s to
# load would be loaded for minutes.
REPEATED_LOADS_S: Final = 10.0
# What a task in the inter-op pool still refers to when its call has answered: of a thread's last few calls.
KEPT_ANSWERS: Final = 16
# Long enough that every request thread is in the middle of its calls.
EXIT_AFTER_MS: Final = 200
NEW_THREAD: Final = "new thread"
# The lock of a server that brings its models up one after another.
START_UP: Final = "start-up"

# The mode in which only what its own thread does can end a capture, and the one in which what any thread does can.
THREAD_LOCAL: Final = "thread_local"
GLOBAL: Final = "global"
# What a thread does with the device, of the steps of a script that captures.
ON_THE_DEVICE: Final = ("load", "calls", "capture")

# The cell of a model's times is named like a scenario and is none: naming scenarios never drops timing.
TIMING: Final = "latency"

Writer = Callable[[Sequence[str], int], Script]


def _one(_models: int) -> int:
    return 1


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One way of initialization.

    Attributes:
        words: what a reader calls it, at most 20 characters.
        write: (models, threads) -> the script of one process.
        graphs: whether it captures the work of calls as graphs, which not every device can.
        python_only: it is about servers written in Python, so the Python worker does it whoever does the others.
        variant_of: the scenario that it belongs to: where that one is planned, so is this, for the models and runtimes
            that it can matter to.
        pools: (intra-op, inter-op) sizes in place of the profile's.
        processes: whether as many processes as threads do it at the same time.
        forks: whether as many processes as threads are forked, and call what was loaded before.
        exits: whether the process ends with teardown, while other threads live; no other scenario has any.
        stateless: a module that keeps state between calls cannot take part: its answers race by nature.
        larger_inputs: only models whose input sets show which dimensions may be larger take part.
        on_request: it shows what no other one does, and its planted defects are probed only where it is planned.
        growth_per: of what the growth of memory is told; ``per_cycle``: models -> how many of those a cycle has.
        spares_loads: repeated loads are chances more, and may be fewer: see ``affordable``.
        mitigations: mitigations that every run tries on what fails here, beside those that it tries on every red cell.
    """

    name: str
    words: str
    about: str
    write: Writer
    native_only: bool = False
    graphs: bool = False
    python_only: bool = False
    variant_of: str = ""
    pools: tuple[int, int] | None = None
    processes: bool = False
    forks: bool = False
    exits: bool = False
    rounds: int = 1
    stateless: bool = False
    larger_inputs: bool = False
    on_request: bool = False
    spares_loads: bool = False
    growth_per: str = "cycle"
    per_cycle: Callable[[int], int] = _one
    mitigations: tuple[str, ...] = ()

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders of loading and calling that could be otherwise here, see ``reordered``."""
        if self.processes:
            return ()
        if self.exits:
            return ("exit",)
        if self.forks:
            return ("fork", "forked_threads")
        return ("load", "calls", "capture", "warm_capture") if self.graphs else ("load", "calls")


def open_orders(scenario: Scenario, *, mode: str, warm_calls: int) -> tuple[str, ...]:
    """Return the orders that are not kept already where graphs are captured so, see ``captured_so``."""
    if not scenario.graphs:
        return scenario.orders
    kept = {"load", "calls"} if mode == GLOBAL else {"capture"}
    if warm_calls >= WARM_CALLS:
        kept.add("warm_capture")
    return tuple(order for order in scenario.orders if order not in kept)


def copies(script: Script) -> tuple[str, ...]:
    """Return the names that act in a script, copies included, in the order of their first step."""
    return tuple(
        dict.fromkeys(str(step[1]) for steps in script.threads for step in steps if step[0] in ("load", "share"))
    )


def captured_so(script: Script, *, mode: str, warm_calls: int) -> Script:
    """Return ``script`` with every graph captured in ``mode``, after so many calls in the stream of the capture.

    In mode ``global`` threads take turns at loading, calling and capturing, as a server that captures so has to: the
    memory that a first call takes, and the wait for the device before a capture, end the capture of any other thread.
    """
    captured = _captures(script, lambda step: (*step[:2], mode, warm_calls))
    return in_turn(captured, ON_THE_DEVICE) if mode == GLOBAL and captured != script else captured


def _captures(script: Script, written: Callable[[Step], Step]) -> Script:
    threads = tuple(
        tuple(written(step) if step[0] == "capture" else step for step in steps) for steps in script.threads
    )
    return replace(script, threads=threads)


def reordered(script: Script, orders: Collection[str]) -> Script:
    """Return ``script`` with ``"load"`` or ``"calls"`` done one at a time.

    Under ``"fork"`` it does them only after forking. Under ``"forked_threads"`` each forked process has a pool of one
    thread, which needs none that it has not inherited. Under ``"exit"`` it exits when its threads have ended, under
    ``"capture"`` each graph is captured in mode ``thread_local``, under ``"warm_capture"`` after calls in its stream.
    """
    if "capture" in orders:
        script = _captures(script, lambda step: (*step[:2], THREAD_LOCAL, *step[3:]))
    if "warm_capture" in orders:
        script = _captures(script, lambda step: (*step[:3], WARM_CALLS))
    script = one_thread_after_fork(script) if "forked_threads" in orders else script
    script = after_fork(script) if "fork" in orders else script
    script = after_threads(script) if "exit" in orders else script
    return in_turn(script, [order for order in orders if order in ("load", "calls")])


def after_threads(script: Script) -> Script:
    """Return ``script`` with every thread that serves told to end, and waited for, before the process exits."""
    others = [index for index, steps in enumerate(script.threads) if ("exit",) not in steps]
    stop: tuple[Step, ...] = (*(("count_down", latch) for latch in script.latches), *(("join", i) for i in others))
    threads = tuple(
        tuple(part for step in steps for part in ((*stop, step) if step == ("exit",) else (step,)))
        for steps in script.threads
    )
    return replace(script, threads=threads)


def one_thread_after_fork(script: Script) -> Script:
    """Return ``script`` with an intra-op pool of one thread in each process that is forked."""
    forked = _forked_threads(script)
    threads = ((("set_threads", 1), *steps) if index in forked else steps for index, steps in enumerate(script.threads))
    return replace(script, threads=tuple(threads))


def _forked_threads(script: Script) -> set[str | int]:
    return {step[1] for steps in script.threads for step in steps if step[0] == "fork"}


def after_fork(script: Script) -> Script:
    """Return ``script`` with models loaded and called in the processes that are forked, not in the one that forks."""
    forked = _forked_threads(script)

    def in_forked(steps: Sequence[Step]) -> Iterator[Step]:
        loaded = set()
        for step in steps:
            if step[0] in ("share", "calls") and step[1] not in loaded:
                loaded.add(step[1])
                yield "load", step[1]
            if step[0] != "share":
                yield step

    threads = tuple(
        tuple(in_forked(steps))
        if index in forked
        else tuple(step for step in steps if not forked or step[0] not in ("load", "calls"))
        for index, steps in enumerate(script.threads)
    )
    return replace(script, threads=threads)


def in_turn(script: Script, steps: Collection[str]) -> Script:
    """Return ``script`` with one lock around each of ``steps``, such as ``"load"``: one happens at a time.

    One lock for all kinds: where loads and calls take turns, nobody loads while another one makes its first calls. A
    step that takes its turn already is left as it is.
    """
    if not steps:
        return script
    lock, unlock = ("lock", START_UP), ("unlock", START_UP)

    def locked(before: Step, step: Step) -> tuple[Step, ...]:
        return (lock, step, unlock) if step[0] in steps and before != lock else (step,)

    threads = tuple(
        tuple(part for before, step in pairwise((("",), *thread)) for part in locked(before, step))
        for thread in script.threads
    )
    return replace(script, threads=threads)


def _load_and_call(names: Iterable[str]) -> tuple[Step, ...]:
    return tuple(step for name in names for step in (("load", name), ("calls", name)))


def _share_and_call(names: Iterable[tuple[str, str]]) -> tuple[Step, ...]:
    """Return the steps for (name, source): a name uses the module that its source has loaded."""
    return tuple(step for name, source in names for step in (("share", name, source), ("calls", name)))


def _sequential(models: Sequence[str], _threads: int) -> Script:
    return Script(threads=(_load_and_call(models),))


def _shares(models: Sequence[str], threads: int, copy: int = 0) -> list[list[str]]:
    """Return what each thread loads, some models again if there are fewer; ``copy`` is 0, later ones higher."""
    again = -(-threads // len(models))  # so many copies of a model at the most
    return [
        [copy_name(name, copy * again + index // len(models)) for name in models[index % len(models) :: threads]]
        for index in range(threads)
    ]


def _concurrent(models: Sequence[str], threads: int) -> Script:
    return Script(
        threads=tuple((("barrier", "start"), *_load_and_call(names)) for names in _shares(models, threads)),
        barriers={"start": threads},
    )


def _staggered(models: Sequence[str], threads: int) -> Script:
    together = _concurrent(models, threads)
    return Script(
        threads=tuple(
            (steps[0], ("delay", index * STAGGER_MS), *steps[1:]) for index, steps in enumerate(together.threads)
        ),
        barriers=together.barriers,
    )


def _shared(models: Sequence[str], threads: int) -> Script:
    lines: list[list[Step]] = [[] for _ in range(threads)]
    for model in models:
        for index, line in enumerate(lines):
            name = copy_name(model, index)
            line.extend([("load", model)] if index == 0 else [])
            line.append(("barrier", f"{model} loaded"))
            line.extend([] if index == 0 else [("share", name, model)])
            line.extend([("barrier", f"{model} shared"), ("calls", name)])
    barriers = {f"{model} {what}": threads for model in models for what in ("loaded", "shared")}
    return Script(threads=tuple(map(tuple, lines)), barriers=barriers)


def _same_file(models: Sequence[str], threads: int) -> Script:
    return Script(
        threads=tuple(
            tuple(step for model in models for step in (("barrier", model), *_load_and_call([copy_name(model, index)])))
            for index in range(threads)
        ),
        barriers=dict.fromkeys(models, threads),
    )


def _python_server(models: Sequence[str], threads: int) -> Script:
    return _under_traffic(models, threads, loads=LEAST_LOADS, drops=True)


def _python_server_keeping(models: Sequence[str], threads: int) -> Script:
    return replace(_python_server(models, threads), keeps=KEPT_ANSWERS)


def _under_traffic(models: Sequence[str], threads: int, *, loads: int = 0, drops: bool = False) -> Script:
    """Return a script where half the threads serve, the others load >= ``loads`` models; ``drops``: each is let go."""
    servers = max(1, threads // 2)
    loaders = max(1, threads - servers)
    shares = _shares(models, max(loaders, loads))
    served_from = -(-len(shares) // len(models))  # the loaders' copies come first
    lines: list[tuple[Step, ...]] = []
    for index in range(servers):
        model = models[index * len(models) // servers]
        name = copy_name(model, served_from + index)
        lines.append((*_load_and_call([name]), ("barrier", "serving"), ("serve", name, "loaded")))
    for index in range(loaders):
        names = [name for share in shares[index::loaders] for name in share]
        steps = (step for name in names for step in (*_load_and_call([name]), *([("drop", name)] if drops else [])))
        lines.append((("barrier", "serving"), *steps, ("count_down", "loaded")))
    return Script(
        threads=tuple(lines),
        barriers={"serving": servers + loaders},
        latches={"loaded": loaders},
    )


def affordable(scenario: Scenario, models: Sequence[str], threads: int, load_s: Mapping[str, float]) -> Script:
    """Return the script of ``scenario``, where it ``spares_loads`` with as many repeated ones as there is time for.

    Those of the models that load fastest stay. A repeated load is one of a further copy that is dropped again.
    ``load_s``: model -> seconds that one load of it takes; one that is not there takes none.
    """
    script = scenario.write(models, threads)
    if not scenario.spares_loads:
        return script
    dropped = {str(step[1]) for steps in script.threads for step in steps if step[0] == "drop"}
    repeated = [name for name in copies(script) if name in dropped and name != model_of(name)]
    left_s, too_many = REPEATED_LOADS_S, set[str]()
    for name in sorted(repeated, key=lambda copy: load_s.get(model_of(copy), 0.0)):
        left_s -= load_s.get(model_of(name), 0.0)
        if left_s < 0:
            too_many.add(name)
    threads_left = (tuple(step for step in steps if step[1] not in too_many) for steps in script.threads)
    return replace(script, threads=tuple(threads_left))


def _inter_op(models: Sequence[str], threads: int) -> Script:
    together = _concurrent(models, threads)
    return Script(threads=together.threads, barriers=together.barriers, calls_through="inter_op")


def _reinit(models: Sequence[str], threads: int) -> Script:
    def steps(thread: int, cycle: int) -> Iterator[Step]:
        names = _shares(models, threads, cycle)[thread]
        yield from _load_and_call(names)
        yield from (("drop", name) for name in names)

    return _in_cycles(threads, steps)


def _in_cycles(
    threads: int, steps: Callable[[int, int], Iterable[Step]], before: Sequence[Sequence[Step]] = ()
) -> Script:
    """Return a script of ``steps(thread, cycle)`` in step, memory read after each cycle; ``before`` comes first."""
    lines: list[tuple[Step, ...]] = []
    for thread in range(threads):
        line: list[Step] = [*before[thread]] if before else []
        for cycle in range(CYCLES):
            line.append(("barrier", f"cycle {cycle}"))
            line.extend(steps(thread, cycle))
            line.append(("barrier", f"end of cycle {cycle}"))
            line.extend([("memory", f"cycle {cycle}")] if thread == 0 else [])
        lines.append((*line, ("barrier", "measured")))  # who has ended is no thread of the process any more
    barriers = {f"{what}cycle {cycle}": threads for cycle in range(CYCLES) for what in ("", "end of ")}
    return Script(threads=tuple(lines), barriers={**barriers, "measured": threads})


def _new_threads(models: int) -> int:
    """Return how many new threads each cycle has: in all, every model answers in one of them at least."""
    return max(NEW_THREADS, -(-models // CYCLES))


def _with_new_threads(models: Sequence[str], threads: int, then: str) -> Script:
    shares = _shares(models, threads)
    each_cycle = _new_threads(len(models))

    def steps(thread: int, cycle: int) -> Iterator[Step]:
        names = shares[thread]
        for number in range(cycle * each_cycle, (cycle + 1) * each_cycle):
            if number % threads == thread:
                yield "answer", names[number // threads % len(names)], then, 0

    return _in_cycles(threads, steps, [_load_and_call(names) for names in shares])


def _thread_counts(models: Sequence[str], threads: int) -> Script:
    shares = [_shares(models, threads, cycle) for cycle in range(CYCLES)]

    def steps(thread: int, cycle: int) -> Iterator[Step]:
        if cycle == 0:
            yield from _load_and_call(shares[0][thread])
            return
        yield "set_threads", INTRA_OP_THREADS[cycle - 1]
        yield from _share_and_call(zip(shares[cycle][thread], shares[0][thread], strict=True))

    return _in_cycles(threads, steps)


def _growing_shapes(models: Sequence[str], threads: int) -> Script:
    shares, again = _shares(models, threads), _shares(models, threads, 1)

    def steps(thread: int, cycle: int) -> Iterator[Step]:
        for name in shares[thread]:
            for larger in range(cycle * NEW_SIZES + 1, (cycle + 1) * NEW_SIZES + 1):
                yield from [("answer", name, "own", larger)] * 2  # the second one meets what the first has compiled

    script = _in_cycles(threads, steps, [_load_and_call(names) for names in shares])
    after = (_share_and_call(zip(*names, strict=True)) for names in zip(again, shares, strict=True))
    lines = ((*steps, *more) for steps, more in zip(script.threads, after, strict=True))
    return replace(script, threads=tuple(lines))


def _rolling(models: Sequence[str], threads: int) -> Script:
    servers = max(1, threads - 1)
    lines: list[tuple[Step, ...]] = []
    for index in range(servers):
        name = copy_name(models[index * len(models) // servers], UPDATES + index)  # the copies of updates come first
        lines.append((*_load_and_call([name]), ("barrier", "serving"), ("serve", name, "updated")))
    updates: list[Step] = [("barrier", "serving")]
    for update in range(UPDATES):
        for model in models:
            updates.extend(_load_and_call([copy_name(model, update)]))
            updates.extend([("drop", copy_name(model, update - 1))] if update else [])
        updates.append(("memory", f"update {update}"))
    lines.append((*updates, ("count_down", "updated")))
    return Script(threads=tuple(lines), barriers={"serving": len(lines)}, latches={"updated": 1})


def _exit(models: Sequence[str], threads: int) -> Script:
    served = _shares(models, max(threads - 1, len(models)))
    lines = [(*_load_and_call(names), ("barrier", "serving"), ("serve", names[0], "stopped")) for names in served]
    main = (("barrier", "serving"), ("delay", EXIT_AFTER_MS), ("exit",))
    barriers, latches = {"serving": 1 + len(lines)}, {"stopped": 1}
    return Script(threads=(main, *lines), barriers=barriers, latches=latches, rests=False)


def _forked(first: Sequence[Step], workers: Sequence[Sequence[Step]]) -> Script:
    """Return the script of a process that does ``first`` and then forks one process for each of ``workers``."""
    numbers = range(1, len(workers) + 1)
    forks = (("fork", number) for number in numbers)
    joins = (("join", number) for number in numbers)
    return Script(threads=((*first, *forks, *joins), *map(tuple, workers)))


def _inherited(models: Sequence[str], copy: int) -> tuple[Step, ...]:
    return _share_and_call((copy_name(model, copy), model) for model in models)


def _prefork(models: Sequence[str], threads: int) -> Script:
    return _forked(_load_and_call(models), [_inherited(models, copy) for copy in range(1, threads + 1)])


def _prefork_cold(models: Sequence[str], threads: int) -> Script:
    loads: list[Step] = [("load", model) for model in models]
    calls: list[Step] = [("calls", model) for model in models]
    return _forked(loads, [calls, *(_inherited(models, copy) for copy in range(1, threads))])


def _capture(name: str | int) -> Step:
    return ("capture", name, THREAD_LOCAL, WARM_CALLS)


def _cuda_graphs(models: Sequence[str], threads: int) -> Script:
    together = _concurrent(models, threads)
    captured = tuple(
        tuple(
            step for planned in steps for step in (planned, *([_capture(planned[1])] if planned[0] == "calls" else []))
        )
        for steps in together.threads
    )
    return Script(threads=captured, barriers=together.barriers)


INITIALIZATIONS: Final[Mapping[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="sequential",
            words="sequential init",
            about="all models of a server group in one process, one after another",
            write=_sequential,
        ),
        Scenario(
            name="concurrent",
            words="concurrent init",
            about="N threads from a barrier, each loads and warms up its share of the models",
            write=_concurrent,
        ),
        Scenario(
            name="shared",
            words="shared module",
            about="each model is loaded once and warmed up by N threads at the same time",
            write=_shared,
            stateless=True,
        ),
        Scenario(
            name="same_file",
            words="same file N times",
            about="N threads load the same file at the same time, each a module of its own",
            write=_same_file,
        ),
        Scenario(
            name="staggered",
            words="staggered init",
            about=f"as concurrent, each thread {STAGGER_MS} ms after the one before",
            write=_staggered,
        ),
        Scenario(
            name="while_serving",
            words="load while serving",
            about="all models are loaded and warmed up once while others answer requests",
            write=_under_traffic,
        ),
        Scenario(
            name="rolling",
            words="rolling update",
            about=f"one thread replaces all models {UPDATES} times while others answer requests; memory is measured",
            write=_rolling,
            rounds=UPDATES,
            on_request=True,
            growth_per="update",
        ),
        Scenario(
            name="thread_per_request",
            words="thread per request",
            about=f"each request is answered in a new thread, which ends then, {CYCLES} times {NEW_THREADS} of them",
            write=partial(_with_new_threads, then="ends"),
            on_request=True,
            growth_per=NEW_THREAD,
            per_cycle=_new_threads,
        ),
        Scenario(
            name="thread_per_connection",
            words="connection threads",
            about="as thread_per_request, and every new thread lives on, idle",
            write=partial(_with_new_threads, then="stays"),
            on_request=True,
            growth_per=NEW_THREAD,
            per_cycle=_new_threads,
        ),
        Scenario(
            name="thread_counts",
            words="thread counts change",
            about=f"all threads change the number of intra-op threads {len(INTRA_OP_THREADS)} times, between calls",
            write=_thread_counts,
            on_request=True,
            growth_per="change",
        ),
        Scenario(
            name="growing_shapes",
            words="growing shapes",
            about=f"models are called with {CYCLES * NEW_SIZES} larger and larger sizes of their inputs",
            write=_growing_shapes,
            larger_inputs=True,
            on_request=True,
            growth_per="new size",
            per_cycle=lambda _models: NEW_SIZES,
        ),
        Scenario(
            name="python_server",
            words="Python server",
            about=f"as while_serving with at least {LEAST_LOADS} loads, in threads that share Python's lock (GIL)",
            write=_python_server,
            python_only=True,
            spares_loads=True,
            variant_of="while_serving",
        ),
        Scenario(
            name="python_keeping",
            words="Python, answers kept",
            about=f"as python_server; each thread holds on to its last {KEPT_ANSWERS} requests and answers",
            write=_python_server_keeping,
            python_only=True,
            spares_loads=True,
            variant_of="while_serving",
        ),
        Scenario(
            name="inter_op",
            words="inter-op warm-up",
            about="as concurrent, every call launched into the inter-op pool",
            write=_inter_op,
            native_only=True,
        ),
        Scenario(
            name="small_pools",
            words="pools of one thread",
            about="as inter_op, with one intra-op and one inter-op thread",
            write=_inter_op,
            native_only=True,
            pools=(1, 1),
        ),
        Scenario(
            name="reinit",
            words="init and teardown",
            about=f"{CYCLES} cycles of concurrent initialization and teardown; memory is measured",
            write=_reinit,
            rounds=CYCLES,
        ),
        Scenario(
            name="processes",
            words="N processes at once",
            about="as many processes as threads, each initializes all models one after another",
            write=_sequential,
            processes=True,
        ),
        Scenario(
            name="prefork",
            words="prefork server",
            about="all models are loaded and warmed up, then N processes are forked and call them",
            write=_prefork,
            forks=True,
            on_request=True,
            mitigations=("one thread after the fork", "load after the fork", "one intra-op thread"),
        ),
        Scenario(
            name="prefork_cold",
            words="prefork, no warm-up",
            about="all models are loaded and not called, then N processes are forked and call them",
            write=_prefork_cold,
            forks=True,
            on_request=True,
            mitigations=("one thread after the fork", "load after the fork", "one intra-op thread"),
        ),
        Scenario(
            name="exit",
            words="exit while serving",
            about="the main thread ends the process, with teardown, while the others answer requests",
            write=_exit,
            exits=True,
            on_request=True,
            mitigations=("join threads before exit",),
        ),
        Scenario(
            name="cuda_graphs",
            words="graph capture",
            about="as concurrent, then each thread captures its models' graphs in a stream and a pool of its own",
            write=_cuda_graphs,
            graphs=True,
        ),
    )
}


SCENARIOS: Final = ("alone", *INITIALIZATIONS)
"""Every way in which models are tested for correctness: in a process of their own, and in a server."""
CELL_SCENARIOS: Final = (*SCENARIOS, TIMING)
"""What the id of a cell may name as its scenario, in the order of reports: those, and the timing of a model."""
