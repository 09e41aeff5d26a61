"""Operators that answer otherwise from one release to another."""
