"""The command that shows a rollback break again: the same command line with the sides changed."""

import shlex
from collections.abc import Sequence

from harness.domain.environment import EnvSpec
from harness.planning.repeated_options import LIBRARY, MODELS, REPEATED, around_verb, kept

OTHER_SIDE = {"old": "new", "new": "old"}
SET = "--set"


def way_back_command(
    command: str,
    arguments: Sequence[str],
    *,
    old: EnvSpec,
    new: EnvSpec,
    model: str,
    artifacts: str = "",
    written: tuple[str, str] = ("", ""),
) -> str:
    """Return the command that exports ``model`` on the side ``old`` and loads it on the side ``new``.

    Args:
        command: how this program is started.
        arguments: of the run that found the break.
        artifacts: a manifest of the file that the later release has saved, where no declaration makes one.
        written: what the run's configuration and command line call ``old`` and ``new``, a release or the NAME of an
            interpreter; NAMEs of libraries may refer to it. Empty: nothing.
    """
    names = [name for name in REPEATED if not artifacts or name not in MODELS]
    before, after = around_verb([_turned(*option) for option in kept(arguments, names) if not _names_a_side(*option)])
    if artifacts:
        after += ["--artifacts", artifacts]
    sides = [*_side("old", old, written[0]), *_side("new", new, written[1])]
    asked = [*before, "compat", *sides, *after, "-k", model, "--scenario", "alone"]
    return f"{command} {shlex.join(asked)}"


def _side(side: str, spec: EnvSpec, written: str) -> list[str]:
    """Return the words that make ``spec`` a side, under the name that the run has for it."""
    if spec.release is not None:
        return [f"--{side}", written or spec.release]
    by_side = spec.name in OTHER_SIDE
    name = side if by_side else spec.name
    called = written if by_side else spec.name
    return [*([f"--{side}", called] if called else []), "--env", f"{name}={spec.interpreter}"]


def _names_a_side(name: str, value: str) -> bool:
    """Whether an option says which release a side is: the command says that itself."""
    return name == SET and value.partition("=")[0].strip().strip("\"'") in OTHER_SIDE


def _turned(name: str, value: str) -> tuple[str, str]:
    """Return an option, an operator library of one side as that of the other; other NAMEs stay."""
    side, equals, library = value.partition("=")
    if name == LIBRARY and equals and side in OTHER_SIDE:
        return name, f"{OTHER_SIDE[side]}={library}"
    return name, value
