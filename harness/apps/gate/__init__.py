"""A finished run, judged again by another policy."""
