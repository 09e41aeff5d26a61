"""Many releases: the first bad one of a model, the version matrix, and what the package index has."""
