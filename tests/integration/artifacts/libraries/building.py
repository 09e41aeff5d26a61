"""Compiles an operator library against an environment's own LibTorch, once; found again in the environments' folder."""

import re
import threading
import time
from pathlib import Path

from harness.environments.builder import default_environment_root
from harness.environments.native import Recipe, ask_compiler, find_or_compile, standard_of
from harness.environments.native import LibTorch
from harness.machine.pool import Patience

PROJECT = Path(__file__).resolve().parents[4]
SOURCE = Path(__file__).with_name("myops.cpp")
DEADLINE_S = 600  # headers of the fuser take 35 s of a core


def libtorch_of(interpreter: str) -> LibTorch:
    """Return what an environment's torch is, as its files tell; torch is not imported."""
    (root,) = Path(interpreter).parent.parent.glob("lib/python3*/site-packages/torch")
    version = re.search(r"__version__ = '(.+)'", (root / "version.py").read_text())
    flags = root / "share" / "cmake" / "Torch" / "TorchConfig.cmake"
    assert version is not None, root
    return LibTorch(torch=version[1], root=root, cxx11_abi="GLIBCXX_USE_CXX11_ABI=0" not in flags.read_text())


def library_for(libtorch: LibTorch, source: Path = SOURCE) -> str:
    """Return the path of the library for this release."""
    include, lib = libtorch.root / "include", libtorch.root / "lib"
    compiler = ask_compiler(standard := standard_of(include))
    options = [f"-std=c++{standard}", "-O0", "-fPIC", "-shared", "-isystem", str(include)]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(libtorch.cxx11_abi)}"
    recipe = Recipe(
        name=f"{source.stem}-{libtorch.torch}",
        output=f"lib{source.stem}.so",
        command=(*compiler.command, *options, abi, str(source)),
        # As torch.utils.cpp_extension links; nothing of libtorch_python is used.
        libraries=(f"-L{lib}", "-Wl,--no-as-needed", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"),
        identity=(compiler.version, source.read_text()),
    )
    patience = Patience(deadline=time.monotonic() + DEADLINE_S, tick=lambda: None, cancelled=threading.Event())
    return str(find_or_compile(recipe, default_environment_root() / "native", patience)[0])
