"""Verb ``package``: compile a .pt2 with AOTInductor into a package that serves without Python."""

import contextlib
import functools
import os
import shutil
import tempfile

import torch

from gate_worker import settings, wire


def package(request, run_dir, log):
    artifact = request["runs"][0]["artifact"]
    name = artifact["model"]
    log.mark("switches", settings.apply_process_wide(request))
    cache = keep_within_work(request)
    with log.phase(wire.LOAD, model=name):
        program = torch.export.load(artifact["path"])
    try:
        with log.phase(wire.CONVERT, model=name):
            from torch import _inductor

            configure()
            path = os.path.join(run_dir, name + wire.PACKAGE)
            with torch.no_grad():
                _inductor.aoti_compile_and_package(program, package_path=path)
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    log.mark("packaged", {"bytes": os.path.getsize(path)})
    log.emit("ready", model=name, thread=0)


def keep_within_work(request):
    """Have the compiler's cache, and what is unpacked, lie where this process works; return the folder of the cache.

    Another probe must not profit from it unseen, but for what tells the instructions. 2.6.0 unpacks a package in /tmp
    all the same.
    """
    work = os.getcwd()
    os.environ["TMPDIR"] = tempfile.tempdir = work  # the second for what has asked before
    _learn_instructions(request.get("compiler_checks"))
    cache = os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(work, "inductor")
    return cache


@functools.lru_cache(maxsize=None)
def _learn_instructions(folder):
    """Have torch find out, where it has not yet, whether compiler and CPU have AVX2 and its like; it remembers that.

    It compiles a program for each: 6 to 14 s of CPU time, which 2.11.0 and 2.15.0 spend on every first load in Python
    too. They are kept in ``folder``, and no time that is reported has them in it.
    """
    if folder is None:
        return
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    with contextlib.suppress(Exception):  # no compiler, or a folder that cannot be written: what asks next says so
        from torch._inductor import cpu_vec_isa

        cpu_vec_isa.pick_vec_isa()


def configure():
    """Have the compiler work alone, and once: no pool of processes, and no headers made ready for later packages."""
    from torch._inductor import config

    config.compile_threads = 1  # its pool of processes would outlive this one's limits
    if hasattr(config, "cpp_cache_precompile_headers"):
        config.cpp_cache_precompile_headers = False
    if hasattr(config.aot_inductor, "precompile_headers"):
        config.aot_inductor.precompile_headers = False
