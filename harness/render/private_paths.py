"""Takes out of a text what it tells about the machine: where things lie."""

import re

# Two folders at least: "/", "a/b" and "1/2" are none. What lies in an installed package may be named from there.
PATH = re.compile(r"(?<![\w./:])~?/(?:[^\s/:;,'\"`()\[\]<>|]+/)+[^\s/:;,'\"`()\[\]<>|]*")
PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
NAMES_KEPT = 1


def without_places(text: str) -> str:
    """Return ``text`` with ``...`` in the place of the folders of absolute paths: homes, runs, environments.

    The name of the file stays, and for a file of an installed package its path in there.
    """
    return PATH.sub(_shortened, text)


def _shortened(found: re.Match[str]) -> str:
    path = found[0]
    installed = PACKAGES.match(path)
    if installed:
        return f".../{path[installed.end() :]}"
    return f".../{'/'.join(path.rstrip('/').split('/')[-NAMES_KEPT:])}"
