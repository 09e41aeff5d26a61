"""Changes of operators between two releases, out of the atlas."""

from packaging.version import InvalidVersion, Version

from harness.checks.prediction.atlas import atlas, changed_between
from harness.core.atlas import OperatorChanges
from harness.core.errors import ConfigError


def operators(old: str | None = None, new: str | None = None, operator: str | None = None) -> OperatorChanges:
    """Return the changes from ``old`` to ``new``, by default of all releases measured; ``operator``: of one only.

    Raises:
        ConfigError: a name is no release, or the atlas has no such operator.
    """
    measured = atlas()
    sides = {"--old": old or measured.releases[0], "--new": new or measured.releases[-1]}
    for option, name in sides.items():
        try:
            Version(name)
        except InvalidVersion:
            known = ", ".join(measured.releases)
            raise ConfigError(f"{option} {name} is no release of torch", f"the atlas has {known}") from None
    calls = measured.calls
    if operator is not None:
        name = operator if "::" in operator else f"aten::{operator}"
        calls = {key: count for key, count in calls.items() if name in (key, key.partition(".")[0])}
        if not calls:
            raise ConfigError(
                f"--operator {operator} was not sampled: nothing is known of it", "leave it out to see all"
            )
    changes = changed_between(measured, sides["--old"], sides["--new"])
    return OperatorChanges(
        old=sides["--old"],
        new=sides["--new"],
        operator=operator or "",
        releases=measured.releases,
        measured=measured.measured,
        calls=calls,
        changes=tuple(change for change in changes if change.operator in calls),
    )
