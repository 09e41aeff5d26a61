"""How a case has ended, and what that says about the recorded failure. A part of ``reproduce.py``."""

import re
import signal

GOOD, BAD, UNTESTABLE = 0, 1, 125
# Somebody ends the process with these; torch does not.
FROM_OUTSIDE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
# What an error says otherwise elsewhere: paths, addresses, numbers.
SHIFTING = re.compile(r"\S*/\S*|\b0x[0-9a-fA-F]+\b|(?<!\w)\d+(?:\.\d+)?(?!\w)")


def ended(lines, hung, code, deadline_s, start_s):
    """Return how a child ended that told ``lines`` and left with ``code``: its own ending, or what is seen of it."""
    reported = {}
    for line in lines:
        reported.update(line)
        if "what" in line:  # what other threads still tell is of no consequence
            return reported
    phase = reported.get("phase", "the start of Python")
    if not reported.get("counts"):
        how = "takes longer than %g s" % start_s if hung else "ends with %s" % exit_text(code)
        ending = {"what": "untestable", "text": "%s %s" % (phase, how)}
    elif not hung and -code in FROM_OUTSIDE:
        ending = {"what": "untestable", "text": "%s is ended from outside by %s" % (phase, exit_text(code))}
    elif hung:
        ending = {"what": "hang", "text": "%s does not return within %g s" % (phase, deadline_s)}
    elif code == -signal.SIGKILL:  # not by this script: the kernel's out-of-memory killer
        ending = {"what": "memory", "text": "%s is killed, as where memory runs out" % phase}
    else:
        ending = {"what": "crash", "text": "%s ends the process with %s" % (phase, exit_text(code))}
    return dict(reported, code=code, **ending)


def exit_text(code):
    if code >= 0:
        return "exit code %d" % code
    try:
        return signal.Signals(-code).name
    except ValueError:
        return "signal %d" % -code


def verdict(wanted, ending, anything):
    """Return (exit code, in words) of one run; another failure than the recorded one says nothing about that one."""
    what, text = ending["what"], ending["text"]
    if what in ("good", "untestable"):
        return (GOOD if what == "good" else UNTESTABLE), text
    if anything or same(wanted, ending):
        return BAD, text
    if what == "values":  # it came to its end, which is what the recorded failure prevents
        return GOOD, "the recorded failure does not show; besides, %s" % text
    return UNTESTABLE, "another failure than the recorded one: %s" % text


def same(wanted, ending):
    if wanted["what"] == "any":
        return True
    if wanted["what"] == "memory" and ending.get("code") == -signal.SIGABRT:
        return True  # std::bad_alloc that nobody catches
    if wanted["what"] != ending["what"]:
        return False
    if wanted["what"] != "error":
        return True
    if (wanted["phase"], wanted["type"]) != (ending["phase"], ending["type"]):
        return False
    return says(wanted["text"], ending["message"])  # most errors of torch are a RuntimeError


def says(text, message):
    """Whether an error says ``text``, in order, whatever its paths, addresses and numbers are."""
    words, at = " ".join(message.split()), 0
    pieces = [" ".join(piece.split()) for piece in SHIFTING.split(text)]
    pieces = [piece for piece in pieces if any(map(str.isalpha, piece))]
    for piece in pieces:
        at = words.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return bool(pieces) or " ".join(text.split()) in words


def failed(error, phase):
    """Return the ending of a case that raises in ``phase``."""
    message = str(error)
    kind = type(error).__name__
    memory = ("out of memory", "t allocate memory", "not enough memory", "bad_alloc", "MemoryError")
    what = "memory" if any(word in "%s: %s" % (kind, message) for word in memory) else "error"
    text = "%s raises %s: %s" % (phase, kind, telling(message))
    return {"what": what, "phase": phase.split()[0], "type": kind, "message": message, "text": text}


def telling(message):
    """Return the line of an error that says what is wrong, not the frame that it was wrapped in."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or [""]
    for line in reversed(lines):
        if line.startswith(("RuntimeError:", "torch.jit.Error:", "AssertionError:", "Exception:", "builtins.")):
            return line.partition(":")[2].strip() or line
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
