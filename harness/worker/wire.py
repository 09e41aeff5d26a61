"""The wire contract between controller and worker: names, files, and the encoding of values.

Files in a probe's directory:

    request.json            what to do (written by the controller before the start)
    events.jsonl            one line per event, appended with a single write
    outputs/tensors.jsonl   one line per finished call: {"model", "set", "call", "tree"}, and what else it did
    outputs/tensors.bin     the bytes of the tensors, little-endian, contiguous; trees hold offsets
    trace/tensors.jsonl     of verb ``trace``: what went into every node and what came out (``trace_files``)
    trace/tensors.bin       the bytes of those
    stacks.txt              faulthandler's dump: on SIGUSR1 and on a fatal signal
    stacks.txt.PID          the same of a process that the worker has forked
    stdout, stderr          the worker's
    work/                   where the worker stands while it works: what it writes by a bare name lies there

Events carry ``ns`` (CLOCK_MONOTONIC, shared by all processes of the machine) and ``ev``:

    hello                   before torch is imported: protocol, pid, python
    begin                   of a phase: phase, model, thread, ident (pthread), tid (kernel), and for calls set and call
    end                     of a phase: phase, model, thread, cpu_ns (CPU time of this thread in the phase), set, call
    error                   an exception of the phase, in place of its end: type, message, traceback
    mark                    a named piece of data: name, data
    ready                   a model has finished its schedule: model, thread
    task                    a thread of a pool has taken up the call of an open phase: phase, model, thread, set, call,
                            and that pool thread's own ident and tid; while serving only where that is news
    beat                    a serving thread is alive: thread, model, calls; at most every BEAT_S, no progress of others
    memory                  label, rss_bytes: resident memory now, freed memory given back; os_threads: how many threads
                            the kernel knows of this process
    forked                  thread, pid: a process that the worker has forked does this thread's steps; its first event
    serving                 the zygote takes orders
    bye                     the last event; its absence means that the process did not finish

``begin`` has the numbers of the thread that does the script. Where that one waits for a pool to make the call, ``task``
says which thread it is really in; until then the call waits for its turn.

Marks of verb ``run``:

    switches                    per switch, pool and pinned setting that changes numbers, and per environment variable
                                ("env NAME"; Python only): requested, and read_back or why it is not supported
    numerics                    every setting that changes numbers, as it stands in a thread of this process; null
                                where the release cannot tell. The exporter tells it too, after the conversion
    intra_op_otherwise:THREAD   a thread of the script (or its task in a pool) has an intra-op pool of another size:
                                requested, read_back; once per thread
    served_otherwise:MODEL      while serving, answers were not what this copy had answered before, bit for bit: calls
                                (answers so far), first (index of the first that differed), different (how many did).
                                Written at the first one and again, with the final numbers, when serving ends. Only
                                for a model that cannot be told from a stateless one: its last two recorded answers to
                                that input set, given by the same module, are the same. A model that draws random
                                numbers may be marked: all threads share torch's generator
    draws:MODEL                 a call moved the generator that all threads share: set and call of the first that did.
                                Only in a script of one thread: elsewhere it may have been another
    limits                      which limits could not be applied: memory, cpu, file, killed_first, network or results
    not_confined                why a process that loads programs or packages may write elsewhere than in its folder
                                -> why; absent where all were (of any verb that is limited)
    first_operators             what a process of the benchmark ran before it was ready: kind -> why not, empty where
    it ran
    graph:MODEL                 a captured graph: mode, max_abs_difference and scale of its first replay, rebound
                                (the buffers that its call bound to other memory), call_ms
                                and replay_ms (milliseconds of the device, between events on the stream of the capture)

Marks of verb ``adopt``:

    adopted     input_sets (name and method, in order); inputs_note: empty where the requests were given, else how
                they were guessed or why there are none; given_up: [method, why] of each that nothing was guessed for.
                Given ones are marked before the artifact is loaded, if they need nothing of it; an error of phase
                ``inputs`` takes them back. Guessed ones are marked before they are tried with whole numbers of a wider
                range, which may end the process, and once more with those

Its ``begin`` and ``end`` of phase ``infer`` are one trial call: ``set`` is the method, ``call`` the trial's number, and
``guess`` what it was made with. A trial that fails has an ``end`` as well.

Mark of verb ``loaders``:

    loaders     way of loading -> error (empty where it loads) and warns (categories of its warnings)

Mark of verb ``rewrite``:

    rewritten   nodes (rule, address, operator, schema and source of each that was rewritten), refused ([rule, address,
                why]; nothing is saved then), emptied (methods that raise now), found (nodes of the operators that were
                asked for); of an order that rewrites nothing: fits ([rule, address]), refused, rules (name -> what,
                needs), found

Marks of verb ``convert``, which leaves ``MODEL.pt2`` in the directory:

    converted       dimensions: per argument its path and the sizes that the program takes, null for a size that is
                    free, and null in place of them all for what is no tensor and so a constant; bytes of the file
    not_converted   the innermost node at which the converter raised: kind, source and code (its place and line in what
                    was exported, empty where nobody knows), reason

Verb ``package`` compiles such a file with AOTInductor and leaves ``MODEL.package.pt2``; its mark ``packaged`` has the
bytes of that.

A request of ``adopt`` or ``export`` whose method is ``forward`` of a root with hooks is recorded a second time, as
``NAME`` + WITH_HOOKS with the method WITH_HOOKS_METHOD: Python runs the hooks of the root where the module is called,
and nobody does where ``forward`` is.

The ``kind`` of an artifact says what is loaded and called: ``torchscript``, ``program`` (a ``.pt2``) or ``package``.
Of the last two there is ``forward`` alone; as the method KEYWORDS_METHOD it has keyword arguments, a dict behind the
others, in the order of the artifact's own call specification. A request has ``runners``: how many calls a package
answers at once, and ``compiler_checks``: a folder for what torch compiles to learn which instructions compiler and CPU
have, or null. The C++ worker has no loader of programs.

A request of verb ``serve``, ``registry`` or ``benchmark`` has ``libraries``: operator libraries that are loaded first,
each in a phase ``library`` after the mark ``library`` with its name. A name that ends in ``.py`` is a file of Python,
any other with a slash or the end ``.so`` a shared object, the rest are importable modules. What cannot be loaded is an
error ``LibraryNotLoaded`` of that phase, its name first, and the worker leaves. The mark ``libraries`` (of these, and
of ``fingerprint``, whose process is a fork of the zygote) tells ``names``, ``versions`` of the modules among them,
``paths`` of all shared objects that came with them, ``operators`` that they have registered, and ``threads`` before
and after. To the C++ worker ``libraries``
are those paths (none, if Python modules register all): it opens them, with ``companions`` before them where one cannot
be opened alone. Its mark ``libraries`` tells ``not_opened`` (path -> why) and ``missing``: which of ``operators`` are
not known then. Where none of them has registered ``device`` it says so in the mark ``no_device``, its name, and leaves.

A request of verb ``serve`` may have ``preload``: modules of the worker that are imported for all children.

A request has ``device``, torch's name for where its models run, and ``capabilities``, what that device can do: any of
``streams``, ``events``, ``memory``, ``graphs`` and ``nvidia`` (``Device`` of ``harness.core.devices``);
none on the CPU.

A request of verb ``run`` or ``benchmark`` has ``load``: how the caller loads an archive, one of ``loading.LOADERS``.

Any request may have ``limits``: ``memory_bytes``, ``cpu_s``, ``file_bytes`` (each null for none) and ``network``
(whether it is open); they hold for the process that does the request, from before its verb begins. With them it may
write into the folder of the run, the nearest above with a ``.lock``, only below its own. ``runs_code`` says that it
loads programs or packages, which run code then: HOME and TMPDIR are the folder where it works, and with limits it may
write nowhere else but below its own folder. Requests in Python are read before that, with the user's home.

A tree is ``[kind, value]``: ``["tensor", {...}]``, ``["tuple"|"list", [tree, ...]]``,
``["dict", [[tree, tree], ...]]``, ``["namedtuple", [name, [[field, tree], ...]]]``, ``["none", null]``,
``["bool"|"int"|"str"|"device", value]``, ``["float", repr]``, ``["complex", [repr, repr]]`` and
``["object", type name]`` for what has no value on the wire. A tensor is

    {"dtype": "float32", "shape": [2, 3], "stride": [3, 1], "offset": 0, "nbytes": 24, "sha256": "...",
     "quantizer": {"scale": 0.1, "zero_point": 0}            only for quantized tensors, or
     "quantizer": {"scales": [...], "zero_points": [...], "axis": 0}}

What a call did beside answering stands in its line, where it did anything:

    "changed": [[path, tree], ...]     inputs that no longer hold the recorded bytes or shape, as they are now
    "shared": [[path, ...], ...]       inputs and outputs in one storage, per storage with two of them or more

A path is ``["input" or "output", step, ...]``. A step is an index, the name of a field of a named tuple, or the key of
a dict as a tree, ``["object", type name]`` for keys that are no text or number. A run with a precision tells neither:
its inputs are not the recorded ones.

A request of verb ``run`` has ``runs`` (artifact, schedule, precision, larger_inputs) and a ``script``: per thread a
list of steps. Two workers interpret it, ``harness/worker`` in Python and ``harness/native`` in C++ (which serve
``benchmark`` too):

    ["load", model]             phase load: a module of its own
    ["share", model, source]    use the module that ``source`` has loaded
    ["calls", model]            make every call of the schedule: prepare, call, record; then event ready
    ["serve", model, latch]     phase serve: call the first input set until the latch is open; each output is compared
                                with those recorded before, and dropped
    ["answer", model, thread, larger]
                                phase serve: answer the first input set once, as ``serve`` does; in this thread
                                (``"own"``), or in a new one that ends afterwards (``"ends"``) or lives on without work
                                (``"stays"``). Where ``larger`` is not 0, ``larger_inputs`` of the run, with every
                                dimension that ``grows`` names so much larger: what was recorded, from its begin again;
                                such an answer is compared with nothing
    ["set_threads", number]     give this thread an intra-op pool of another size, as torch.set_num_threads does
    ["drop", model]             phase drop: destroy the module (it goes when nobody shares it any more)
    ["capture", model, mode, calls]
                                phases capture and replay: a graph of one call, made after so many in the same stream;
                                its replay is compared with that call
    ["barrier", name]           phase barrier: wait for the other threads of this barrier
    ["lock", name]              phase barrier: wait until nobody holds the lock, and hold it
    ["unlock", name]            let go of it
    ["delay", milliseconds]     wait
    ["count_down", latch]       open the latch by one
    ["memory", label]           event memory
    ["fork", thread]            fork a process that does that thread's steps, and nothing else, and ends
    ["join", thread]            phase barrier: wait until that process has ended; where it has not done its steps, end
                                as it did, by the same signal or code. Of a thread of this process: until it has done
                                its steps
    ["exit"]                    phase exit: end the process as a main function does that returns, with all teardown and
                                whatever other threads do, and EXIT_WAIT_S where there are any; there is no end and no
                                ``bye``: its exit status tells

A request of verb ``trace`` has one of ``runs`` and ``trace``: make the calls before (``input_set``, ``call``), then
that one node by node. Its phases ``nodes`` follow each other, so that one that lasts is a node that does. Where
``trace/tensors.jsonl`` would outgrow ``index_bytes`` of ``trace``, phase ``nodes`` ends in the error TRACE_TOO_LONG.

After an error of a model its later load, share, calls, serve, answer, capture and drop steps are left out; the others
are not.
A forked process knows the models that were loaded before it, and shares no barrier, latch or lock with anybody.
``script["calls_through"]`` is ``"thread"``, or ``"inter_op"`` (C++ only): every call is launched into torch's inter-op
pool and waited for. ``script["keeps"]`` (Python only) is how many of its latest calls each thread keeps the arguments
and the outputs of; of the others Python drops both at once. A loaded module that no step drops lives until the process
leaves. ``script["rests"]`` false means that serving threads call again at once and compare nothing. ``script`` null
means: load and call every run in order, in the main thread. A script of one thread, beside those that are forked, and
a thread that exits, are done in the main thread as well. What cannot be done, be it a step that does not exist or a
thread that cannot be started, is an ``error`` of phase ``""`` and type ``ProtocolError``, and the worker leaves at
once with ``EXIT_BROKEN``.

This module is imported by both sides: standard library only, no torch.
"""

PROTOCOL = 2

REQUEST = "request.json"
EVENTS = "events.jsonl"
STACKS = "stacks.txt"
STDOUT = "stdout"
STDERR = "stderr"
TENSORS_INDEX = "tensors.jsonl"
TENSORS_BIN = "tensors.bin"
OUTPUTS = "outputs"
REGISTRY = "registry.json"
WORK = "work"
WITH_HOOKS_METHOD = "__call__"
WITH_HOOKS = "_with_hooks"
KEYWORDS_METHOD = "forward(**)"
PROGRAM = ".pt2"
PACKAGE = ".package.pt2"  # AOTInductor insists on the ending
TRACE = "trace"
TRACE_TOO_LONG = "TraceTooLong"  # the type of the error of a trace whose description outgrows its limit

# What one line of an index may hold; the controller has to hold many. One model's lines have a limit of their own.
MOST_VALUES = 200000
LONGEST_LINE_BYTES = 4 << 20
MOST_INDEX_BYTES = 16 << 20

VERBS = (
    "adopt",
    "benchmark",
    "convert",
    "export",
    "extract",
    "fingerprint",
    "loaders",
    "package",
    "registry",
    "resave",
    "rewrite",
    "run",
    "serve",
    "trace",
)

STEPS = (
    "answer",
    "barrier",
    "calls",
    "capture",
    "count_down",
    "delay",
    "drop",
    "exit",
    "fork",
    "join",
    "load",
    "lock",
    "memory",
    "serve",
    "set_threads",
    "share",
    "unlock",
)

# Exit codes of a worker that cannot go on; neither says anything about a model.
EXIT_ORPHANED = 70
EXIT_BROKEN = 71
# Of a forked process that has done its steps: 0 is what a model may end it with.
EXIT_STEPS_DONE = 72

# Phases, in the order in which a model meets them. A hang is a begin without an end.
IMPORT = "import"
LIBRARY = "library"
CONSTRUCT = "construct"
CONVERT = "convert"
SAVE = "save"
INFER = "infer"
INPUTS = "inputs"
BARRIER = "barrier"
EXIT = "exit"
LOAD = "load"
PREPARE = "prepare"
CALL = "call"
RECORD = "record"
SERVE = "serve"
DROP = "drop"
CAPTURE = "capture"
REPLAY = "replay"
BLOCK = "block"
NODES = "nodes"

BEAT_S = 0.2
# A serving thread rests so many times as long as the call before it took, within these bounds: traffic, no load test.
# The longest rest is well below the five BEAT_S after which it would not count as serving any more.
PAUSE_FACTOR = 2
LEAST_PAUSE_S, MOST_PAUSE_S = 0.001, 0.5
# How long a process that exits while threads call waits after its teardown. Each of them gets a CPU by then, also where
# fifty other programs want it; the teardown alone takes tens of milliseconds.
EXIT_WAIT_S = 1

DTYPE_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "quint8": 1,
    "qint8": 1,
    "qint32": 4,
}
QUANTIZED = ("quint8", "qint8", "qint32")
