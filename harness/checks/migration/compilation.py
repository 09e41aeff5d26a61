"""What a failed compilation says: which operator or name is not compiled, or what the machine lacked. Pure."""

import re

from harness.core.text import prose
from harness.probing.lacking import lack

# How torch._inductor says that it does not know an operator, and how a C++ compiler says that torch's C interface for
# compiled code has no function for one.
OPERATOR = (
    re.compile(r"UnsupportedOperatorException: (?P<name>[\w.]+)"),
    re.compile(r"(?:LoweringException|MissingOperatorWith(?:out)?Decomp)\b(?s:.)*?\btarget: (?P<name>[\w.:]+)"),
    re.compile(r"error: \W*aoti_torch_(?:cpu|cuda)_(?P<name>\w+)"),
)
REWRITE = "write {} in other operators, or convert in a release that compiles it; the program itself answers well"
# 2.15.0 writes out buffers by their names, among variables of its own: a buffer called "inputs" is one too many.
TAKEN_NAME = re.compile(r"error: conflicting declaration \W*auto& (?P<name>\w+)")
COMPILE_ERROR = re.compile(r"\b(?:fatal )?error: .*")
"""A line of a C++ compiler; what comes before is its command, and in which function it was."""


def not_compiled(message: str) -> tuple[str, str, str]:
    """Return (stable word, reason, what to do) of a failed compilation; each empty where nothing is known of it."""
    lacking = lack(message)
    if lacking is not None:
        return lacking.kind, "", lacking.advice
    error = COMPILE_ERROR.search(message) if "CppCompileError" in message else None
    reason = f"CppCompileError: {prose(error[0])}" if error is not None else ""
    conflict = TAKEN_NAME.search(message)
    if conflict is not None:
        advice = f"rename the buffer or parameter {conflict['name']}: the compiled code has a variable of that name"
        return "name of a buffer", reason, advice
    unknown = next((match for pattern in OPERATOR if (match := pattern.search(message)) is not None), None)
    if unknown is None:
        return "", reason, ""
    name, first = unknown["name"].replace("::", "."), message.splitlines()[0]
    return f"operator {name}", reason or prose(first if name in first else f"{first}: {name}"), REWRITE.format(name)
