"""Verb ``package``: compile a .pt2 with AOTInductor into a package that serves without Python."""

import os

import torch

from gate_worker import settings, wire


def package(request, run_dir, log):
    artifact = request["runs"][0]["artifact"]
    name = artifact["model"]
    log.mark("switches", settings.apply_process_wide(request))
    # What the compiler keeps belongs to this probe: another one must not profit from it unseen.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(run_dir, wire.WORK, "inductor")
    os.environ["TMPDIR"] = os.path.join(run_dir, wire.WORK)
    with log.phase(wire.LOAD, model=name):
        program = torch.export.load(artifact["path"])
    with log.phase(wire.CONVERT, model=name):
        from torch import _inductor
        from torch._inductor import config

        config.compile_threads = 1  # its pool of processes would outlive this one's limits
        path = os.path.join(run_dir, name + wire.PACKAGE)
        with torch.no_grad():
            _inductor.aoti_compile_and_package(program, package_path=path)
    log.mark("packaged", {"bytes": os.path.getsize(path)})
    log.emit("ready", model=name, thread=0)
