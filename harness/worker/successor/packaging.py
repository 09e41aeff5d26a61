"""Verb ``package``: compile a .pt2 with AOTInductor into a package that serves without Python."""

import contextlib
import os
import shutil
import tempfile

import torch

from gate_worker import settings, wire


def package(request, run_dir, log):
    from gate_worker.successor import guards, whole  # what they need, a release without packages has not

    artifact = request["runs"][0]["artifact"]
    name = artifact["model"]
    log.mark("switches", settings.apply_process_wide(request))
    with log.phase(wire.LOAD, model=name):
        program = torch.export.load(artifact["path"])
        guards.write(program)
    try:
        with log.phase(wire.COMPILE, model=name):
            from torch import _inductor

            configure()
            path = os.path.join(run_dir, name + wire.PACKAGE)
            with torch.no_grad(), whole.in_loops():
                _inductor.aoti_compile_and_package(program, package_path=path)
    finally:
        shutil.rmtree(cache_folder(), ignore_errors=True)
    log.mark("packaged", {"bytes": os.path.getsize(path)})
    log.emit("ready", model=name, thread=0)


def cache_folder():
    """Return where the compiler's cache lies: where this process works, so that no other probe profits unseen."""
    return os.path.join(os.getcwd(), "inductor")


def prepare(request):
    """Do what comes before a package is made or loaded: who looks at instructions, as new loaders do, learns those."""
    os.environ[wire.INDUCTOR_FOLDER] = cache_folder()
    try:
        from torch._inductor import codecache
    except ImportError:  # a release that loads no packages says so where it is asked to
        return
    # The loader has looked since 2.11 at the latest, and not in 2.6.
    if request["verb"] == "package" or hasattr(codecache, "get_device_information"):
        learn_instructions(request.get("compiler_checks"))


def learn_instructions(kept):
    """Have torch find out whether compiler and CPU have AVX2 and its like; the process remembers it.

    Torch compiles a program for each: 6 to 14 s of CPU time. They stay in the folder ``kept`` for later processes, and
    no time that is reported has them in it. The folder appears when it is whole: torch takes a library there that does
    not load for an instruction that the CPU lacks.
    """
    cache = os.environ[wire.INDUCTOR_FOLDER]
    drafted = None
    with contextlib.suppress(Exception):  # a read-only folder, another process that was first, no compiler
        if kept is not None and not os.path.isdir(kept):
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            drafted = tempfile.mkdtemp(prefix=os.path.basename(kept) + "-", dir=os.path.dirname(kept))
        os.environ[wire.INDUCTOR_FOLDER] = drafted or kept or cache
        if _instructions() and drafted is not None:
            os.rename(drafted, kept)
    os.environ[wire.INDUCTOR_FOLDER] = cache
    if drafted is not None:
        shutil.rmtree(drafted, ignore_errors=True)
    with contextlib.suppress(Exception):  # no compiler: what compiles says so
        _instructions()  # at once where the answer is there


def _instructions():
    from torch._inductor import cpu_vec_isa

    return cpu_vec_isa.pick_vec_isa()


def configure():
    """Have the compiler work alone, and once: no pool of processes, and no headers made ready for later packages."""
    from torch._inductor import config

    config.compile_threads = 1  # its pool of processes would outlive this one's limits
    if hasattr(config, "cpp_cache_precompile_headers"):
        config.cpp_cache_precompile_headers = False
    if hasattr(config.aot_inductor, "precompile_headers"):
        config.aot_inductor.precompile_headers = False
