"""The steps from one environment to another, one distribution at a time; pure.

Torch goes first, with what can only go with it: libraries that it is linked with, and distributions whose old version
asks for the old torch. So the first question, whether the new torch fails with everything else as it was, takes one
environment. What then remains is turned one by one, the most suspicious first.
"""

from collections.abc import Collection, Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.config.selection import did_you_mean
from harness.domain.environment import Distribution, DistributionChange, Step
from harness.errors import ConfigError, SelectionError

TORCH = "torch"
LINKED = ("nvidia-", "cuda-")
"""How the names of those begin that torch's own libraries are linked with."""
NONE = "none"
"""The version of what is not installed."""
Installed = Mapping[str, Distribution]


def changes(old: Installed, new: Installed, loaded: Collection[str] = ()) -> tuple[DistributionChange, ...]:
    """Return what differs beside torch, the most suspicious first.

    Suspicious is first what brings operators: it is ``loaded`` before any artifact, or needs torch itself; then what
    torch needs; then the rest by name.
    """
    names = sorted({*old, *new} - {TORCH})
    found = [DistributionChange(name=name, old=old.get(name), new=new.get(name)) for name in names]
    asked_for = {canonicalize_name(need.name) for side in (old, new) if TORCH in side for need in _needs(side[TORCH])}
    differing = [change for change in found if _differs(change)]
    names_loaded = {canonicalize_name(name) for name in loaded}

    def brings_operators(change: DistributionChange) -> bool:
        return change.name in names_loaded or _needs_torch(change)

    return tuple(sorted(differing, key=lambda change: (not brings_operators(change), change.name not in asked_for)))


def goes_with_torch(change: DistributionChange, torch: Distribution) -> str:
    """Return why a distribution cannot be left as it was under the new torch; empty where it can."""
    if change.name.startswith(LINKED):
        return f"torch is linked with {change.name}"
    for need in _needs(change.old) if change.old is not None else ():
        if canonicalize_name(need.name) == TORCH and not need.specifier.contains(
            Version(torch.version).public, prereleases=True
        ):
            return f"{change.name} {change.old.version if change.old else ''} asks for {need.name}{need.specifier}"
    return ""


def steps_of_all(
    old: Installed, new: Installed, *, names: tuple[str, str], loaded: Collection[str] = ()
) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Return the way from ``old`` to ``new``, both included, and notes on what goes with torch.

    Args:
        names: of both environments; ``loaded``: operator libraries.

    Raises:
        ConfigError: nothing differs but torch.
    """
    torch = new[TORCH]
    torches_differ = old[TORCH].requirement != torch.requirement
    bound: list[DistributionChange] = []
    free: list[DistributionChange] = []
    notes = []
    for change in changes(old, new, loaded):
        why = goes_with_torch(change, torch) if torches_differ else ""
        (bound if why else free).append(change)
        notes += [f"goes with torch: {change.words} ({why})"] if why and not change.name.startswith(LINKED) else []
    linked = sum(change.name.startswith(LINKED) for change in bound)
    notes += [f"{linked} libraries that torch is linked with go with it; --over NAME asks about one"] if linked else []
    if not free:
        rest = f" and what goes with it ({', '.join(change.name for change in bound)})" if bound else ""
        raise ConfigError(
            f"{names[0]} and {names[1]} differ in nothing but torch{rest}", "so it is torch: --over releases"
        )
    steps = [Step(label=names[0], name=names[0])]
    at = dict(new)
    for change in free:
        at = _with(at, change.name, change.old)
    if torches_differ:
        alone = f"torch {torch.version} alone"
        steps.append(Step(label=alone, name=alone, exact=exact_of(at)))
    for change in free[:-1]:
        at = _with(at, change.name, change.new)
        name = f"torch {torch.version} up to {change.words}"
        steps.append(Step(label=change.words, name=name, exact=exact_of(at)))
    steps.append(Step(label=free[-1].words, name=names[1]))
    return tuple(steps), tuple(notes)


def steps_of_one(
    change: DistributionChange, old: Installed, new: Installed, versions: Sequence[str], *, names: tuple[str, str]
) -> tuple[Step, ...]:
    """Return the way over ``versions`` of one distribution under the new torch, from the old environment on.

    Args:
        versions: from the old to the new one, both included; ``NONE`` where it is not installed.
    """
    torch = new[TORCH].version
    steps = [Step(label=names[0], name=names[0])]
    for version in versions[:-1]:
        exact = exact_of(_with(new, change.name, version_of(change, version)))
        label = f"{change.name} {version}"
        steps.append(Step(label=label, name=f"torch {torch} with {label}", exact=exact))
    steps.append(Step(label=f"{change.name} {versions[-1]}", name=names[1]))
    if old[TORCH].requirement == new[TORCH].requirement and len(changes(old, new)) == 1:
        del steps[1]  # the old environment itself
    return tuple(steps)


def version_of(change: DistributionChange, version: str) -> Distribution | None:
    """Return a distribution in one version: as it is installed on a side, else as the index has it."""
    for side in (change.old, change.new):
        if side is not None and side.version == version:
            return side
    if version == NONE:
        return None
    return Distribution(name=change.name, version=version, requirement=f"{change.name}=={version}")


def find_change(name: str, old: Installed, new: Installed) -> DistributionChange:
    """Return the distribution called ``name`` that is not the same on both sides.

    Raises:
        SelectionError: neither side has it, or both have the same; names those that differ.
    """
    wanted = canonicalize_name(name)
    differing = {change.name: change for change in changes(old, new)}
    if wanted in differing:
        return differing[wanted]
    hint = f"these differ: {', '.join(differing) or 'none beside torch'}"
    if wanted in old:
        raise SelectionError(f"{wanted} is {old[wanted].version} on both sides", hint)
    raise SelectionError(f"neither side has a distribution {wanted}", f"{did_you_mean(wanted, {*old, *new})}{hint}")


def put(installed: Installed, name: str, there: Distribution | None) -> tuple[str, ...]:
    """Return everything of an environment in which one distribution is another one, or is left out."""
    return exact_of(_with(installed, name, there))


def exact_of(installed: Installed) -> tuple[str, ...]:
    """Return what installs all of that again."""
    return tuple(installed[name].requirement for name in sorted(installed))


def _with(installed: Installed, name: str, there: Distribution | None) -> dict[str, Distribution]:
    rest = {key: item for key, item in installed.items() if key != name}
    return rest if there is None else {**rest, name: there}


def _differs(change: DistributionChange) -> bool:
    if change.old is None or change.new is None:
        return True
    return change.old.requirement != change.new.requirement


def _needs_torch(change: DistributionChange) -> bool:
    return any(
        canonicalize_name(need.name) == TORCH
        for side in (change.old, change.new)
        if side is not None
        for need in _needs(side)
    )


def _needs(distribution: Distribution) -> list[Requirement]:
    """Return what a distribution asks for without its extras."""
    found = []
    for text in distribution.needs:
        try:
            need = Requirement(text)
        except InvalidRequirement:
            continue
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            found.append(need)
    return found
