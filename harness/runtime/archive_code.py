"""The code of an archive, as torch prints it; read as a zip, within limits."""

from harness.archive.limits import LIMITS, CannotRead
from harness.archive.members import read_directory, read_member
from harness.runtime.artifact_files import opened

MOST_BYTES = 64 << 10
FOLDER, SUFFIX = "code/", ".py"


def archive_code(path: str) -> str:
    """Return the text of all code files, each under a comment with its name where there are several.

    Empty where the archive cannot be read, or has more code than a reader would look at.
    """
    try:
        with opened(path) as source:
            directory = read_directory(source, LIMITS)
            members = {name: directory.inside[name] for name in sorted(directory.inside) if _is_code(name)}
            if sum(member.size for member in members.values()) > MOST_BYTES:
                return ""
            texts = {name: read_member(source, member, MOST_BYTES, LIMITS) for name, member in members.items()}
    except CannotRead:
        return ""
    parts = [(name, data.decode(errors="replace").rstrip()) for name, data in texts.items()]
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"# {name}\n{text}" for name, text in parts)


def _is_code(name: str) -> bool:
    return name.startswith(FOLDER) and name.endswith(SUFFIX)
