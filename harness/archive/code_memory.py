"""Remembers what code files say: the artifacts of one fleet share most of torch's own library code."""

from collections import OrderedDict

from harness.archive.code import CodeFacts, read_code
from harness.archive.limits import Limits


class CodeMemory:
    """The facts of the code files read last, as long as their texts are below ``limit_bytes`` together.

    What it returns is shared and must not be changed. Facts take up to about 20 times the bytes of their text.
    """

    def __init__(self, limit_bytes: int = 4 << 20) -> None:
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[tuple[str, str], CodeFacts] = OrderedDict()
        self._bytes = 0

    def read(self, text: str, qualifier: str, limits: Limits) -> CodeFacts:
        """Return what ``read_code`` returns.

        Raises:
            CannotRead: as ``read_code``; that is not remembered.
        """
        key = (qualifier, text)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        facts = read_code(text, qualifier, limits)
        self._kept[key] = facts
        self._bytes += len(text)
        while self._bytes > self._limit_bytes:
            (_, dropped), _ = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return facts
