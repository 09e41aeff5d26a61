"""In an environment under test: load each of the named files in a forked process, and print what torch said.

    ENV_PYTHON _load_each.py FOLDER

Keeps to Python 3.8 and to torch. Prints one JSON object: name -> empty text, message, "signal N" or "hang".
"""

import json
import os
import resource
import select
import signal
import sys
import warnings

import torch

DEADLINE_S = 20
MEMORY_BYTES = 8 << 30


def main(folder):
    warnings.simplefilter("ignore")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".pt"))
    print(json.dumps({name: answer(os.path.join(folder, name)) for name in names}))
    sys.stdout.flush()
    os._exit(0)


def answer(path):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        load(path, write)
    os.close(write)
    ready, _, _ = select.select([read], [], [], DEADLINE_S)
    if not ready:
        os.kill(child, signal.SIGKILL)
    with open(read, "rb") as stream:
        said = stream.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    if not ready:
        return "hang"
    return "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else said[1:]


def load(path, write):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    said = ""
    try:
        torch.jit.load(path, map_location="cpu")
    except BaseException as error:
        said = "%s: %s" % (type(error).__name__, error)
    os.write(write, ("." + said).encode("utf-8", "replace")[:4000])
    os._exit(0)


main(sys.argv[1])
