"""A parser that names what was probably meant by a word that it does not know."""

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """``argparse``'s parser; an option that a verb does not have is that verb's error, with its usage."""

    def parse_known_args(  # type: ignore[override]  # of its overloads one is in use
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Return what was parsed; a word that is left over is an error."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            option = rest[0].partition("=")[0]
            self.error(f"unrecognized arguments: {' '.join(rest)}{_meant(option, self._option_string_actions)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """End with the usage and one line."""
        choice = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message)
        more = _meant(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ""
        super().error(message + more)


def _meant(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
