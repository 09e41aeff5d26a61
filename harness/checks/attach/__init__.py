"""Looks at a process that the gate did not start, and disturbs it as little as can be."""
