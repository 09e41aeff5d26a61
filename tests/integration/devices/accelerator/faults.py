"""What the fake accelerator does to programs with a defect, and to their healthy twins, in this release of torch.

Called with the folder of a build, how often each is run, and the names of cases; prints JSON: what became of each run.
Each run is a forked child that opens the device itself.
"""

import collections
import ctypes
import io
import json
import os
import select
import signal
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

import torch

import fakedev

LIMIT_S = 60.0
BUSY_S = 0.5  # how long a kernel takes that others wait for
HANG_S = 0.4  # after the child has said that nothing is left but to wait
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 8)
        self.mix = torch.nn.Conv1d(8, 8, 3, padding=1)
        self.out = torch.nn.Linear(8, 3)

    def forward(self, words):
        return self.out(torch.relu(self.mix(self.words(words).transpose(1, 2))).mean(2))


torch.set_num_threads(1)
torch.manual_seed(3)
WORDS = torch.arange(24).reshape(4, 6)
with torch.no_grad():
    MODULE = torch.jit.script(Small().eval())
    GOLDEN = MODULE(WORDS)
ARCHIVE = io.BytesIO()
torch.jit.save(MODULE, ARCHIVE)


def loaded(device="fakedev:0"):
    """Return the module on the device; the loader of some releases has no place for devices that it does not know."""
    try:
        return torch.jit.load(io.BytesIO(ARCHIVE.getvalue()), map_location=device)
    except RuntimeError as error:
        if "supported devices include" not in str(error):
            raise
        return torch.jit.load(io.BytesIO(ARCHIVE.getvalue())).to(device)


def judged(tensor, expected=GOLDEN):
    return "right" if torch.equal(tensor.cpu(), expected) else "wrong values"


def telling_line(error):
    """Return the type and the line that says why: the interpreter of TorchScript puts a traceback before it."""
    lines = str(error).strip().splitlines()
    telling = [line for line in lines if "fakedev" in line]
    return "%s: %s" % (type(error).__name__, (telling or lines)[0].split("Error: ")[-1])


# order


@case
def copy_without_synchronization(planted):
    fakedev.sleep(0.05)
    answer = (torch.arange(1000.0, device="fakedev") * 2).to("cpu", non_blocking=True)
    if not planted:
        fakedev.current_stream().synchronize()
    return judged(answer, torch.arange(1000.0) * 2)


@case
def copy_that_returns_early(planted):
    values = torch.arange(1000.0, device="fakedev") * 2
    fakedev.set_fault("unsynchronized_copy" if planted else "")
    fakedev.sleep(0.05)
    return judged(values.cpu(), torch.arange(1000.0) * 2)


@case
def stream_that_does_not_wait(planted):
    values = torch.zeros(1000, device="fakedev")
    fakedev.synchronize()
    first, second = fakedev.Stream(), fakedev.Stream()
    with fakedev.stream(first):
        fakedev.sleep(0.05)
        values.add_(1)
    if not planted:
        second.wait_stream(first)
    with fakedev.stream(second):
        return judged(values * 3, torch.full((1000,), 3.0))


@case
def input_that_is_overwritten(planted):
    values = torch.ones(1000)
    fakedev.sleep(0.05)
    there = values.to("fakedev", non_blocking=True)
    if not planted:
        fakedev.synchronize()
    values.fill_(9)
    return judged(there, torch.ones(1000))


# place


@case
def input_on_the_host(planted):
    return judged(loaded()(WORDS if planted else WORDS.to("fakedev:0")))


@case
def input_on_the_other_device(planted):
    return judged(loaded()(WORDS.to("fakedev:1" if planted else "fakedev:0")))


@case
def host_reads_device_memory(planted):
    values = torch.ones(4, device="fakedev" if planted else "cpu")
    fakedev.synchronize()
    return "right" if ctypes.c_float.from_address(values.data_ptr()).value == 1.0 else "wrong values"


# errors


@case
def error_one_call_later(planted):
    module, words = loaded(), WORDS.to("fakedev:0")
    module(words)
    fakedev.synchronize()
    values = torch.ones(8, device="fakedev")
    fakedev.set_fault("late_error" if planted else "")
    values.add_(1)  # the guilty call returns
    say("after the call")
    return judged(module(words))


@case
def index_out_of_range(planted):
    table, words = torch.ones(50, 2, device="fakedev"), WORDS.to("fakedev") + (100 if planted else 0)
    fakedev.sleep(0.05)
    rows = torch.nn.functional.embedding(words, table)  # returns: nobody knows the values yet
    say("after the call")
    return judged(rows, torch.ones(4, 6, 2))


@case
def stream_that_hangs(planted):
    values = torch.ones(8, device="fakedev")
    fakedev.set_fault("hang" if planted else "")
    values.add_(1)
    say("launched")
    return judged(values, torch.full((8,), 2.0))


@case
def allocation_that_fails(planted):
    module = loaded()
    words = WORDS.to("fakedev:0")
    fakedev.set_fault("out_of_memory:2" if planted else "")
    return judged(module(words))


@case
def more_than_there_is(planted):
    """The device has 64 MiB, as the test says."""
    kept = [torch.zeros(1 << 20, device="fakedev") for _ in range(17 if planted else 15)]
    return judged(sum(tensor[0] for tensor in kept), torch.tensor(0.0))


@case
def device_that_vanishes(planted):
    module, words = loaded(), WORDS.to("fakedev:0")
    fakedev.set_fault("lost:2" if planted else "")
    return judged(module(words))


@case
def fork_of_a_process_with_a_device(planted):
    if planted:
        torch.ones(1, device="fakedev").cpu()
    return in_child(lambda _: judged(loaded()(WORDS.to("fakedev:0"))), planted)[-1]


# modules


@case
def kernel_that_is_loaded_while_another_spins(planted):
    """The loading waits for the device, and the kernel that spins for what is launched after the loading."""
    os.environ["CUDA_MODULE_LOADING"] = "LAZY" if planted else "EAGER"
    flag, values = torch.zeros(1, dtype=torch.int32, device="fakedev"), torch.ones(8, device="fakedev")
    torch.ops.fakedev.spin_until(flag)
    say("launched")
    doubled = values * 2
    flag.fill_(1)
    return judged(doubled, torch.full((8,), 2.0))


@case
def copy_of_another_thread_while_a_kernel_is_loaded(planted):
    """The thread has nothing to load, and must wait like everybody."""
    os.environ["CUDA_MODULE_LOADING"] = "LAZY" if planted else "EAGER"
    values = torch.ones(8, device="fakedev")
    fakedev.synchronize()
    fakedev.sleep(BUSY_S)
    loading = threading.Thread(target=values.sin)  # its first launch
    loading.start()
    loading.join(BUSY_S / 5)
    with fakedev.stream(fakedev.Stream()):
        begun = time.monotonic()
        torch.ones(8).to("fakedev", non_blocking=True)
        waited_s = time.monotonic() - begun
    loading.join()
    return "waited" if waited_s > BUSY_S / 2 else "right"


# captures


def captured(mode, of_other_thread=None, of_this_thread=None, module=None, warm_calls=1, warm_in=None):
    """Capture a call of the module while another thread does something; replay it with other inputs."""
    module, words, stream = module or loaded(), torch.zeros_like(WORDS).to("fakedev:0"), fakedev.Stream()
    with fakedev.stream(warm_in or stream):
        for _ in range(warm_calls):
            module(words)
        stream.synchronize()
    found = []

    def other():
        try:
            of_other_thread()
        except RuntimeError as error:
            found.append(telling_line(error))

    graph = fakedev.Graph()
    try:
        with fakedev.graph(graph, stream=stream, capture_error_mode=mode):
            answer = module(words)
            if of_other_thread is not None:
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
            if of_this_thread is not None:
                of_this_thread()
    except RuntimeError as error:
        return "dead capture: " + telling_line(error) + "".join("; other thread: " + one for one in found)
    with fakedev.stream(stream):
        words.copy_(WORDS)
        graph.replay()
        stream.synchronize()
    return judged(answer)


def allocation():
    torch.empty(3 << 20, dtype=torch.uint8, device="fakedev")


@case
def capture_and_an_allocation_of_another_thread(planted):
    return captured("global" if planted else "thread_local", of_other_thread=allocation)


@case
def capture_that_opens_a_kernel_library(planted):
    return captured("thread_local", warm_calls=0 if planted else 1)


@case
def capture_in_a_thread_that_has_called_nothing(planted):
    module, found = loaded(), []
    module(torch.zeros_like(WORDS).to("fakedev:0"))  # warm, in this thread
    calls = 0 if planted else 1
    thread = threading.Thread(target=lambda: found.append(captured("thread_local", module=module, warm_calls=calls)))
    thread.start()
    thread.join()
    return found[0]


@case
def capture_in_a_stream_that_has_no_handle(planted):
    """Warmed up in another stream: harmless as long as threads have one handle, and no longer with one for each stream."""
    os.environ["FAKEDEV_HANDLES"] = "stream" if planted else "thread"
    return captured("thread_local", warm_in=fakedev.Stream())


@case
def capture_that_releases_memory(planted):
    allocation()
    return captured("thread_local", of_this_thread=fakedev.empty_cache if planted else fakedev.current_stream)


@case
def capture_and_a_synchronization_of_another_thread(planted):
    return captured("global" if planted else "thread_local", of_other_thread=fakedev.synchronize)


@case
def capture_and_a_synchronization_of_its_own_thread(planted):
    return captured("thread_local" if planted else "relaxed", of_this_thread=lambda: fakedev.synchronize(1))


@case
def capture_of_a_number_that_the_host_reads(planted):
    values = torch.ones(3, device="fakedev")
    fakedev.synchronize()
    return captured("relaxed", of_this_thread=(lambda: values.sum().item()) if planted else (lambda: values.sum()))


@case
def capture_on_the_default_stream(planted):
    graph, stream = fakedev.Graph(), fakedev.default_stream() if planted else fakedev.Stream()
    values = torch.ones(3, device="fakedev")
    fakedev.synchronize()
    with fakedev.stream(stream):
        graph.capture_begin()
        doubled = values * 2
        graph.capture_end()
        graph.replay()
        return judged(doubled, torch.full((3,), 2.0))


@case
def capture_that_leaves_a_stream_behind(planted):
    graph, stream, side = fakedev.Graph(), fakedev.Stream(), fakedev.Stream()
    values = torch.ones(3, device="fakedev")
    fakedev.synchronize()
    with fakedev.stream(stream):
        graph.capture_begin()
        side.wait_stream(stream)
        with fakedev.stream(side):
            doubled = values * 2
        if not planted:
            stream.wait_stream(side)
        graph.capture_end()
        graph.replay()
        return judged(doubled, torch.full((3,), 2.0))


# Runs


def say(text):
    os.write(SAID, text.encode() + b"\n")


SAID = -1


def in_child(function, planted):
    """Return what a forked child has said, and how it ended."""
    global SAID
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        SAID = writing
        try:
            say(function(planted))
        except BaseException as error:
            say(telling_line(error))
        os._exit(0)
    os.close(writing)
    said = b""
    while True:
        limit_s = HANG_S if said.endswith(b"launched\n") and planted else LIMIT_S
        if not select.select([reading], [], [], limit_s)[0]:
            os.kill(pid, signal.SIGKILL)
            said += b"hang\n"
            break
        more = os.read(reading, 4096)
        if not more:
            break
        said += more
    os.close(reading)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and not said.endswith(b"hang\n"):
        said += b"signal %d\n" % os.WTERMSIG(status)
    return said.decode().splitlines()


def main():
    times, names = int(sys.argv[2]), sys.argv[3:] or list(CASES)
    found = {}
    for name in names:
        found[name] = {}
        for kind, planted in (("planted", True), ("healthy", False)):
            runs = collections.Counter(" | ".join(in_child(CASES[name], planted)) for _ in range(times))
            found[name][kind] = dict(runs)
    print(json.dumps({"torch": torch.__version__, "cases": found}))


main()
