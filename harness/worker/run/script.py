"""Verb ``run``: read the inputs of every artifact, then do the script; ``docs/formats/wire.md`` lists its steps.

A model that has failed leaves its later steps out; barriers and latches are always served, so that one failure never
makes a hang of another thread.
"""

import collections
import os
import threading
import time
import traceback

import torch

from gate_worker import device, events, lifecycle, native_stacks, settings, wire
from gate_worker.run import kinds, measurements, serving
from gate_worker.values import trees


def perform(request, run_dir, models, writer, log):
    """Do the script of ``request`` with ``models`` (name -> ``ServedModel``; a name that is missing has failed)."""
    script = request["script"] or in_order(request["runs"])
    if script.get("calls_through", "thread") != "thread":
        # From Python, torch.jit.fork of a loaded method runs it at once, in the calling thread.
        log.refuse("only the C++ worker calls through a pool")
        return
    stage = Stage(request, script, models, writer, log, run_dir=run_dir)
    forked = {step[1] for steps in script["threads"] for step in steps if step[0] == "fork"}
    own = [index for index in range(len(script["threads"])) if index not in forked]
    in_main = own if len(own) == 1 else [index for index in own if ["exit"] in script["threads"][index]]
    stage.start([index for index in own if index not in in_main], daemon=bool(in_main))
    for index in in_main:
        stage.act(index)
    stage.join_all()


def in_order(runs):
    """Return the script of a request without one: every model after the other, in the main thread."""
    names = [run["artifact"]["model"] for run in runs]
    return {"threads": [[step for name in names for step in (["load", name], ["calls", name])]]}


class Latch:
    """Opens after ``count`` count-downs."""

    def __init__(self, count):
        self._count = count
        self._lock = threading.Lock()
        self._open = threading.Event()
        if count <= 0:
            self._open.set()

    def count_down(self):
        with self._lock:
            self._count -= 1
            if self._count <= 0:
                self._open.set()

    def wait(self, seconds):
        """Wait for so long at most; return whether it is open."""
        return self._open.wait(seconds)

    def is_open(self):
        return self._open.is_set()


class Stage:
    def __init__(self, request, script, models, writer, log, *, run_dir):
        self._request = request
        self._run_dir = run_dir
        self._threads = script["threads"]
        self._barriers = {name: threading.Barrier(parties) for name, parties in script.get("barriers", {}).items()}
        self._latches = {name: Latch(count) for name, count in script.get("latches", {}).items()}
        self._locks = {step[1]: threading.Lock() for steps in self._threads for step in steps if step[0] == "lock"}
        self._models = models
        self._kept = [collections.deque(maxlen=script.get("keeps", 0)) for _ in self._threads]
        steps = [step for steps in self._threads for step in steps]
        self._servers = {step[1] for step in steps if step[0] in ("serve", "answer")}
        self._answers = {name: serving.ServedAnswers(served, log) for name, served in models.items()}
        self._failed = {}
        self._draws = set()
        self._forked = {}
        self._started = {}
        self._rests = script.get("rests", True)
        self._writer = writer
        self._log = log

    def act(self, thread):
        try:
            self._in_context(thread, self._take_all, thread)
        except BaseException as error:  # outside of every phase, so ours; the others would wait for this thread
            self.give_up("a step cannot be done: %s" % error)

    def start(self, threads, daemon):
        """Start a thread for each of these; ``daemon``: the end of the process waits for none of them."""
        try:
            for index in threads:
                named = "init-%d" % index
                self._started[index] = threading.Thread(target=self.act, args=(index,), name=named, daemon=daemon)
                self._started[index].start()
        except BaseException as error:
            self.give_up("cannot start one of %d threads: %s" % (len(threads), error))

    def join_all(self):
        for thread in self._started.values():
            thread.join()

    def _in_context(self, thread, action, *arguments):
        native_stacks.guard_thread()
        settings.read_back_pool(self._request["pools"]["intra_op"], thread, self._log)
        with settings.thread_context(self._request):
            action(*arguments)

    def give_up(self, message):
        """End the process at once, whatever its threads are doing: no model is to blame."""
        self._log.refuse(message, traceback.format_exc())
        os._exit(wire.EXIT_BROKEN)

    def _take_all(self, thread):
        for step in self._threads[thread]:
            self._take(thread, *step)

    def _take(self, thread, verb, *arguments):
        step = getattr(self, "step_" + verb, None)
        if step is None:
            raise ValueError("no step is called '%s'" % verb)
        step(thread, *arguments)

    def _model_step(self, name, action):
        served = self._models.get(name)
        if served is None or name in self._failed:
            return
        try:
            action(served)
        except events.PhaseFailed:
            self._failed[name] = True

    def step_load(self, thread, name):
        self._model_step(name, lambda served: serving.load(served, self._log, thread))

    def step_share(self, thread, name, source):
        if source in self._failed or source not in self._models:
            self._failed[name] = True
            return
        self._model_step(name, lambda served: served.share(self._models[source]))

    def step_calls(self, thread, name):
        self._model_step(name, lambda served: self._make_calls(served, thread))

    def _make_calls(self, served, thread):
        failed = None
        for set_name, index in ((name, index) for name, calls in served.schedule for index in range(calls)):
            try:
                self._make_call(served, set_name, index, thread)
            except events.PhaseFailed as failure:  # of this call; the others are made all the same, as a server does
                failed = failed or failure
        if failed is not None:
            raise failed
        self._log.emit("ready", model=served.name, thread=thread)

    def _make_call(self, served, set_name, index, thread):
        output, arguments = serving.call(served, self._log, set_name, index, thread)
        self._kept[thread].append((output, arguments))
        with self._log.phase(wire.RECORD, model=served.name, thread=thread, set=set_name, call=index):
            if len(self._threads) == 1 and served.name not in self._draws and served.has_drawn():
                self._draws.add(served.name)
                self._log.mark("draws:" + served.name, {"set": set_name, "call": index})
            effects = served.side_effects(set_name, arguments, output)
            self._writer.write(output, model=served.name, set=set_name, call=index, **effects)
            if served.name in self._servers and set_name == served.schedule[0][0]:
                served.stable_answer.learn(output)

    def step_serve(self, thread, name, latch):
        serve = self._keep_serving if self._rests else self._call_without_rest
        self._model_step(name, lambda served: serve(served, thread, self._latches[latch]))

    def _call_without_rest(self, served, thread, latch):
        set_name = served.schedule[0][0]
        with self._log.phase(wire.SERVE, model=served.name, thread=thread, set=set_name):
            served.prepare()  # once: seeding is Python, in which the end of the process does no harm
            arguments, method = served.arguments(set_name), served.method(set_name)
            calls, beat = 0, time.monotonic()
            while not latch.is_open():
                method(*arguments)
                calls += 1
                if time.monotonic() - beat >= wire.BEAT_S:
                    self._log.emit("beat", model=served.name, thread=thread, calls=calls)
                    beat = time.monotonic()

    def _keep_serving(self, served, thread, latch):
        set_name = served.schedule[0][0]
        answers, beat, pause = serving.ServedAnswers(served, self._log), time.monotonic(), 0
        with self._log.phase(wire.SERVE, model=served.name, thread=thread, set=set_name):
            while not latch.wait(pause):
                begin = time.monotonic()
                output, arguments = served.answer(set_name)
                self._kept[thread].append((output, arguments))
                answers.take(output)
                del output, arguments
                now = time.monotonic()
                if now - beat >= wire.BEAT_S:
                    self._log.emit("beat", model=served.name, thread=thread, calls=answers.calls)
                    beat = now
                pause = min(max(wire.PAUSE_FACTOR * (now - begin), wire.LEAST_PAUSE_S), wire.MOST_PAUSE_S)
            answers.tell()

    def step_answer(self, thread, name, where, larger):
        def respond(served):
            with self._log.phase(wire.SERVE, model=served.name, thread=thread, set=served.schedule[0][0]):
                output, _ = served.answer(served.schedule[0][0], larger)
                if not larger:
                    self._answers[name].take(output)
            self._answers[name].tell()

        self._model_step(name, lambda served: self._in_thread(where, thread, respond, served))

    def _in_thread(self, where, thread, action, served):
        if where == "own":
            action(served)
            return
        answered, failed = threading.Event(), []

        def work():
            try:
                self._in_context(thread, action, served)
            except BaseException as error:
                failed.append(error)
            answered.set()
            if where == "stays":
                threading.Event().wait()

        started = threading.Thread(target=work, name="request", daemon=True)
        started.start()
        answered.wait()
        if where == "ends":
            started.join()
        if failed:
            raise failed[0]

    def step_set_threads(self, thread, number):
        torch.set_num_threads(number)
        settings.read_back_pool(number, thread, self._log)

    def step_drop(self, thread, name):
        def drop(served):
            with self._log.phase(wire.DROP, model=served.name, thread=thread):
                served.drop()

        self._model_step(name, drop)

    def step_capture(self, thread, name, mode, warm_calls):
        from gate_worker.run import cuda_graphs as graphs

        self._model_step(name, lambda served: graphs.capture(served, mode, warm_calls, self._log, thread))

    def step_barrier(self, thread, name):
        with self._log.phase(wire.BARRIER, thread=thread):
            self._barriers[name].wait()

    def step_lock(self, thread, name):
        with self._log.phase(wire.BARRIER, thread=thread):
            self._locks[name].acquire()

    def step_unlock(self, _thread, name):
        self._locks[name].release()

    def step_delay(self, _thread, milliseconds):
        time.sleep(milliseconds * 1e-3)

    def step_count_down(self, _thread, latch):
        self._latches[latch].count_down()

    def step_fork(self, _thread, other):
        def work():
            self._log.forked(other)
            self._take_all(other)

        self._forked[other] = lifecycle.fork(self._run_dir, self._request.get("stack_dumper"), work)

    def step_join(self, thread, other):
        with self._log.phase(wire.BARRIER, thread=thread):
            if other in self._forked:
                lifecycle.join(self._forked[other])
            else:
                self._started[other].join()

    def step_exit(self, thread):
        others = any(started.is_alive() for started in self._started.values())
        with self._log.phase(wire.EXIT, thread=thread):
            lifecycle.exit_with_teardown(wire.EXIT_WAIT_S if others else 0)

    def step_memory(self, _thread, label):
        measurements.give_back_freed()
        self._log.emit("memory", label=label, rss_bytes=resident_bytes(), os_threads=len(os.listdir("/proc/self/task")))


def resident_bytes():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * 4096


# What was loaded lives until the process leaves without teardown: destroying it costs milliseconds per model.
_kept_alive = []


def let_go():
    """Destroy what was loaded: this process goes on with other models."""
    _kept_alive.clear()


def run(request, run_dir, log):
    try:
        do(request, run_dir, log)
    except BaseException as error:  # outside of every phase, so ours
        log.refuse("the request cannot be done: %s" % error, traceback.format_exc())
        os._exit(wire.EXIT_BROKEN)


def do(request, run_dir, log):
    log.mark("switches", settings.apply_process_wide(request))
    log.mark("numerics", settings.state(request))
    writer = trees.TensorWriter(os.path.join(run_dir, wire.OUTPUTS))
    models, runs_on = {}, device.of(request)
    _kept_alive.append(models)
    for run in request["runs"]:
        name = run["artifact"]["model"]
        try:
            with log.phase(wire.INPUTS, model=name):
                models[name] = kinds.served(run, runs_on, request)
        except events.PhaseFailed:
            pass
    perform(request, run_dir, models, writer, log)
