"""How much a search may ask."""

from harness.errors import InternalError


class BudgetSpent(Exception):
    """Raised instead of asking once more than the budget allows; a search catches it and tells what it knows."""


class Budget:
    """Counts what was asked; ``take`` raises once ``total`` are spent."""

    def __init__(self, total: int) -> None:
        if total < 1:
            raise InternalError(f"a search with a budget of {total} can ask nothing")
        self.total = total
        self.spent = 0

    def take(self) -> None:
        """Spend one.

        Raises:
            BudgetSpent: nothing is left.
        """
        if self.spent >= self.total:
            raise BudgetSpent
        self.spent += 1
