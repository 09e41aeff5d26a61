"""Verb ``resave``: load an archive and save it as this release writes it."""

import os

import torch

from gate_worker import wire
from gate_worker.settings import switches


def serve(request, run_dir, log):
    declaration = request["declaration"]
    name = declaration["name"]
    log.mark("switches", switches.apply_process_wide(request))
    with log.phase(wire.LOAD, model=name):
        module = torch.jit.load(declaration["given"]["path"], map_location=request["device"])
    with log.phase(wire.SAVE, model=name):
        module.save(os.path.join(run_dir, name + ".pt"))
    log.emit("ready", model=name, thread=0)
