"""How many tests a search may run."""

from collections.abc import Callable

from harness.core.errors import InternalError

Stop = Callable[[int], bool]
"""Whether a search should end after so many runs, though its budget has more: whoever knows the time says so."""


class BudgetSpent(Exception):
    """Raised instead of running more tests than the budget allows; a search catches it and returns what it knows."""


class Budget:
    """Counts what was asked; ``take`` raises once ``total`` are spent, or ``stop`` says so."""

    def __init__(self, total: int, stop: Stop | None = None) -> None:
        if total < 1:
            raise InternalError(f"a search with a budget of {total} can ask nothing")
        self.total = total
        self.spent = 0
        self.stop = stop
        self.stopped = False

    def take(self) -> None:
        """Spend one.

        Raises:
            BudgetSpent: nothing is left.
        """
        if self.spent >= self.total:
            raise BudgetSpent
        if self.stop is not None and self.stop(self.spent):
            self.stopped = True
            raise BudgetSpent
        self.spent += 1
