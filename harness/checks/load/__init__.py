"""Requests sent to a server at the times at which they would arrive, and how its tail compares with another's."""
