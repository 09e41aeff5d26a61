"""The operators that the code files of an archive call, from where; code that artifacts share is read once."""

import re
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.artifacts.archive.expressions import Frame, TypedNames, merged, parameters, type_of_word
from harness.artifacts.archive.grammar import Shape, read_shape
from harness.artifacts.archive.limits import LIMITS, CannotRead, Limits
from harness.artifacts.archive.tokens import Statement, Token, statements

# How torch prints the operators outside its own namespace (python_print.cpp, printOpName).
RENAMED = {"torch.autograd.grad": "aten::grad", "torch.autograd.backward": "aten::backward"}
OPERATOR = re.compile(r"torch\.(\w+)|ops\.(\w+)\.(\w+)")
CUSTOM_CLASS = re.compile(r"__torch__\.torch\.classes\.(\w+(?:\.\w+)*)")
# Types that some releases know and others do not; the registry of a release says which it knows.
TYPE_WORDS = frozenset(("Await", "Generator", "Future", "RRef", "Union", "Stream", "complex", "Device"))
MOST_RESULTS = 10_000
"""At most this many tokens before the ``=`` of a statement are read."""
# What torch does not print, and its parser takes for calls or for parts of names.
SIGNS = frozenset("\\+*/%@&|^~<>!;`?$")
HIDING = SIGNS | {".", "torch", "ops"}
# Torch prints names of attributes, and texts in an enum, between quotes and as they are: with one that ends them.
BREAKING_NAME = re.compile(
    r'^  (?:__annotations__\["[^"\\\n]*(?:"[\w ]|\\|\n)|\w+ = "[^"\\\n]*(?:"[\w ]|\n))', re.MULTILINE
)
CONDITIONAL = frozenset(("if", "else", "elif"))
CONTEXT = frozenset(("__enter__", "__exit__"))
# What torch numbers anew in each archive: classes of one name, constants, and values that have none.
NUMBERED = re.compile(r"___torch_mangle_\d+\.|(?<=CONSTANTS\.c)\d+|(?<![\w.])_\d+(?!\w)")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator as written in the text; fields as in ``OperatorUse``."""

    name: str
    arguments: tuple[str, ...]
    keywords: tuple[str, ...]
    results: int
    line: int
    function: str
    branch: bool


@dataclass(slots=True)
class Function:
    """A function or method: its qualified name, and what it may call (method names, qualified functions).

    ``checksum`` is of its statements, without what torch numbers anew in each archive; ``own`` are the methods that it
    calls on the very value that it is a method of: ``(self).nms(x, )``.
    """

    name: str
    method: str
    loops: bool = False
    checksum: int = 0
    methods: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)


@dataclass(slots=True)
class CodeFacts:
    """What one code file says.

    Attributes:
        named: qualified names of the archive's own functions and classes that the code refers to.
        called: methods that it calls on what stands in brackets, as torch prints it: ``(self).forward(x, )``.
        foreign_line: number of the first line that torch would not print and that may hide a call; 0 if there is none.
        hiding_line: of the first call of an operator that a value called ``torch`` makes a call of its own method.
        shape: the classes and functions that it defines and expects; ``shape.line`` is the first line that torch would
            not print for any other reason.
    """

    calls: list[Call] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    custom_classes: set[str] = field(default_factory=set)
    type_names: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    foreign_line: int = 0
    hiding_line: int = 0
    devices: set[str] = field(default_factory=set)
    shape: Shape = field(default_factory=Shape)


def read_code(text: str, qualifier: str, limits: Limits = LIMITS) -> CodeFacts:
    """Return what a code file says.

    ``qualifier``: of the module, e.g. ``"__torch__.fixtures.zoo.vision"``. Raises ``CannotRead``: its brackets or
    strings do not close (no release would load it either), an attribute has a name that no release reads, or it is
    beyond a limit.
    """
    breaking = BREAKING_NAME.search(text)
    if breaking is not None:
        line = text.count("\n", 0, breaking.start()) + 1
        what = "the name of an attribute, or a text in an enum, has a quotation mark, a backslash or a new line"
        raise CannotRead("name_refused", f"line {line}: {what}")
    lines = list(statements(text, limits))
    facts = _Reader(qualifier, limits, limits.scopes * (len(text) + 100)).read(lines)
    facts.shape = read_shape(text, lines, qualifier)
    return facts


def operator_of(name: str) -> str:
    if name in RENAMED:
        return RENAMED[name]
    match = OPERATOR.fullmatch(name)
    if match is None:
        return ""
    return f"aten::{match[1]}" if match[1] else f"{match[2]}::{match[3]}"


class _Reader:
    """Walks the statements of one file, with the blocks that are open and the types of the names that it has seen."""

    def __init__(self, qualifier: str, limits: Limits, scope_characters: int) -> None:
        self.qualifier = qualifier
        self.limits = limits
        self.scope_characters = scope_characters
        self.facts = CodeFacts()
        self.blocks: list[tuple[int, str, str]] = []  # indent, keyword, name
        self.function = Function(qualifier, "")
        self.receiver = ""
        self.own_names: set[str] = set()
        self.types: TypedNames = {}
        self.attributes: TypedNames = {}

    def read(self, lines: Iterable[Statement]) -> CodeFacts:
        for statement in lines:
            while self.blocks and self.blocks[-1][0] >= statement.indent:
                self.blocks.pop()
            tokens = statement.tokens
            first = tokens[0].text
            if first in ("class", "def"):
                self._open(first, statement)
            elif tokens[-1].text == ":":
                self.blocks.append((statement.indent, first, ""))
                self.function.loops |= first in ("for", "while")
                self.function.methods |= CONTEXT if first == "with" else frozenset()
            if len(self.facts.calls) + len(self.facts.functions) + len(self.facts.classes) > self.limits.named:
                raise CannotRead("too_large", f"more than {self.limits.named} calls and functions in one file")
            if len(self.blocks) > self.limits.nesting:
                raise CannotRead("too_large", f"more than {self.limits.nesting} blocks within each other")
            if any(keyword == "def" for _, keyword, _ in self.blocks):
                text = NUMBERED.sub("", " ".join(token.text for token in tokens))
                self.function.checksum = zlib.crc32(text.encode("utf-8", "backslashreplace"), self.function.checksum)
            type_ = self._expressions(statement)
            if len(tokens) > 2 and tokens[1].text == "=":
                self.types[first] = merged(self.types.get(first), type_)
            elif len(tokens) > 2 and tokens[1].text == ":" and self.blocks and self.blocks[-1][1] == "class":
                self.attributes.update(parameters(tokens))
            elif first == "for" and len(tokens) > 4 and tokens[3].text == "range":
                self.types[tokens[1].text] = "int"
        self.facts.type_names -= self.own_names
        return self.facts

    def _open(self, keyword: str, statement: Statement) -> None:
        name = statement.tokens[1].text if len(statement.tokens) > 1 else ""
        self.blocks.append((statement.indent, keyword, name))
        pieces = [self.qualifier, *(text for _, _, text in self.blocks if text)]
        self.scope_characters -= sum(map(len, pieces))
        if self.scope_characters < 0:
            raise CannotRead("too_large", "the names of its functions are longer than its code")
        scope = ".".join(pieces)
        if keyword == "class":
            self.facts.classes.append(scope)
            self.own_names.add(name)
            self.attributes = {}
        elif sum(kind == "def" for _, kind, _ in self.blocks) == 1:  # a function within it is called by it
            self.function = Function(scope, name if any(kind == "class" for _, kind, _ in self.blocks) else "")
            self.facts.functions.append(self.function)
            declared = dict(parameters(statement.tokens[3:-1]))
            self.receiver = next(iter(declared), "self")
            self.types = {f"{self.receiver}.{name}": text for name, text in self.attributes.items()} | declared

    def _expressions(self, statement: Statement) -> str:
        """Read every call in a statement; return the type of what it assigns, empty where only torch knows."""
        branch = any(keyword in CONDITIONAL for _, keyword, _ in self.blocks)
        if statement.tokens[0].text in CONDITIONAL:  # its own condition is evaluated before
            branch = any(keyword in CONDITIONAL for _, keyword, _ in self.blocks[:-1])
        results = _unpacked(statement.tokens)
        frames = [Frame()]
        previous = callee = ""
        for index, (kind, text) in enumerate(statement.tokens):
            top = frames[-1]
            if (callee and text != "(") or (text in HIDING and self._hides(text, index, statement.tokens)):
                self.facts.foreign_line = self.facts.foreign_line or statement.line
            if kind == "open":
                after = previous[-1:].isalnum() or previous[-1:] in ("_", ")", "]")
                frames.append(Frame(text, of=top.types.pop() if after and top.types else None, index=index + 1))
                if callee and previous.startswith("torch.") and "torch" in self.types:
                    self.facts.hiding_line = self.facts.hiding_line or statement.line
                    frames[-1].arguments.append(self.types["torch"])
                if text == "(" and after:
                    self._check_callee(callee, previous, statement.line)
                    if (
                        index > 2
                        and statement.tokens[index - 2].text == "."
                        and statement.tokens[index - 3].kind == "close"
                    ):
                        self.facts.called.add(previous.rpartition(".")[2])
                        if [token.text for token in statement.tokens[index - 5 : index - 3]] == ["(", self.receiver]:
                            self.function.own.add(previous)
                    frames[-1].operator, frames[-1].callee = callee, previous
                    self.function.methods.add(previous.rpartition(".")[2])
            elif kind == "close":
                top.end_argument()
                frames.pop()
                frames[-1].types.append(top.type_of_result(statement.tokens))
                if top.operator:
                    self._operator(top, statement.line, results if len(frames) == 1 else 0, branch=branch)
            elif text == ",":
                top.end_argument()
            elif text == "=" and len(frames) > 1:
                top.keyword, top.types = previous, []
            elif text == "=":
                top.types = []
            elif text != "-":  # the sign of a number
                top.types.append(type_of_word(text, self.types) if kind != "other" else "")
                if kind == "name":
                    self._named(text)
            callee = operator_of(text) if kind == "name" and previous != "." else ""
            if kind == "string" and previous == "(" and top.operator == "aten::device":
                self.facts.devices.add(text[1:-1])
            previous = text
        if callee:
            self.facts.foreign_line = self.facts.foreign_line or statement.line
        return frames[0].types[0] if len(frames[0].types) == 1 else ""

    def _check_callee(self, operator: str, name: str, line: int) -> None:
        """``x.f()`` and ``torch.nn.f()`` are calls that torch prints otherwise, but for ``x.tolist()``."""
        if "." in name and not operator and not name.startswith("__torch__.") and not name.endswith(".tolist"):
            self.facts.foreign_line = self.facts.foreign_line or line

    def _hides(self, text: str, index: int, tokens: Sequence[Token]) -> bool:
        """Return whether a name is taken apart (``torch . f``) or a namespace is given another one (``t = torch``)."""
        before = tokens[index - 1] if index else Token("", "")
        if text == ".":
            return before.kind == "name"
        return text in SIGNS or (text not in self.types and before.text in ("=", "(", ",", "[", "in", "return", "not"))

    def _named(self, text: str) -> None:
        if text in TYPE_WORDS:
            self.facts.type_names.add(text)
        elif text.startswith("__torch__."):
            self.function.names.add(text)
            self.facts.named.add(text)
            match = CUSTOM_CLASS.match(text)
            if match is not None:
                self.facts.custom_classes.add(match[1])

    def _operator(self, frame: Frame, line: int, results: int, *, branch: bool) -> None:
        self.facts.calls.append(
            Call(
                name=frame.operator,
                arguments=tuple(frame.arguments),
                keywords=tuple(frame.keywords),
                results=results,
                line=line,
                function=self.function.name,
                branch=branch,
            )
        )


def _unpacked(tokens: Sequence[Token]) -> int:
    """Return how many variables one answer is unpacked into: ``a, b = f()``, ``a, b, = f()``, not ``a, b = c, d``.

    torch prints the first for an operator of two results, the second for a list.
    """
    texts = [text for _, text in tokens[:MOST_RESULTS]]
    equals = texts.index("=") if "=" in texts else 0
    if "," not in texts[:equals] or any(kind != "name" and text != "," for kind, text in tokens[:equals]):
        return 0
    depth = 0
    for kind, text in tokens[equals + 1 :]:
        depth += (kind == "open") - (kind == "close")
        if text == "," and depth == 0:
            return 0
    return equals - texts[:equals].count(",")


class CodeMemory:
    """The facts of the code files read last, as long as their texts are below ``limit_bytes`` together.

    What it returns is shared and must not be changed. Facts take up to about 20 times the bytes of their text.
    """

    def __init__(self, limit_bytes: int = 4 << 20) -> None:
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[tuple[str, str], CodeFacts] = OrderedDict()
        self._bytes = 0

    def read(self, text: str, qualifier: str, limits: Limits) -> CodeFacts:
        """Return what ``read_code`` returns, and raise what it raises; that is not remembered."""
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


def reachable(functions: Sequence[Function], root: str) -> set[str]:
    """Return the names of what the methods of class ``root`` may call, or a ``__setstate__``: loading calls it."""
    by_name = {function.name: function for function in functions}
    by_method: dict[str, list[Function]] = {}
    for function in functions:
        if function.method:
            by_method.setdefault(function.method, []).append(function)
    pending = [item for item in functions if item.name.rpartition(".")[0] == root or item.method == "__setstate__"]
    names = {function.name for function in pending}
    spent: set[str] = set()
    while pending:
        function = pending.pop()
        called = [by_name[name] for name in function.names if name in by_name]
        for method in function.methods - spent:
            called += by_method.get(method, ())
        spent |= function.methods
        pending += [item for item in called if item.name not in names]
        names.update(item.name for item in called)
    return names


def may_loop(functions: Sequence[Function]) -> set[str]:
    """Return the names of the functions that have a loop, or may call one that has."""
    callers: dict[str, list[Function]] = {}
    for function in functions:
        for name in function.names | {f".{method}" for method in function.methods}:
            callers.setdefault(name, []).append(function)
    pending = [function for function in functions if function.loops]
    names = {function.name for function in pending}
    while pending:
        function = pending.pop()
        calling = callers.pop(function.name, []) + (callers.pop(f".{function.method}", []) if function.method else [])
        pending += [item for item in calling if item.name not in names]
        names.update(item.name for item in calling)
    return names
