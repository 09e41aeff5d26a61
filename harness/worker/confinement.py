"""Where a process may write whose programs or packages run code as they are loaded: below its own folder alone.

The code of TorchScript can open files and nothing else. A ``.pt2`` is unpickled and a package of AOTInductor is a
library, so either does what it likes: it gets a HOME and a TMPDIR of its own, and Landlock closes the rest to it.
"""

import os
import re
import tempfile

from gate_worker import limits, wire

# 2.6.0 and 2.11.0 unpack a package in /tmp, whatever TMPDIR says; 2.15.0 asks TMPDIR.
ASKS_TMPDIR = (2, 15)
TMP = "/tmp"  # noqa: S108  others write there, this tells where
DEVICES = "/dev"


def enter(request, run_dir, log):
    """Confine this process, if what it is asked to load runs code; called before that is loaded.

    What no artifact has a part in comes first: the compiler is asked which instructions there are, and the answer kept
    in a folder of the gate. Where the kernel refuses, the mark ``not_confined`` tells why.
    """
    if not request.get("runs_code"):
        return
    own = os.path.abspath(run_dir)
    os.environ["HOME"] = os.environ["TMPDIR"] = os.path.join(own, wire.WORK)
    tempfile.tempdir = None  # else what has asked before is told the same again
    if request["verb"] == "package" or loads_package(request):
        from gate_worker.successor import packaging

        packaging.prepare(request)
    if request.get("limits"):
        try:
            limits.close_elsewhere(own, others(request, own))
        except OSError as error:
            log.mark("not_confined", str(error))


def loads_package(request):
    given = (request.get("declaration") or {}).get("given") or {}
    return "package" in [run["artifact"]["kind"] for run in request["runs"]] + [given.get("kind")]


def others(request, own):
    """Yield where else it has to write: a device's drivers in /dev, older loaders of packages in /tmp.

    Not in /tmp where the run lies there: such a loader fails then, and the run stays closed to it.
    """
    if request["device"] != "cpu":
        yield DEVICES
    if loads_package(request) and not os.path.realpath(own).startswith(TMP + os.sep):
        import torch

        if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < ASKS_TMPDIR:
            yield TMP
