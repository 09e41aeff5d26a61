"""The types of expressions in an archive's code, as far as the text shows them; empty where only torch knows.

No type checker: declared parameters and attributes, literals, casts, and subscripts of those. It serves to tell
overloads of one operator apart, and every rule that is in doubt answers with nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness.artifacts.archive.tokens import Token

TypedNames = dict[str, str]

WORDS = {"True": "bool", "False": "bool", "None": "None", "inf": "float", "nan": "float"}
MADE = {"int": "int", "float": "float", "bool": "bool", "str": "str", "aten::device": "Device"}
# Operators whose answer is of one type in every release, for the arguments that ``answer_of`` asks for.
ARITHMETIC = frozenset(f"aten::{name}" for name in ("add", "sub", "mul", "floordiv", "remainder", "neg"))
COUNTS = frozenset(("aten::len", "aten::dim", "aten::numel"))
TENSOR_TO_TENSOR = frozenset(
    f"aten::{name}"
    for name in (
        *("abs", "cat", "clamp", "clone", "contiguous", "conv1d", "conv2d", "detach", "div", "dropout", "embedding"),
        *("exp", "expand", "expand_as", "flatten", "gelu", "index", "layer_norm", "linear", "log", "log_softmax"),
        *("masked_fill", "matmul", "permute", "pow", "relu", "reshape", "rsqrt", "select", "sigmoid", "silu", "slice"),
        *("softmax", "sqrt", "squeeze", "t", "tanh", "to", "transpose", "unsqueeze", "view"),
    )
)
CASTS = frozenset(("annotate", "unchecked_cast", "uninitialized"))
LONGEST_TYPE = 64
"""Tokens of a type that are read."""
LONGEST_NAME = 240
"""Characters of a type that are kept: else a list of a list of a list ... would grow with each statement."""


@dataclass(slots=True)
class Frame:
    """An open bracket.

    Attributes:
        bracket: which one; empty for the statement itself.
        of: type of what stands before the bracket (called or subscripted); None where nothing does.
        index: of the first token inside.
        types: of the pieces of the argument that is being read; one piece is the whole argument.
    """

    bracket: str = ""
    of: str | None = None
    index: int = 0
    callee: str = ""
    operator: str = ""
    arguments: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    keyword: str = ""

    def end_argument(self) -> None:
        if self.keyword:
            self.keywords.append(self.keyword)
        elif self.types:
            self.arguments.append(self.types[0] if len(self.types) == 1 else "")
        self.keyword, self.types = "", []

    def type_of_result(self, tokens: Sequence[Token]) -> str:
        if self.bracket == "[":
            if self.of is not None:
                return element_of(self.of)
            first = self.arguments[0] if self.arguments else ""
            return f"List[{first}]" if first and len(first) < LONGEST_NAME else "List"
        if self.operator:
            return answer_of(self.operator, self.arguments)
        if self.bracket == "(" and self.of is not None:
            cast_to = tokens[self.index : self.index + LONGEST_TYPE]
            return declared(cast_to) if self.callee in CASTS else MADE.get(self.callee, "")
        return self.arguments[0] if len(self.arguments) == 1 else ""


def type_of_word(text: str, names: TypedNames) -> str:
    if text in WORDS:
        return WORDS[text]
    if text[0] in "\"'":
        return "str"
    if text[-1] == "j" and not text.isidentifier():
        return "complex"
    if text[0].isdigit() or text[0] == ".":
        return "int" if text.isdigit() else "float"
    return names.get(text, "")


def answer_of(operator: str, arguments: Sequence[str]) -> str:
    """Return the type of an operator's answer, where it is the same in every release."""
    if operator in COUNTS or (operator == "aten::size" and len(arguments) == 2):
        return "int"
    if operator == "aten::size":
        return "List[int]"
    if operator == "aten::mul" and "" in arguments and "int" in arguments:  # perhaps a list or a text, so many times
        return ""
    if operator in ARITHMETIC and "Tensor" not in arguments:
        known = set(arguments) - {""}
        whole = known == {"int"} and "" not in arguments
        return "int" if whole else "~Scalar" if known and known <= {"int", "float"} else ""
    tensors = operator in TENSOR_TO_TENSOR and arguments[:1] == ["Tensor"]
    return "Tensor" if tensors or operator in ARITHMETIC else MADE.get(operator, "")


def merged(before: str | None, after: str) -> str:
    """Return the type of a name that branches assign; ``"~int"`` is an int, or None, where only one branch tells."""
    if before is None or before == after:
        return after
    known = {before.removeprefix("~"), after.removeprefix("~")} - {""}
    return f"~{known.pop()}" if len(known) == 1 else ""


def element_of(container: str) -> str:
    return container[5:-1] if container.startswith("List[") else ""


def declared(tokens: Sequence[Token]) -> str:
    """Return the type that ``tokens`` begin with, up to a comma, a closing bracket or a default value."""
    depth, pieces = 0, []
    for kind, text in tokens:
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        if depth < 0 or (depth == 0 and text in (",", "=", "->")):
            break
        pieces.append(text)
    else:
        if len(tokens) == LONGEST_TYPE:
            return ""
    text = "".join(pieces)
    if len(text) > LONGEST_NAME:
        return ""
    return "None" if text == "NoneType" else text.removeprefix("Final[").removesuffix("]") if "Final[" in text else text


def parameters(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Yield (name, type) for each ``name: type`` at the outermost level of ``tokens``."""
    depth = 0
    for index, (kind, text) in enumerate(tokens):
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif text == ":" and depth == 0 and index > 0:
            yield tokens[index - 1].text, declared(tokens[index + 1 : index + 1 + LONGEST_TYPE])
