"""Whether answers hold anything to compare: NaN agrees with NaN, and nothing with nothing."""

import numpy as np

from harness.numerics.decode import Buffer, decode, plain_number
from harness.numerics.outputs import Outputs
from harness.numerics.structure import Tree


def hold_value(outputs: Outputs) -> bool:
    """Return whether any call answered a finite number, a text or a truth value, or left one in a changed input.

    Raises:
        DecodeError: the outputs are damaged.
    """
    effects = (outputs.effects or {}).values()
    changed = (tree for effect in effects for tree in effect.changed.values())
    return any(_holds(tree, outputs.buffer) for tree in (*outputs.calls.values(), *changed))


def _holds(tree: Tree, buffer: Buffer) -> bool:
    kind, content = tree
    match kind:
        case "tensor":
            return bool(np.isfinite(decode(content, buffer).values).any())
        case "float" | "complex":
            return bool(np.isfinite(decode(plain_number(kind, content), buffer).values).all())
        case "list" | "tuple":
            return any(_holds(item, buffer) for item in content)
        case "dict":
            return any(_holds(item, buffer) for _, item in content)
        case "namedtuple":
            return any(_holds(item, buffer) for _, item in content[1])
        case _:
            return kind not in ("none", "object")
