"""Names for models that are files: words of a ``-k`` expression, unique, and distinguished by their folders."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

RESERVED: Final = "planted_"
"""The names of planted defects begin so; every run has some."""
PLANTED_DEFECT: Final = "planted"
LONGEST: Final = 80
"""A name is part of file names, and of cell ids in a table."""


def word_of(path: str) -> str:
    """Return the file's name without its last suffix, as a word."""
    return word(PurePath(path).stem)


def word(text: str) -> str:
    """Return ``text`` as an ASCII identifier that is neither a keyword of ``-k`` nor the name of a planted defect."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    made = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")
    if not made:
        made = "model_" + _digest(text)
    if made[0].isdigit() or made in ("and", "or", "not") or is_reserved(made):
        made = "_" + made
    return made if len(made) <= LONGEST else f"{made[: LONGEST - 9]}_{_digest(text)}"


def is_reserved(name: str) -> bool:
    return name.startswith(RESERVED)


def tag_of(path: str) -> str:
    """Return the name of the nearest folder above a file that is more than a number, such as a store's ``1``.

    It is the server group too: the models of one folder start together. ``files`` if there is no such folder.
    """
    for folder in PurePath(path).parent.parts[::-1]:
        tag = word(folder) if folder.strip("/") else ""
        if tag.strip("_0123456789") and tag != PLANTED_DEFECT:
            return tag
    return "files"


def names_of(
    paths: Sequence[str], reserved: Sequence[str] = (), called: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return path -> name, unique and none of the ``reserved``.

    A file is named by its stem. Files of one stem in two folders get as many folder names in front as distinguish them,
    files of one stem in one folder keep their suffixes. Paths are absolute, each once; ``called`` maps a path to the
    one that it is named after instead; several may be named after one.
    """
    after = {path: PurePath((called or {}).get(path, path)) for path in paths}
    same = Counter((place.parent, word_of(place.name)) for place in after.values())
    own = {
        path: word_of(place.name) if same[place.parent, word_of(place.name)] == 1 else word(place.name)
        for path, place in after.items()
    }
    depth = dict.fromkeys(paths, 0)
    names = dict(own)
    while True:
        uses = Counter([*names.values(), *reserved])
        above = [path for path in paths if uses[names[path]] > 1 and depth[path] < len(after[path].parts) - 2]
        if not above:
            break
        for path in above:
            depth[path] += 1
            folders = after[path].parts[-1 - depth[path] : -1]
            names[path] = word("_".join((*folders, own[path].lstrip("_"))))
    uses = Counter([*names.values(), *reserved])  # "a-b.pt" beside "a_b.pt"
    used = {*reserved, *(name for name in names.values() if uses[name] == 1)}
    for path, name in names.items():
        if uses[name] > 1:
            names[path] = _unused(f"{name[: LONGEST - 9]}_{_digest(path)}", used)
    return names


def _unused(name: str, used: set[str]) -> str:
    """Return ``name``, with a number if it is in ``used``, and add it there."""
    unused, number = name, 1
    while unused in used:
        number += 1
        ending = f"_{number}"
        unused = name[: LONGEST - len(ending)] + ending
    used.add(unused)
    return unused


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
