"""Finds the nodes of one graph again in that of another release, where an upgrader may have put others in between."""

import difflib


def aligned(theirs, mine):
    """Return the label of each of ``mine``: the index of its like in ``theirs``, or -1 - its own index.

    Keys are (kind, attribute, source); where the sources are told in other words, kinds alone are compared.
    """
    if [key[0] for key in theirs] == [key[0] for key in mine]:
        return list(range(len(mine)))
    matches = matches_of([tuple(key) for key in theirs], [tuple(key) for key in mine])
    if 2 * sum(match.size for match in matches) < min(len(theirs), len(mine)):
        matches = matches_of([key[0] for key in theirs], [key[0] for key in mine])
    labels = [-1 - index for index in range(len(mine))]
    for match in matches:
        for offset in range(match.size):
            labels[match.b + offset] = match.a + offset
    return labels


def matches_of(theirs, mine):
    return difflib.SequenceMatcher(None, theirs, mine, autojunk=False).get_matching_blocks()
