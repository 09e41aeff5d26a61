"""Inline SVG as text: elements, axes, and numbers short enough for a page of 500 models.

Colours are classes of the style sheet, so that light, dark and print share one drawing.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.text import visible

Attribute = str | float
_ANCHORS = {"start": "", "middle": "m", "end": "e"}  # classes: shorter than the attribute, a thousand times


def element(name: str, *children: str, **attributes: Attribute) -> str:
    """Return one element; ``children`` are markup, attribute values are escaped, and ``_`` stands for ``-``."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    inside = "".join(children)
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def text(words: str, x: float, y: float, anchor: str = "start", class_: str = "") -> str:
    """Return a label; ``words`` may hold anything."""
    classes = " ".join(name for name in (_ANCHORS[anchor], class_) if name)
    more = {"class_": classes} if classes else {}
    return element("text", html.escape(visible(words)), x=x, y=y, **more)


def hint(words: str) -> str:
    """Return what a pointer and a screen reader are told of the element around it."""
    return element("title", html.escape(visible(words)))


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a straight line."""
    return element("path", class_=class_, d=f"M{short(x1)} {short(y1)}{_to(x1, y1, x2, y2)}")


def _to(x1: float, y1: float, x2: float, y2: float) -> str:
    if y1 == y2:
        return f"H{short(x2)}"
    return f"V{short(y2)}" if x1 == x2 else f"L{short(x2)} {short(y2)}"


def lines(places: Sequence[tuple[float, float, float, float]], class_: str) -> str:
    """Return several straight lines as one element."""
    drawn = (f"M{short(x1)} {short(y1)}{_to(x1, y1, x2, y2)}" for x1, y1, x2, y2 in places)
    return element("path", class_=class_, d="".join(drawn))


def box(x: float, y: float, width: float, height: float) -> str:
    """Return the outline of a rectangle, for a path: half the bytes of an element of its own."""
    return f"M{short(x)} {short(y)}h{short(width)}v{short(height)}h-{short(width)}z"


def drawing(label: str, width: float, height: float, *parts: str) -> str:
    """Return the whole drawing; ``label`` says what it shows to those who do not see it."""
    return element(
        "svg",
        *parts,
        class_="timeline",
        role="img",
        aria_label=label,
        viewBox=f"0 0 {short(width)} {short(height)}",
    )


def short(number: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{number:.1f}".removesuffix(".0")


def _value(value: Attribute) -> str:
    return html.escape(visible(value)) if isinstance(value, str) else short(value)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear way from values to places: ``low`` lies at ``start``, ``high`` at ``end``; beyond them it stops."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value; of what is no number the far end's."""
        if self.high <= self.low or math.isnan(value):
            return self.end
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, most: int = 5) -> Sequence[float]:
    """Return round values between ``low`` and ``high``, at most ``most`` and one more; none for an empty range."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return ()
    rough = (high - low) / most
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return tuple(number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1))
