"""What a GPU record consists of: its parts, in the order in which they run, each as words of ``compat``."""

from typing import NamedTuple

from harness.core.devices import Device

BEFORE_TIMING = ("--until", "correctness")
CAPTURE = ("--scenario", "cuda_graphs")


class Part(NamedTuple):
    """One part.

    Attributes:
        words: after ``compat`` and what every part is given.
        captures: whether it also captures graphs, where the device has them.
        goes_on_with: the part whose run it ends; empty: it has a run of its own.
    """

    name: str
    words: tuple[str, ...] = ()
    captures: bool = False
    goes_on_with: str = ""

    def words_on(self, device: Device) -> tuple[str, ...]:
        """Return its words for a device."""
        return (*(CAPTURE if self.captures and device.graphs else ()), *self.words)


# What tells most for its time comes first: the limit of time cuts off the end.
PARTS = (
    Part("models", ("--scenario", "alone", *BEFORE_TIMING), captures=True),
    Part("timing", ("--scenario", "alone"), captures=True, goes_on_with="models"),
    Part("scenarios", ("--scenario", "all", "--latency", "off")),
)
