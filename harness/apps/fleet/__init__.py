"""A whole store of artifacts."""
