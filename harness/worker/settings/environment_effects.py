"""What torch made of the environment variables of a request, where it can be asked."""

import os
import re

import torch


def _capability(value):
    found = re.search(r"CPU capability usage: *(.+)", torch.__config__.show())
    name = found.group(1).strip().lower() if found else "unknown"
    return value if (name if name not in ("no avx", "no vsx") else "default") == value.lower() else name


def _fuser(value):
    return value if torch._C._jit_texpr_fuser_enabled() == (value != "0") else "without effect"


def _fallback(value):
    return value if torch._C._jit_texpr_fallback_allowed() == (value in ("1", "2")) else "without effect"


# Variable -> what torch says; gives back the value that was asked for where that has the meant effect.
EFFECTS = {
    "ATEN_CPU_CAPABILITY": _capability,
    "PYTORCH_TENSOREXPR": _fuser,
    "PYTORCH_TENSOREXPR_FALLBACK": _fallback,
}


def read_back(env):
    """Return an entry per variable; of those that torch cannot be asked about, that the process has it."""
    report = {}
    for name, value in sorted(env.items()):
        if name not in EFFECTS:
            report["env " + name] = {"requested": value, "read_back": os.environ.get(name), "supported": True}
            continue
        try:
            told = EFFECTS[name](value)
            report["env " + name] = {"requested": value, "read_back": told, "supported": True}
        except Exception as error:
            report["env " + name] = {"requested": value, "supported": False, "reason": str(error)[:300]}
    return report
