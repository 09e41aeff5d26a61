"""Requests of production, written to a file on their way to the server."""
