"""An operator library of our own for planted artifacts that end the process or hang: none needs a bug of torch.

``gatedefect::dies(Tensor x, str how) -> Tensor`` ends it by the signal that native code ends by: ``how`` is
``"wild_read"`` (SIGSEGV) or ``"divides"`` (SIGFPE). For any other it answers ``x``.

``gatedefect::owned_by_python(Tensor x) -> Tensor`` answers it as a tensor with an object of Python that C++ keeps: who
lets go of it last needs the GIL. In the C++ worker, ``harness/native/defects.hpp``, nobody has one.
"""

import ctypes
import signal
import threading

import torch

NAMESPACE = "gatedefect"
# Nothing is mapped there: not on x86-64 (four or five levels of page tables), not on arm64 (which ignores the top
# byte). So the read always faults, and never finds something.
NOWHERE = 2**55

_registered = []  # a Library takes its operators away when it is collected
_lock = threading.Lock()


def register():
    """Define the operators in this process, once, whichever threads ask."""
    with _lock:
        if _registered:
            return
        library = torch.library.Library(NAMESPACE, "DEF")
        library.define("dies(Tensor x, str how) -> Tensor")
        library.define("owned_by_python(Tensor x) -> Tensor")
        # A device of its own has no kernels of Autograd.
        library.impl("dies", dies, "CompositeImplicitAutograd")
        library.impl("owned_by_python", torch.clone, "CompositeImplicitAutograd")
        _registered.append(library)


def register_for(operators):
    """Define them where one of these operators, ``name.overload``, is of this library."""
    if any(name.startswith(NAMESPACE + "::") for name in operators):
        register()


def dies(x, how):
    if how == "wild_read":
        ctypes.string_at(NOWHERE, 1)
    elif how == "divides":
        signal.raise_signal(signal.SIGFPE)
    return x.clone()
