"""Builds the fake accelerator against an environment's LibTorch, and puts its Python module beside it.

``python -m tests.accelerator.build PYTHON FOLDER`` prints the folder with both, and needs no network.
"""

import shutil
import sys
import threading
import time
from pathlib import Path

from harness.environments.native import Recipe, ask_compiler, find_or_compile, sources_digest, standard_of
from harness.machine.pool import Patience
from tests.integration.artifacts.libraries.building import libtorch_of

SOURCES = Path(__file__).parent
MODULE = "fakedev.py"
DEADLINE_S = 1800  # of wall time: 15 s on two cores, and minutes where many tests share them


def build(interpreter: str, folder: Path) -> Path:
    """Return the folder with ``fakedev.py`` and ``libfakedev.so`` for this environment, compiled now or before.

    Args:
        interpreter: the environment's Python; it is not started.
        folder: where builds are kept, one folder for each release, compiler and state of the sources.

    Raises:
        NoCompiler, NotBuilt: there is no compiler, or it failed.
    """
    libtorch = libtorch_of(interpreter)
    include, lib = libtorch.root / "include", libtorch.root / "lib"
    compiler = ask_compiler(standard := standard_of(include))
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(libtorch.cxx11_abi)}"
    recipe = Recipe(
        name=f"fakedev-{libtorch.torch}",
        output="libfakedev.so",
        # Not optimized: what it adds to a kernel of torch does not matter, and compiling is what tests wait for.
        command=(
            *compiler.command,
            *(f"-std=c++{standard}", "-O0", "-pthread", "-fPIC", "-shared", abi),
            *("-isystem", str(include), "-isystem", str(include / "torch/csrc/api/include")),
            str(SOURCES / "fakedev.cpp"),
        ),
        libraries=(f"-L{lib}", "-ltorch_cpu", "-lc10"),
        identity=(compiler.version, libtorch.git_revision or "", sources_digest(SOURCES)),
    )
    patience = Patience(deadline=time.monotonic() + DEADLINE_S, tick=lambda: None, cancelled=threading.Event())
    built = find_or_compile(recipe, folder, patience)[0].parent
    draft = built / f".{MODULE}.{threading.get_ident()}"
    shutil.copyfile(SOURCES / MODULE, draft)
    draft.replace(built / MODULE)
    return built


if __name__ == "__main__":
    print(build(sys.argv[1], Path(sys.argv[2])))
