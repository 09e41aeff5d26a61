"""The command that shows a rollback break again: the same command line with the sides changed."""

import shlex
from collections.abc import Sequence

from harness.domain.environment import EnvSpec

# What says which models there are and how they run; all take a value. The rest belongs to the run that was made.
KEPT = ("--project", "--fixtures", "--library", "--device", "--profile", "--set")
MODELS = ("--artifacts",)
OTHER_SIDE = {"old": "new", "new": "old"}


def way_back_command(
    command: str, arguments: Sequence[str], *, old: EnvSpec, new: EnvSpec, model: str, artifact: str = ""
) -> str:
    """Return the command that exports ``model`` on the side ``old`` and loads it on the side ``new``.

    Args:
        command: how this program is started.
        arguments: of the run that found the break.
        artifact: the file that the later release has saved, where no declaration makes one.
    """
    words = [*_kept(arguments, (*KEPT, *(() if artifact else MODELS)))]
    before = [word for option in words if option[0] == "--project" for word in option]
    after = [word for option in words if option[0] != "--project" for word in option]
    if artifact:
        after += ["--artifacts", artifact]
    sides = [*_side("old", old), *_side("new", new)]
    asked = [*before, "compat", *sides, *after, "-k", model, "--scenario", "alone"]
    return f"{command} {shlex.join(asked)}"


def _side(side: str, spec: EnvSpec) -> tuple[str, str]:
    if spec.release is not None:
        return f"--{side}", spec.release
    return "--env", f"{side}={spec.interpreter}"


def _kept(arguments: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in names:
            found.append((name, _turned(name, value if equals else next(words, ""))))
    return found


def _turned(name: str, value: str) -> str:
    """Return the value of an option, an operator library of one side as that of the other."""
    side, equals, library = value.partition("=")
    if name == "--library" and equals and side in OTHER_SIDE:
        return f"{OTHER_SIDE[side]}={library}"
    return value
