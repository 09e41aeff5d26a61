"""Loads the library that dumps native stacks, where there is one; its source is ``native/stacks/stacks.cpp``."""

import ctypes
import os

_kept = []


def arm(library, stacks_path):
    """Append the native stacks of all threads to ``stacks_path`` on SIGUSR2 and on a fatal signal; '' or why not.

    To be called before ``faulthandler.enable``: of two handlers of a fatal signal the later one goes first, so that
    Python's frames come first and the native ones follow. A forked child calls it again, with its own file.
    """
    try:
        dumper = ctypes.CDLL(library)
        failure = dumper.gate_install_stack_dumps(os.fsencode(stacks_path))
    except (OSError, AttributeError) as error:
        return "%s cannot be loaded: %s" % (library, error)
    if failure:
        return "%s cannot be written: %s" % (stacks_path, os.strerror(failure))
    _kept[:] = [dumper]
    return ""


def guard_thread():
    """Let the overflow of this thread's stack be reported; nothing where no library is loaded."""
    for dumper in _kept:
        dumper.gate_guard_thread()
