"""The JIT switches that have cured production hangs (FIELD.md), by the names that policy uses."""

from collections.abc import Mapping

MITIGATIONS: dict[str, Mapping[str, bool | int]] = {
    "profiling off": {"profiling": False},
    "fuser off": {"texpr_fuser": False},
    "profiling executor off": {"profiling_executor": False},
    "optimized execution off": {"optimized_execution": False},
    "fusion depth 0": {"fusion_depth": 0},
}

# Tried on every red cell of every run; the others can be accepted by policy and are searched by ``mitigate``.
TRIED_BY_DEFAULT = ("profiling off", "fuser off")
