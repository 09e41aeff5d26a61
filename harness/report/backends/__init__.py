"""Formats: each lays out any document."""
