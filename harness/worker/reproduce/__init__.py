"""The parts of a standalone reproducer."""
