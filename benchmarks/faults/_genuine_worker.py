"""In an environment under test: make TorchScript of each source text in a folder, or load each archive of folders.

    ENV_PYTHON _genuine_worker.py make SOURCES OUT
    ENV_PYTHON _genuine_worker.py load FOLDER ...

Keeps to Python 3.8 and to torch. A forked process takes one file after the other until it ends: then its file gets what
ended it, and the next process goes on behind it. ``make`` writes OUT/NAME.pt and prints name -> why it could not, ``load``
prints path -> an empty text or what torch said, each as one line of JSON.
"""

import json
import os
import re
import resource
import select
import signal
import sys
import types
import warnings

import torch

DEADLINE_S = 60
LONGEST = 2000


def main(what, *folders):
    warnings.simplefilter("ignore")
    if what == "make":
        sources, out = folders
        names = sorted(name for name in os.listdir(sources) if name.endswith(".py"))
        found = each(names, lambda name: make(os.path.join(sources, name), os.path.join(out, name[:-3] + ".pt")))
        found = {name: said for name, said in found.items() if said}
    else:
        paths = [os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder))]
        found = each([path for path in paths if path.endswith(".pt")], load)
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


def each(names, do):
    """Return name -> what ``do`` said, or what became of the process that it was done in."""
    found, left = {}, list(names)
    while left:
        said, ended = taken(left, do)
        found.update(zip(left, said))
        left = left[len(said) :]
        if left and ended:
            found[left.pop(0)] = ended
    return found


def taken(names, do):
    """Fork, and return what the process said of the first names, and what ended it where that was not the last."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for name in names:
            os.write(write, json.dumps(answer(name, do)).encode() + b"\n")
        os._exit(0)
    os.close(write)
    text, hangs = b"", False
    while True:
        ready, _, _ = select.select([read], [], [], DEADLINE_S)
        if not ready:
            hangs = True
            os.kill(child, signal.SIGKILL)
            break
        piece = os.read(read, 1 << 16)
        if not piece:
            break
        text += piece
    os.close(read)
    _, status = os.waitpid(child, 0)
    said = [json.loads(line) for line in text.decode().splitlines(True) if line.endswith("\n")]
    return said, "hang" if hangs else "ended with status %d" % status if len(said) < len(names) else ""


def answer(name, do):
    try:
        do(name)
    except BaseException as error:
        return ("%s: %s" % (type(error).__name__, error))[:LONGEST]
    return ""


def make(path, target):
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    folder, how = re.match(r"# (.+) (\w+)\n", text).groups()
    folder = "p%s.%s" % (os.path.basename(path)[:-3], folder)  # else classes of one name have their numbers in it
    module = types.ModuleType(folder)
    module.__file__ = path
    sys.modules[folder] = module
    exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102  drawn by the test that runs this
    made = torch.jit.script(module.Net().eval())
    if how != "script":
        made = torch.jit.freeze(made)
    if how == "optimize":
        made = torch.jit.optimize_for_inference(made)
    try:
        made.save(target)
    except BaseException:
        if os.path.exists(target):
            os.remove(target)
        raise


def load(path):
    torch.jit.load(path, map_location="cpu")


main(*sys.argv[1:])
