"""Requests for an artifact: read, described, or inferred from its graph."""
