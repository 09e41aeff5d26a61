"""Recorded values: a spec and bytes become exact numbers, trees of them, and the outputs of one process."""
