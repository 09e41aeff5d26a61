"""Small files of the kernel and of installations, whose absence is an answer."""

from pathlib import Path


def text_of(path: Path) -> str:
    """Return the text of a file; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
