"""What is installed in two environments, and where that differs."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """One distribution as it is installed.

    Attributes:
        name: normalized, ``"nvidia-cublas-cu12"``.
        version: as its metadata have it.
        requirement: what installs just that again, ``"numpy==1.26.4"`` or ``"name @ file:///..."``.
        needs: requirement strings of its own, as its metadata have them.
    """

    name: str
    version: str
    requirement: str
    needs: tuple[str, ...] = ()

    @property
    def from_index(self) -> bool:
        """Whether another version of it can be asked for by number."""
        return "@" not in self.requirement


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A distribution that is not the same on both sides; None where it is not installed."""

    name: str
    old: Distribution | None
    new: Distribution | None

    @property
    def words(self) -> str:
        """``"numpy 1.26.4 -> 2.4.6"``."""
        old, new = (side.version if side is not None else "none" for side in (self.old, self.new))
        return f"{self.name} {old} -> {new}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step on the way from the old environment to the new one: everything that is in it then.

    Attributes:
        label: what it changes, unique on the way, e.g. ``"numpy 1.26.4 -> 2.4.6"``.
        name: how a verdict calls the environment, e.g. ``"torch 2.6.0 with numpy 2.4.6"``.
        exact: requirement strings of all that is installed; empty for an end, which is there as it is.
    """

    label: str
    name: str
    exact: tuple[str, ...] = ()
