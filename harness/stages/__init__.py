"""One verb of a run per module; each takes the facts so far and returns more."""
