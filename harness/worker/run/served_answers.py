"""Holds what a thread serves against what the same copy answered before, so that a race while serving is seen."""

from gate_worker.values import trees


class StableAnswer:
    """What a module answers to its first input set once it is warm, if it can be held to that.

    Only where the last two recorded answers are the same to the last bit: before its second call a module is not warm,
    and one whose answers depend on earlier calls, or on chance, cannot be held to any of them.
    """

    def __init__(self):
        self._last = self._answer = None

    def learn(self, output):
        described = trees.described(output)
        self._answer = described if described == self._last else None
        self._last = described

    def differs_from(self, output):
        """Return whether ``output`` is otherwise than what is known."""
        return self._answer is not None and trees.described(output) != self._answer


class ServedAnswers:
    """Counts the answers of one serve step, and those that are otherwise: the mark ``served_otherwise:MODEL``."""

    def __init__(self, served, log):
        self.calls = 0
        self._served = served
        self._log = log
        self._first = None
        self._different = 0

    def take(self, output):
        """Count one answer; tell the first one that is otherwise at once, as the process may hang after it."""
        self.calls += 1
        if not self._served.stable_answer.differs_from(output):
            return
        self._different += 1
        if self._first is None:
            self._first = self.calls - 1
            self.tell()

    def tell(self):
        """Mark what was otherwise so far, if anything was."""
        if self._first is not None:
            data = {"calls": self.calls, "first": self._first, "different": self._different}
            self._log.mark("served_otherwise:" + self._served.name, data)
