"""The names and numbers of the wire between controller and worker, which ``docs/formats/wire.md`` describes.

This module is imported by both sides: standard library only, no torch.
"""

PROTOCOL = 2

REQUEST = "request.json"
EVENTS = "events.jsonl"
STACKS = "stacks.txt"
STDOUT = "stdout"
STDERR = "stderr"
PROVENANCE = "provenance.json"  # of what was rewritten, among the archive's extra files
TENSORS_INDEX = "tensors.jsonl"
TENSORS_BIN = "tensors.bin"
OUTPUTS = "outputs"
REGISTRY = "registry.json"
WORK = "work"
WITH_HOOKS_METHOD = "__call__"
WITH_HOOKS = "_with_hooks"
INDUCTOR_FOLDER = "TORCHINDUCTOR_CACHE_DIR"
"""Names a folder of the probe that this process works for."""
KEYWORDS_METHOD = "forward(**)"
PROGRAM = ".pt2"
PACKAGE = ".package.pt2"  # AOTInductor insists on the ending
TRACE = "trace"
TRACE_TOO_LONG = "TraceTooLong"  # the type of the error of a trace whose description outgrows its limit

# What one line of an index may hold; the controller has to hold many. One model's lines have a limit of their own.
MOST_VALUES = 200000
LONGEST_LINE_BYTES = 4 << 20
MOST_INDEX_BYTES = 16 << 20

# The module of each verb in ``harness/worker``, which has a function for it; nothing else is served.
VERBS = {
    "adopt": "requests.adopting",
    "benchmark": "run.benchmark",
    "convert": "successor.converting",
    "export": "export",
    "extract": "graph.extraction",
    "fingerprint": "fingerprint",
    "loaders": "run.loading",
    "package": "successor.packaging",
    "registry": "operator_registry",
    "resave": "export",
    "rewrite": "rewrite.rewriting",
    "run": "run.script",
    "serve": "zygote",
    "trace": "graph.tracing",
    "walk": "successor.converting",
}

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
COMPILE = "compile"
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
